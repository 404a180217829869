#include "schedulers/asha_scheduler.h"

#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"

namespace tune {

std::vector<double> rung_milestones(const AshaOptions& options, int bracket) {
  std::vector<double> milestones;
  double milestone = options.grace_period;
  for (int skipped = 0; skipped < bracket && milestone <= options.max_t; ++skipped) {
    milestone *= options.reduction_factor;
  }
  for (; milestone <= options.max_t; milestone *= options.reduction_factor) {
    milestones.push_back(milestone);
  }
  return milestones;
}

AshaScheduler::AshaScheduler(AshaOptions options)
    : options_(std::move(options)), position_(options_.rule, options_.reduction_factor) {
  for (int s = 0; s < options_.brackets; ++s) {
    std::vector<Rung>& rungs = brackets_.emplace_back();
    for (double milestone : rung_milestones(options_, s)) rungs.emplace_back(milestone, position_);
  }
}

void AshaScheduler::configure(const Objective& experiment) {
  const bool two_metrics = !options_.metric.empty() && !experiment.metric.empty();
  if (two_metrics && options_.metric != experiment.metric) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler asha: its metric is '{}', the experiment's is '{}': give it "
                            "in one place",
                            options_.metric, experiment.metric));
  }
  objective_ = experiment;
  if (!options_.metric.empty()) objective_.metric = options_.metric;
  if (options_.mode) objective_.mode = *options_.mode;
  if (objective_.metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                "scheduler asha: it compares trials by a metric, and none is given: set metric");
  }
}

std::optional<double> AshaScheduler::max_t() const {
  if (!options_.stop_last_trials || options_.time_attr != "training_iteration") return std::nullopt;
  return options_.max_t;
}

double AshaScheduler::signed_value(double value) const {
  return objective_.mode == Mode::kMax ? value : -value;
}

// Bracket s with probability exp(rungs of s) / sum over all: those with more rungs are likelier.
std::uint32_t AshaScheduler::draw_bracket(TrialNumber trial) const {
  if (brackets_.size() == 1) return 0;
  const double most = static_cast<double>(brackets_.front().size());
  double sum = 0;
  for (const auto& rungs : brackets_) sum += std::exp(static_cast<double>(rungs.size()) - most);
  double left = RandomStream(objective_.seed, "asha_bracket", trial.value).uniform() * sum;
  for (std::uint32_t s = 0; s + 1 < brackets_.size(); ++s) {
    left -= std::exp(static_cast<double>(brackets_[s].size()) - most);
    if (left < 0) return s;
  }
  return static_cast<std::uint32_t>(brackets_.size() - 1);
}

Milestone AshaScheduler::add_trial(TrialNumber trial) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  TrialState& state = trials_[trial.value];
  state = {draw_bracket(trial), 0};
  return next_stop(state);
}

// The next report that is judged: at the lowest rung without the trial, or at max_t.
Milestone AshaScheduler::next_stop(const TrialState& state) const {
  const std::vector<Rung>& rungs = brackets_[state.bracket];
  if (state.recorded < rungs.size()) {
    return {options_.time_attr, rungs[state.recorded].milestone()};
  }
  if (options_.stop_last_trials) return {options_.time_attr, options_.max_t};
  return {};
}

// How many rungs of the bracket a trial has reached at this time.
std::uint32_t AshaScheduler::reached(const TrialState& state, double time) const {
  const std::vector<Rung>& rungs = brackets_[state.bracket];
  std::uint32_t count = state.recorded;
  while (count < rungs.size() && rungs[count].milestone() <= time) ++count;
  return count;
}

Decision AshaScheduler::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = trials_.at(trial.value);
  const std::optional<double> time = result.number(options_.time_attr);
  const Milestone next = next_stop(state);
  if (!time || next.attribute.empty() || *time < next.value) return Decision::go_on(next);
  const std::optional<double> value = result.number(objective_.metric);
  // Without the metric there is nothing to judge: look again at the next report.
  if (!value) return Decision::go_on({options_.time_attr, *time});
  if (options_.stop_last_trials && *time >= options_.max_t) {
    ++stopped_;
    return Decision::stop(fmt::format("reached max_t: {} {}", options_.time_attr, *time));
  }
  return judge(state, reached(state, *time), signed_value(*value));
}

