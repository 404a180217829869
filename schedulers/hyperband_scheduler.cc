#include "schedulers/hyperband_scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"
#include "schedulers/rung.h"

namespace tune {

std::vector<BracketPlan> bracket_plans(const HyperBandOptions& options) {
  std::vector<double> milestones;
  for (double at = options.grace_period; at < options.max_t; at *= options.reduction_factor) {
    milestones.push_back(at);
  }
  std::vector<BracketPlan> plans;
  const auto kinds = static_cast<double>(milestones.size() + 1);
  for (std::size_t skipped = 0; skipped <= milestones.size(); ++skipped) {
    BracketPlan& plan = plans.emplace_back();
    const std::size_t halvings = milestones.size() - skipped;
    plan.milestones.assign(milestones.begin() + static_cast<std::ptrdiff_t>(skipped),
                           milestones.end());
    for (std::size_t rung = 0; rung <= halvings; ++rung) {
      const double power = std::pow(options.reduction_factor, static_cast<double>(halvings - rung));
      plan.sizes.push_back(
          static_cast<std::size_t>(std::ceil(kinds * power / static_cast<double>(halvings + 1))));
    }
  }
  return plans;
}

HyperBandScheduler::HyperBandScheduler(HyperBandOptions options)
    : MetricScheduler("hyperband", {options.metric, options.mode}),
      options_(std::move(options)),
      plans_(bracket_plans(options_)) {}

std::optional<double> HyperBandScheduler::max_t() const {
  if (!options_.stop_last_trials || options_.time_attr != "training_iteration") return std::nullopt;
  return options_.max_t;
}

HyperBandScheduler::TrialState& HyperBandScheduler::state_of(TrialNumber trial) {
  TUNE_CHECK(trial.value < trials_.size());
  return trials_[trial.value];
}

// ---- Who joins which bracket

bool HyperBandScheduler::is_full(std::uint32_t number, const Bracket& bracket) const {
  return bracket.is_closed || bracket.added >= plan(number).sizes.front();
}

// The newest bracket while it is not full, else a new one.
std::uint32_t HyperBandScheduler::join() {
  const bool has_room =
      !brackets_.empty() && !is_full(brackets_.rbegin()->first, brackets_.rbegin()->second);
  const std::uint32_t number = has_room ? brackets_.rbegin()->first : next_bracket_++;
  Bracket& bracket = brackets_[number];
  ++bracket.added;
  ++bracket.on_way;
  return number;
}

Milestone HyperBandScheduler::add_trial(TrialNumber trial) {
  const bool is_again = trial.value < trials_.size();
  if (!is_again) trials_.resize(trial.value + 1);
  TrialState& state = trials_[trial.value];
  if (is_again && state.is_over) {
    join_again(trial, state);
  } else {
    state = {join(), 0, false, false};
  }
  return until(options_.time_attr, next_stop(state));
}

// One that failed comes to the rung of its bracket again, or on its way to max_t goes on; or it
// joins another bracket when the others have gone on.
void HyperBandScheduler::join_again(TrialNumber trial, TrialState& state) {
  const auto found = brackets_.find(state.bracket);
  const bool is_there = found != brackets_.end() && found->second.rung == state.rung;
  const bool needs_none = state.rung >= plan(state.bracket).milestones.size();
  if (!is_there && !needs_none) {
    state = {join(), 0, false, false};
    return;
  }
  state.waits = state.is_over = false;
  if (!is_there) return;
  std::erase_if(found->second.arrived, [&](const Arrived& one) { return one.trial == trial; });
  ++found->second.on_way;
}

std::optional<double> HyperBandScheduler::next_stop(const TrialState& state) const {
  const std::vector<double>& milestones = plan(state.bracket).milestones;
  if (state.rung < milestones.size()) return milestones[state.rung];
  if (options_.stop_last_trials) return options_.max_t;
  return std::nullopt;
}

// ---- Results

Decision HyperBandScheduler::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  auto judged = read(result, options_.time_attr, next_stop(state),
                     options_.stop_last_trials ? std::optional(options_.max_t) : std::nullopt);
  if (auto* decision = std::get_if<Decision>(&judged)) {
    if (decision->kind == Decision::Kind::kStop) ++stopped_;
    return std::move(*decision);
  }
  const auto& [time, value, numbers] = std::get<Judged>(judged);
  Arrived arrived{trial, 0};
  if (has_merits()) {
    arrived.merit = merit(numbers);
  } else {
    arrived.value = signed_value(value);
  }
  if (std::isnan(value) || std::isinf(arrived.merit.violation)) {
    return stop(fmt::format("nan is worse than any value at {} {:.10g}",
                            short_time_name(options_.time_attr), time));
  }
  Bracket& bracket = brackets_.at(state.bracket);
  bracket.arrived.push_back(arrived);
  --bracket.on_way;
  state.waits = true;
  Decision decision = Decision::pause(pause_reason(state, arrived));
  decision.place = place(state, value);
  halve_when_complete(state.bracket);
  return decision;
}

