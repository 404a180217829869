#include "schedulers/asha_scheduler.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/strings.h"
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
  if (!options_.metric.empty() && !experiment.metric.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("scheduler asha: metric is '{}', and the experiment's is '{}': give it "
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

AshaScheduler::TrialState& AshaScheduler::state_of(TrialNumber trial) {
  TUNE_CHECK(trial.value < trials_.size());
  return trials_[trial.value];
}

double AshaScheduler::signed_value(double value) const {
  return (objective_.mode == Mode::kMax ? value : -value) + 0.0;  // -0 would be shown as "-0"
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
  state.bracket = draw_bracket(trial);  // the same again; the rungs behind it stay behind it
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
  TrialState& state = state_of(trial);
  const std::optional<double> time = result.number(options_.time_attr);
  Milestone next = next_stop(state);
  const bool is_asked = time && !next.attribute.empty() && *time >= next.value;  // false for NaN
  if (!is_asked) return Decision::go_on(std::move(next));
  const std::optional<double> value = result.number(objective_.metric);
  // Without the metric there is nothing to judge: look again at the next report.
  if (!value) return Decision::go_on({options_.time_attr, *time});
  if (options_.stop_last_trials && *time >= options_.max_t) {
    ++stopped_;
    return Decision::stop(
        fmt::format("reached max_t {:.10g} at {} {:.10g}", options_.max_t, time_name(), *time));
  }
  return judge(state, reached(state, *time), signed_value(*value));
}

// Judges at rung `upto` - 1; the value fills it and the lower ones without the trial.
Decision AshaScheduler::judge(TrialState& state, std::uint32_t upto, double value) {
  std::vector<Rung>& rungs = brackets_[state.bracket];
  Rung& rung = rungs[upto - 1];
  const std::size_t others = rung.size();
  std::optional<double> cut_off = rung.cut_off();
  for (; state.recorded < upto; ++state.recorded) rungs[state.recorded].add(value);
  if (options_.rule == AshaRule::kTop) cut_off = rung.cut_off();  // own value included
  const bool may_stop = others >= static_cast<std::size_t>(options_.min_rung_size);
  if (!may_stop || !(std::isnan(value) || is_worse(value, *cut_off))) {
    return Decision::go_on(next_stop(state));
  }
  ++stopped_;
  return Decision::stop(stop_reason(value, *cut_off, rung));
}

// "0.81 is worse than the cut-off 0.842 of 9 values at iteration 3".
std::string AshaScheduler::stop_reason(double value, double cut_off, const Rung& rung) const {
  std::string text;
  std::size_t count = rung.size() - 1;  // without its own
  if (std::isnan(value)) {
    text = "nan is worse than any";
  } else if (options_.rule == AshaRule::kTop) {
    ++count;
    append_number(text, signed_value(value));
    text += " is not among the best " + std::to_string(count - position_.below(count));
  } else {
    append_number(text, signed_value(value));
    text += " is worse than the cut-off ";
    append_number(text, signed_value(cut_off));
  }
  fmt::format_to(std::back_inserter(text), " of {} value{} at {} {}", count, count == 1 ? "" : "s",
                 time_name(), rung.milestone());
  return text;
}

std::string_view AshaScheduler::time_name() const {
  if (options_.time_attr == "training_iteration") return "iteration";
  return options_.time_attr;
}

void AshaScheduler::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  if (end == TrialEnd::kError || last == nullptr) return;
  TrialState& state = state_of(trial);
  const ResultView result(*last);
  const std::optional<double> time = result.number(options_.time_attr);
  const std::optional<double> value = result.number(objective_.metric);
  if (!time || !value) return;
  const std::uint32_t upto = reached(state, *time);
  if (upto == state.recorded) return;
  brackets_[state.bracket][upto - 1].add(signed_value(*value));
  state.recorded = upto;
}

namespace {

// As the user reported it, without the last digits that interpolation leaves.
std::string text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}

}  // namespace

std::vector<std::string> AshaScheduler::status_lines() const {
  std::vector<std::string> lines = {fmt::format("Using AsyncHyperBand: num_stopped={}", stopped_)};
  for (const std::vector<Rung>& rungs : brackets_) {
    std::string line = "Bracket:";
    for (auto rung = rungs.rbegin(); rung != rungs.rend(); ++rung) {
      const std::optional<double> cut_off = rung->cut_off();
      line += fmt::format("{} Iter {:.3f}: {}", rung == rungs.rbegin() ? "" : " |",
                          rung->milestone(), cut_off ? text(signed_value(*cut_off)) : "None");
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

// ---- State

namespace {

struct RungState {
  double milestone = 0;
  std::vector<double> low;
  std::vector<double> high;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.milestone, s.low, s.high);
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

// What the values of the rungs are of. States of before it was saved lack it, and are taken.
struct SavedObjective {
  std::string metric;
  Mode mode = Mode::kMax;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.metric, s.mode);
  }
};

[[noreturn]] void refuse_state(const std::string& why) {
  throw Error(ErrorCode::kProtocol, "restoring scheduler asha: " + why);
}

using Brackets = std::vector<std::vector<Rung>>;

// A rung's values under mode min are kept negated: read under mode max they would turn it around.
void check_objective(const SavedObjective& saved, const Objective& now) {
  if (saved.mode != now.mode) {
    const char* names[] = {"max", "min"};
    refuse_state(fmt::format("it was saved under mode {}, and the experiment's is {}",
                             names[static_cast<int>(saved.mode)],
                             names[static_cast<int>(now.mode)]));
  }
  if (saved.metric != now.metric) {
    refuse_state(fmt::format("it has values of the metric '{}', and the experiment's is '{}'",
                             saved.metric, now.metric));
  }
}

// The same rungs with the saved values.
Brackets restored_rungs(Brackets brackets, SavedState& saved) {
  const char* const other_rungs = "it was saved with other rungs than these parameters give";
  if (saved.rungs.size() != brackets.size()) refuse_state(other_rungs);
  for (std::size_t s = 0; s < brackets.size(); ++s) {
    if (saved.rungs[s].size() != brackets[s].size()) refuse_state(other_rungs);
    for (std::size_t k = 0; k < brackets[s].size(); ++k) {
      RungState& from = saved.rungs[s][k];
      if (from.milestone != brackets[s][k].milestone()) refuse_state(other_rungs);
      if (!brackets[s][k].restore(std::move(from.low), std::move(from.high))) {
        refuse_state("the values of a rung are not in the order of these parameters");
      }
    }
  }
  return brackets;
}

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
    for (const Rung& rung : rungs) all.push_back({rung.milestone(), rung.low(), rung.high()});
  }
  PackWriter out;
  encode(out, saved);
  encode(out, SavedObjective{objective_.metric, objective_.mode});
  return out.take();
}

void AshaScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  SavedState saved;
  decode(in, saved);
  if (!in.at_end()) {
    SavedObjective objective;
    decode(in, objective);
    check_objective(objective, objective_);
  }
  in.expect_end();
  if (saved.brackets.size() != saved.recorded.size()) refuse_state("trials are incomplete");
  Brackets brackets = restored_rungs(brackets_, saved);
  std::vector<TrialState> trials;
  for (std::size_t i = 0; i < saved.brackets.size(); ++i) {
    const TrialState& state = trials.emplace_back(TrialState{saved.brackets[i], saved.recorded[i]});
    if (state.bracket >= brackets.size() || state.recorded > brackets[state.bracket].size()) {
      refuse_state("a trial is in a rung that does not exist");
    }
  }
  stopped_ = saved.stopped;
  trials_ = std::move(trials);
  brackets_ = std::move(brackets);
}

}  // namespace tune