Decision AshaScheduler::judge(TrialState& state, std::uint32_t upto, double value) {
  Rung& rung = brackets_[state.bracket][upto - 1];
  const std::size_t others = rung.size();
  const bool top = options_.rule == AshaRule::kTop;
  std::optional<double> cut_off = rung.cut_off();
  record(state, upto, value);
  if (top) cut_off = rung.cut_off();  // own value included
  const bool worse = cut_off && (std::isnan(value) || (!std::isnan(*cut_off) && value < *cut_off));
  if (others == 0 || others < static_cast<std::size_t>(options_.min_rung_size) || !worse) {
    return Decision::go_on(next_stop(state));
  }
  ++stopped_;
  return Decision::stop(fmt::format("{:.6g} is worse than the cut-off {:.6g} of {} at {} {:.6g}",
                                    signed_value(value), signed_value(*cut_off),
                                    others == 1 ? "1 value" : fmt::format("{} values", others),
                                    options_.time_attr, rung.milestone()));
}

void AshaScheduler::record(TrialState& state, std::uint32_t upto, double value) {
  for (; state.recorded < upto; ++state.recorded) {
    brackets_[state.bracket][state.recorded].add(value);
  }
}

void AshaScheduler::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  if (end == TrialEnd::kError || last == nullptr) return;
  TrialState& state = trials_.at(trial.value);
  const ResultView result(*last);
  const std::optional<double> time = result.number(options_.time_attr);
  const std::optional<double> value = result.number(objective_.metric);
  if (time && value) record(state, reached(state, *time), signed_value(*value));
}

std::vector<std::string> AshaScheduler::status_lines() const {
  std::vector<std::string> lines = {fmt::format("Using AsyncHyperBand: num_stopped={}", stopped_)};
  for (const std::vector<Rung>& rungs : brackets_) {
    std::string line = "Bracket:";
    for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
      const std::optional<double> cut_off = rung->cut_off();
      line +=
          fmt::format("{} Iter {:.3f}: {}", rung == rungs.rbegin() ? "" : " |", rung->milestone(),
                      cut_off ? fmt::format("{:.6g}", signed_value(*cut_off)) : "None");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// ---- State
// ----------------------------------------------------------------------------------------

namespace {

struct RungState {
  std::vector<double> low;
  std::vector<double> high;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.low, s.high);
  }
};

struct SavedState {
  std::uint64_t stopped = 0;
  std::vector<std::uint32_t> brackets;  // of trials, by number
  std::vector<std::uint32_t> recorded;
  std::vector<std::vector<RungState>> rungs;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.stopped, s.brackets, s.recorded, s.rungs);
  }
};

}  // namespace

std::string AshaScheduler::save() const {
  SavedState saved;
  saved.stopped = stopped_;
  for (const TrialState& state : trials_) {
    saved.brackets.push_back(state.bracket);
    saved.recorded.push_back(state.recorded);
  }
  for (const std::vector<Rung>& rungs : brackets_) {
    std::vector<RungState>& all = saved.rungs.emplace_back();
    for (const Rung& rung : rungs) all.push_back({rung.low(), rung.high()});
  }
  return encoded(saved);
}

void AshaScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);
  SavedState saved;
  decode(in, saved);
  in.expect_end();
  bool fits =
      saved.rungs.size() == brackets_.size() && saved.brackets.size() == saved.recorded.size();
  for (std::size_t s = 0; fits && s < brackets_.size(); ++s) {
    fits = saved.rungs[s].size() == brackets_[s].size();
    for (std::size_t k = 0; fits && k < brackets_[s].size(); ++k) {
      const RungState& rung = saved.rungs[s][k];
      const std::size_t n = rung.low.size() + rung.high.size();
      fits = rung.low.size() == (n == 0 ? 0 : position_.below(n));
    }
  }
  for (std::size_t i = 0; fits && i < saved.brackets.size(); ++i) {
    fits = saved.brackets[i] < brackets_.size() &&
           saved.recorded[i] <= brackets_[saved.brackets[i]].size();
  }
  if (!fits)
    detail::bad_message("scheduler state of brackets", saved.rungs.size(), brackets_.size());
  stopped_ = saved.stopped;
  trials_.clear();
  for (std::size_t i = 0; i < saved.brackets.size(); ++i) {
    trials_.push_back({saved.brackets[i], saved.recorded[i]});
  }
  for (std::size_t s = 0; s < brackets_.size(); ++s) {
    for (std::size_t k = 0; k < brackets_[s].size(); ++k) {
      RungState& rung = saved.rungs[s][k];
      brackets_[s][k].restore(std::move(rung.low), std::move(rung.high));
    }
  }
}

}  // namespace tune
