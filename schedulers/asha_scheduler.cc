#include "schedulers/asha_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "core/wire.h"

namespace tune {

AshaScheduler::AshaScheduler(AshaOptions options)
    : MetricScheduler("asha", {options.metric, options.mode}),
      options_(std::move(options)),
      draw_(options_),
      position_(options_.rule, options_.reduction_factor) {
  for (int s = 0; s < options_.brackets; ++s) {
    std::vector<Rung>& rungs = brackets_.emplace_back();
    for (double milestone : rung_milestones(options_, s)) rungs.emplace_back(milestone, position_);
    fronts_.emplace_back(rungs.size());
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

Milestone AshaScheduler::add_trial(TrialNumber trial) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  TrialState& state = trials_[trial.value];
  state.bracket =
      draw_.draw(objective().seed, trial);  // the same again; the rungs behind it stay behind it
  return until(options_.time_attr, next_stop(state));
}

std::optional<double> AshaScheduler::next_stop(const TrialState& state) const {
  return next_judged(options_, brackets_[state.bracket], state.recorded);
}

std::uint32_t AshaScheduler::reached(const TrialState& state, double time) const {
  return rungs_reached(brackets_[state.bracket], state.recorded, time);
}

Decision AshaScheduler::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  auto judged = read(result, options_.time_attr, next_stop(state),
                     options_.stop_last_trials ? std::optional(options_.max_t) : std::nullopt);
  if (auto* decision = std::get_if<Decision>(&judged)) {
    if (decision->kind == Decision::Kind::kStop) ++stopped_;
    return std::move(*decision);
  }
  const auto& [time, value, numbers] = std::get<Judged>(judged);
  const std::uint32_t upto = reached(state, time);
  return has_merits() ? judge(state, upto, merit(numbers))
                      : judge(state, upto, signed_value(value));
}

// Judges at rung `upto` - 1; the value fills it and the lower ones without the trial. It is
// recorded last, as among a million values its seat is waited for.
Decision AshaScheduler::judge(TrialState& state, std::uint32_t upto, double value) {
  std::vector<Rung>& rungs = brackets_[state.bracket];
  Rung& rung = rungs[upto - 1];
  const RankedValues::Seat seat = rung.seat(value);
  const std::size_t others = rung.size();
  const std::optional<double> cut_off =  // by rule top its own value is included
      options_.rule == AshaRule::kTop ? rung.cut_off_with(value) : rung.cut_off();
  const std::uint32_t first = std::exchange(state.recorded, upto);
  const bool may_stop = others >= static_cast<std::size_t>(options_.min_rung_size);
  const bool stops = may_stop && (std::isnan(value) || is_worse(value, *cut_off));
  stopped_ += stops ? 1 : 0;
  Decision decision = stops ? Decision::stop(stop_reason(value, *cut_off, others, rung.milestone()))
                            : Decision::go_on(until(options_.time_attr, next_stop(state)));
  for (std::uint32_t lower = first; lower + 1 < upto; ++lower) rungs[lower].add(value);
  const std::size_t rank = rung.add(seat);
  decision.place = place(value, cut_off, rung, rank);
  if (brackets_.size() > 1) decision.place->bracket = state.bracket;
  return decision;
}

RungPlace AshaScheduler::place(double value, std::optional<double> cut_off, const Rung& rung,
                               std::size_t rank) const {
  if (cut_off) cut_off = signed_value(*cut_off);
  return {rung.milestone(), signed_value(value), cut_off, rank, rung.size()};
}

// The number that go on, of a rung with a new value beside so many others. Rule ray: the others
// from the one at its percentile on, the worse where it lies between two; a value that is not worse
// than that one is among as many as these.
std::size_t AshaScheduler::places(std::size_t others) const {
  if (options_.rule == AshaRule::kTop) return others + 1 - position_.below(others + 1);
  return others == 0 ? 1 : others - position_.below(others);
}

Decision AshaScheduler::judge(TrialState& state, std::uint32_t upto, const Merit& merit) {
  std::vector<Fronts>& rungs = fronts_[state.bracket];
  const Fronts& rung = rungs[upto - 1];
  const std::size_t others = rung.size();
  for (; state.recorded < upto; ++state.recorded) rungs[state.recorded].add(merit);
  const double milestone = brackets_[state.bracket][upto - 1].milestone();
  RungPlace place = front_place(rung, others, milestone);
  if (brackets_.size() > 1) place.bracket = state.bracket;
  const std::size_t go_on = places(others);
  const bool may_stop = others >= static_cast<std::size_t>(options_.min_rung_size);
  const bool is_none = !std::isfinite(merit.violation);
  Decision decision = Decision::go_on(until(options_.time_attr, next_stop(state)));
  if (may_stop && (is_none || place.rank > go_on)) {
    ++stopped_;
    decision = Decision::stop(fmt::format(
        "{} is at place {} of {} by non-dominated rank, not among the best {}, at {} {}",
        merit_text(merit), place.rank, place.of, go_on, short_time_name(options_.time_attr),
        milestone));
  }
  decision.place = place;
  return decision;
}

namespace {

// Iterations, nearly always, without the ".0" of a number.
void append_time(std::string& text, double time) {
  const auto whole = static_cast<std::int64_t>(std::min(time, 1e15));
  if (static_cast<double>(whole) == time) return append_integer(text, whole);
  text += fmt::format("{}", time);
}

}  // namespace

// "0.81 is worse than the cut-off 0.842 of 9 values at iteration 3".
std::string AshaScheduler::stop_reason(double value, double cut_off, std::size_t others,
                                       double milestone) const {
  using namespace std::literals;  // their lengths are known
  std::string text;
  text.reserve(96);
  std::size_t count = others;
  if (std::isnan(value)) {
    text = "nan is worse than any";
  } else if (options_.rule == AshaRule::kTop) {
    ++count;
    append_number(text, signed_value(value));
    text += " is not among the best "sv;
    append_integer(text, static_cast<std::int64_t>(count - position_.below(count)));
  } else {
    append_number(text, signed_value(value));
    text += " is worse than the cut-off "sv;
    append_number(text, signed_value(cut_off));
  }
  text += " of "sv;
  append_integer(text, static_cast<std::int64_t>(count));
  text += count == 1 ? " value at "sv : " values at "sv;
  text += short_time_name(options_.time_attr);
  text += ' ';
  append_time(text, milestone);
  return text;
}

void AshaScheduler::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  if (end == TrialEnd::kError || last == nullptr) return;
  TrialState& state = state_of(trial);
  const ResultView result(*last);
  const std::optional<double> time = result.number(options_.time_attr);
  if (!time) return;
  const std::uint32_t upto = reached(state, *time);
  if (upto == state.recorded) return;
  if (has_merits()) {
    const std::optional<MeritNumbers> found = numbers(result);
    if (!found) return;
    fronts_[state.bracket][upto - 1].add(merit(*found));
  } else {
    const std::optional<double> value = result.number(objective().metric);
    if (!value) return;
    brackets_[state.bracket][upto - 1].add(signed_value(*value));
  }
  state.recorded = upto;
}