// Of the newest that has come to its bracket's rung; there is no cut-off before all have.
RungPlace HyperBandScheduler::place(const TrialState& state, double value) const {
  const std::vector<Arrived>& arrived = brackets_.at(state.bracket).arrived;
  RungPlace place{plan(state.bracket).milestones[state.rung], value, {}, 1, arrived.size()};
  if (has_merits()) {
    Fronts fronts;
    for (const Arrived& one : arrived) fronts.add(one.merit);
    place = front_place(fronts, arrived.size() - 1, place.milestone);
  } else {
    for (const Arrived& one : arrived) place.rank += is_worse(arrived.back().value, one.value);
  }
  place.bracket = state.bracket;
  return place;
}

Decision HyperBandScheduler::stop(std::string reason) {
  ++stopped_;
  return Decision::stop(std::move(reason));
}

// "0.81 waits at iteration 3: 4 of 9 have come, the best 3 go on".
std::string HyperBandScheduler::pause_reason(const TrialState& state,
                                             const Arrived& arrived) const {
  const BracketPlan& kind = plan(state.bracket);
  const Bracket& bracket = brackets_.at(state.bracket);
  return fmt::format("{} waits at {} {:.10g}: {} of {} have come, the best {} go on",
                     has_merits() ? merit_text(arrived.merit) : full_text(arrived.value),
                     short_time_name(options_.time_attr), kind.milestones[state.rung],
                     bracket.arrived.size(), kind.sizes[state.rung], kind.sizes[state.rung + 1]);
}

// Of those that wait at the bracket's rung, the ones that go on; the best first, of equal ones that
// which came first. As many as its share of a full bracket.
std::vector<TrialNumber> HyperBandScheduler::best_of(std::uint32_t number,
                                                     const Bracket& bracket) const {
  std::vector<Arrived> waiting;
  for (const Arrived& one : bracket.arrived) {
    if (!trials_[one.trial.value].is_over) waiting.push_back(one);
  }
  const std::vector<std::size_t>& sizes = plan(number).sizes;
  const std::size_t places =
      (bracket.added * sizes[bracket.rung + 1] + sizes.front() - 1) / sizes.front();
  std::vector<TrialNumber> best;
  for (const Arrived& one : in_order(std::move(waiting))) {
    if (best.size() < places) best.push_back(one.trial);
  }
  return best;
}

std::vector<HyperBandScheduler::Arrived> HyperBandScheduler::in_order(
    std::vector<Arrived> waiting) const {
  if (!has_merits()) {
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const Arrived& a, const Arrived& b) { return is_worse(b.value, a.value); });
    return waiting;
  }
  Fronts fronts;
  for (const Arrived& one : waiting) fronts.add(one.merit);
  std::vector<Arrived> ordered;
  for (const std::uint32_t at : fronts.best(waiting.size())) ordered.push_back(waiting[at]);
  return ordered;
}

void HyperBandScheduler::halve_when_complete(std::uint32_t number) {
  const auto found = brackets_.find(number);
  if (found == brackets_.end()) return;
  Bracket& bracket = found->second;
  if (bracket.on_way > 0 || !is_full(number, bracket)) return;
  const bool halves = bracket.rung < plan(number).milestones.size();
  if (halves) bracket.going_on = best_of(number, bracket);
  if (!halves || bracket.going_on.empty()) {
    brackets_.erase(found);
    return;
  }
  ++bracket.rung;
  bracket.arrived.clear();
  bracket.on_way = static_cast<std::uint32_t>(bracket.going_on.size());
  for (const TrialNumber trial : bracket.going_on) trials_[trial.value].rung = bracket.rung;
  ready_.insert(number);
}

void HyperBandScheduler::end_trial(TrialNumber trial, TrialEnd, const Reported*) {
  TrialState& state = state_of(trial);
  if (std::exchange(state.is_over, true)) return;
  const auto found = brackets_.find(state.bracket);
  if (found == brackets_.end() || found->second.rung != state.rung) return;
  Bracket& bracket = found->second;
  const bool went_on = state.waits && std::erase(bracket.going_on, trial) > 0;
  if (bracket.going_on.empty()) ready_.erase(state.bracket);
  if (!state.waits || went_on) --bracket.on_way;
  halve_when_complete(state.bracket);
}

// ---- Who goes on

// The bracket that is not full while all of its trials that are not over wait.
const HyperBandScheduler::Brackets::value_type* HyperBandScheduler::closing() const {
  if (brackets_.empty()) return nullptr;
  const auto& newest = *brackets_.rbegin();
  const auto& [number, bracket] = newest;
  const bool waits = bracket.on_way == 0 && !bracket.arrived.empty();
  return waits && !is_full(number, bracket) ? &newest : nullptr;
}