std::vector<std::string> AshaScheduler::status_lines() const {
  std::vector<std::string> lines = {fmt::format("Using AsyncHyperBand: num_stopped={}", stopped_)};
  for (std::size_t s = 0; s < brackets_.size(); ++s) {
    std::vector<RungText> texts;
    for (std::size_t k = 0; k < brackets_[s].size(); ++k) {
      const Rung& rung = brackets_[s][k];
      texts.push_back({rung.milestone(),
                       has_merits() ? fronts_text(fronts_[s][k]) : short_text(rung.cut_off())});
    }
    lines.push_back(bracket_line(texts));
  }
  return lines;
}

// ---- State

namespace {

struct RungState {
  double milestone = 0;
  Rung::Parts values;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.milestone, s.values.low, s.values.high);
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

[[noreturn]] void refuse_asha(const std::string& why) {
  refuse_scheduler_state("asha", why);
}

using Brackets = std::vector<std::vector<Rung>>;

// The same rungs with the saved values.
Brackets restored_rungs(Brackets brackets, SavedState& saved) {
  const char* const other_rungs = "it was saved with other rungs than these parameters give";
  if (saved.rungs.size() != brackets.size()) refuse_asha(other_rungs);
  for (std::size_t s = 0; s < brackets.size(); ++s) {
    if (saved.rungs[s].size() != brackets[s].size()) refuse_asha(other_rungs);
    for (std::size_t k = 0; k < brackets[s].size(); ++k) {
      const RungState& from = saved.rungs[s][k];
      if (from.milestone != brackets[s][k].milestone()) refuse_asha(other_rungs);
      if (!brackets[s][k].restore(from.values)) {
        refuse_asha("the values of a rung are not in the order of these parameters");
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
    for (const Rung& rung : rungs) all.push_back({rung.milestone(), rung.parts()});
  }
  PackWriter out;
  encode(out, saved);
  save_objective(out);
  if (!has_merits()) return out.take();
  for (const std::vector<Fronts>& rungs : fronts_) {
    for (const Fronts& rung : rungs) encode(out, rung.merits());
  }
  return out.take();
}

void AshaScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  SavedState saved;
  decode(in, saved);
  if (!in.at_end() || has_merits()) check_objective(in);  // states of before it was saved lack it
  std::vector<std::vector<Fronts>> fronts = fronts_;
  for (std::vector<Fronts>& rungs : fronts) {
    for (Fronts& rung : rungs) {
      if (has_merits()) read_merits(in, rung);
    }
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
  fronts_ = std::move(fronts);
}

}  // namespace tune