// Those that may go on and are not candidates are still saving: not more than run. Without a new
// trial none will join the bracket that is not full.
std::optional<TrialNumber> HyperBandScheduler::choose(const Candidates& candidates) const {
  for (const std::uint32_t number : ready_) {
    for (const TrialNumber trial : brackets_.at(number).going_on) {
      if (candidates.contains(trial)) return trial;
    }
  }
  if (const auto pending = candidates.first_pending()) return pending;
  if (const auto* left = closing()) {
    for (const TrialNumber trial : best_of(left->first, left->second)) {
      if (candidates.contains(trial)) return trial;
    }
  }
  return std::nullopt;
}

Milestone HyperBandScheduler::resume_trial(TrialNumber trial) {
  TrialState& state = state_of(trial);
  if (const auto* left = closing(); left != nullptr && left->first == state.bracket) {
    brackets_.at(state.bracket).is_closed = true;
    halve_when_complete(state.bracket);
  }
  if (const auto found = brackets_.find(state.bracket); found != brackets_.end()) {
    std::erase(found->second.going_on, trial);
    if (found->second.going_on.empty()) ready_.erase(state.bracket);
  }
  state.waits = false;
  return until(options_.time_attr, next_stop(state));
}

std::vector<std::string> HyperBandScheduler::status_lines() const {
  std::vector<std::string> lines = {
      fmt::format("Using HyperBand: num_stopped={} total_brackets={}", stopped_, next_bracket_)};
  constexpr std::size_t kMaxShown = 8;
  for (const auto& [number, bracket] : brackets_) {
    if (lines.size() > kMaxShown) {
      lines.push_back(fmt::format("and {} more", brackets_.size() - kMaxShown));
      break;
    }
    const BracketPlan& kind = plan(number);
    const bool halves = bracket.rung < kind.milestones.size();
    lines.push_back(fmt::format("Bracket {}: Iter {:.3f}, {} wait, {} on the way", number,
                                halves ? kind.milestones[bracket.rung] : options_.max_t,
                                bracket.arrived.size(), bracket.on_way));
  }
  return lines;
}

// ---- State

std::string HyperBandScheduler::save() const {
  PackWriter out;
  encode(out, std::string("hyperband"));
  encode(out,
         std::vector<double>{options_.max_t, options_.grace_period, options_.reduction_factor});
  encode(out, stopped_);
  encode(out, next_bracket_);
  encode(out, trials_);
  out.array(brackets_.size());
  for (const auto& [number, bracket] : brackets_) {
    encode(out, number);
    encode(out, bracket);
  }
  save_objective(out);
  return out.take();
}

void HyperBandScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  std::string name;
  std::vector<double> rungs;
  HyperBandScheduler made(*this);
  made.brackets_.clear();
  made.ready_.clear();
  decode(in, name);
  decode(in, rungs);
  decode(in, made.stopped_);
  decode(in, made.next_bracket_);
  decode(in, made.trials_);
  for (std::size_t left = in.array(); left > 0; --left) {
    std::uint32_t number = 0;
    decode(in, number);
    Bracket& bracket = made.brackets_[number];
    decode(in, bracket);
    if (!bracket.going_on.empty()) made.ready_.insert(number);
  }
  check_objective(in);
  in.expect_end();
  if (name != "hyperband") refuse_state("it was saved by another scheduler");
  if (rungs != std::vector{options_.max_t, options_.grace_period, options_.reduction_factor}) {
    refuse_state("it was saved with other rungs than these parameters give");
  }
  made.check_counts();
  *this = std::move(made);
}

// That trials and brackets say the same of each other.
void HyperBandScheduler::check_counts() const {
  std::map<std::uint32_t, std::size_t> on_way;
  for (const TrialState& state : trials_) {
    if (state.bracket >= next_bracket_ || state.rung >= plan(state.bracket).sizes.size()) {
      refuse_state("a trial is in a bracket or at a rung that does not exist");
    }
    const auto found = brackets_.find(state.bracket);
    const bool runs = found != brackets_.end() && found->second.rung == state.rung &&
                      !state.waits && !state.is_over;
    if (runs) ++on_way[state.bracket];
  }
  for (const auto& [number, bracket] : brackets_) {
    bool fits = number < next_bracket_ && bracket.rung < plan(number).sizes.size() &&
                bracket.on_way == on_way[number] + bracket.going_on.size();
    for (const Arrived& one : bracket.arrived) {
      fits = fits && one.trial.value < trials_.size() && is_own(one.merit);
    }
    for (const TrialNumber one : bracket.going_on) fits = fits && one.value < trials_.size();
    if (!fits) refuse_state("a bracket has other trials than those that say so");
  }
}

}  // namespace tune
