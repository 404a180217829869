#include "schedulers/median_scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

MedianScheduler::MedianScheduler(MedianStoppingOptions options)
    : MetricScheduler("median_stopping", {options.metric, options.mode}),
      options_(std::move(options)),
      position_(options_.rule == MedianRule::kMean ? CutOffPosition::majority()
                                                   : CutOffPosition(AshaRule::kRay, 2)) {}

MedianScheduler::TrialState& MedianScheduler::state_of(TrialNumber trial) {
  TUNE_CHECK(trial.value < trials_.size());
  return trials_[trial.value];
}

double MedianScheduler::step(std::size_t index) {
  constexpr double kLargestShare = 0.01;
  while (steps_.size() <= index) {
    const double last = steps_.empty() ? 0 : steps_.back().milestone();
    const double next = last + std::max(1.0, last * kLargestShare);
    steps_.emplace_back(steps_.empty() ? options_.grace_period : next, position_);
    fronts_.emplace_back();
  }
  return steps_[index].milestone();
}

Milestone MedianScheduler::add_trial(TrialNumber trial) {
  if (trials_.size() <= trial.value) trials_.resize(trial.value + 1);
  return next_stop(trials_[trial.value]);
}

Milestone MedianScheduler::next_stop(const TrialState& state) {
  return {options_.time_attr, step(state.steps)};
}

// Whether the result has a time from grace_period on, and a value; then it counts.
bool MedianScheduler::take(TrialState& state, const ResultView& result) {
  const std::optional<double> time = result.number(options_.time_attr);
  const bool is_in_time = time && *time >= options_.grace_period && !std::isinf(*time);
  state.seen = result.iteration();
  if (has_merits()) {
    const std::optional<MeritNumbers> found = numbers(result);
    if (!found || !is_in_time) return false;
    state.sums.resize(found->size());
    for (std::size_t i = 0; i < found->size(); ++i) state.sums[i] += (*found)[i];
  } else {
    const std::optional<double> value = result.number(objective().metric);
    if (!value) return false;
    const double signed_one = signed_value(*value);
    if (is_worse(state.best, signed_one)) state.best = signed_one;
    if (!is_in_time) return false;
    state.sum += signed_one;
  }
  ++state.count;
  return true;
}

Merit MedianScheduler::mean_merit(const TrialState& state) const {
  MeritNumbers means = state.sums;
  for (double& mean : means) mean /= static_cast<double>(state.count);
  return merit(means);
}

Decision MedianScheduler::result(TrialNumber trial, const ResultView& result) {
  TrialState& state = state_of(trial);
  const bool counts = take(state, result);
  const std::optional<double> time = result.number(options_.time_attr);
  Milestone next = next_stop(state);
  const bool is_asked = time && *time >= next.value && std::isfinite(*time);  // false for NaN
  if (!is_asked) return Decision::go_on(std::move(next));
  // Without the metric there is nothing to judge: look again at the next report.
  if (!counts) return Decision::go_on({options_.time_attr, *time});
  return has_merits() ? judge_merit(state, *time) : judge(state, *time);
}

// Judges at the highest step reached; the mean fills it and the lower ones without the trial.
Decision MedianScheduler::judge(TrialState& state, double time) {
  const double mean = state.sum / static_cast<double>(state.count);
  std::optional<double> cut_off;
  std::size_t others = 0;
  for (; step(state.steps) <= time; ++state.steps) {
    Rung& rung = steps_[state.steps];
    others = rung.size();
    cut_off = rung.cut_off();
    rung.add(mean);
  }
  const Rung& rung = steps_[state.steps - 1];
  const double value = options_.rule == MedianRule::kMean ? mean : state.best;
  const bool may_stop = others >= static_cast<std::size_t>(options_.min_samples_required) &&
                        (options_.rule == MedianRule::kBest || others > 1);
  if (!may_stop || !(std::isnan(value) || is_worse(value, *cut_off))) {
    return Decision::go_on(next_stop(state));
  }
  ++stopped_;
  return Decision::stop(stop_reason(value, rung));
}

Decision MedianScheduler::judge_merit(TrialState& state, double time) {
  const Merit mean = mean_merit(state);
  for (; step(state.steps) <= time; ++state.steps) fronts_[state.steps].add(mean);
  const Fronts& step = fronts_[state.steps - 1];
  const std::size_t others = step.size() - 1;
  const std::size_t place = step.place(others);
  const bool may_stop =
      others > 1 && others >= static_cast<std::size_t>(options_.min_samples_required);
  const bool is_none = !std::isfinite(mean.violation);
  if (!may_stop || (!is_none && 2 * place <= step.size())) {
    return Decision::go_on(next_stop(state));
  }
  ++stopped_;
  return Decision::stop(
      fmt::format("mean {} is at place {} of {} by non-dominated rank at {} "
                  "{:.10g}",
                  merit_text(mean), place + 1, step.size(), short_time_name(options_.time_attr),
                  steps_[state.steps - 1].milestone()));
}

// "mean 0.41 is worse than those of more than half of 9 trials at iteration 3".
std::string MedianScheduler::stop_reason(double value, const Rung& rung) const {
  const bool by_mean = options_.rule == MedianRule::kMean;
  return fmt::format("{} {} is worse than {} at {} {:.10g}", by_mean ? "mean" : "best value",
                     full_text(value),
                     by_mean ? fmt::format("those of more than half of {} trials", rung.size())
                             : fmt::format("the median of {} others' means", rung.size() - 1),
                     short_time_name(options_.time_attr), rung.milestone());
}

// A last result that was not told before counts, unjudged.
void MedianScheduler::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  TrialState& state = state_of(trial);
  if (end == TrialEnd::kError || last == nullptr) return;
  const ResultView result(*last);
  if (result.iteration() <= state.seen || !take(state, result)) return;
  const double mean = state.sum / static_cast<double>(state.count);
  const double time = *result.number(options_.time_attr);
  for (; step(state.steps) <= time; ++state.steps) {
    if (has_merits()) {
      fronts_[state.steps].add(mean_merit(state));
    } else {
      steps_[state.steps].add(mean);
    }
  }
}

std::vector<std::string> MedianScheduler::status_lines() const {
  return {fmt::format("Using MedianStoppingRule: num_stopped={}.", stopped_)};
}

// ---- State

std::string MedianScheduler::save() const {
  std::vector<Rung::Parts> steps;
  for (const Rung& rung : steps_) steps.push_back(rung.parts());
  PackWriter out;
  encode(out, std::string("median_stopping"));
  encode(out, stopped_);
  encode(out, options_.grace_period);
  encode(out, trials_);
  encode(out, steps);
  save_objective(out);
  if (!has_merits()) return out.take();
  for (const Fronts& step : fronts_) encode(out, step.merits());
  return out.take();
}

void MedianScheduler::restore(std::string_view bytes) {
  PackReader in(bytes);  // may be larger than a frame
  std::string name;
  std::vector<Rung::Parts> steps;
  double grace_period = 0;
  MedianScheduler made(*this);
  made.steps_.clear();
  made.fronts_.clear();
  decode(in, name);
  decode(in, made.stopped_);
  decode(in, grace_period);
  decode(in, made.trials_);
  decode(in, steps);
  check_objective(in);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    made.step(i);
    if (has_merits()) read_merits(in, made.fronts_[i]);
  }
  in.expect_end();
  if (name != "median_stopping") refuse_state("it was saved by another scheduler");
  if (grace_period != options_.grace_period) refuse_state("it was saved with other steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!made.steps_[i].restore(steps[i])) {
      refuse_state("the values of a step are not in the order of these parameters");
    }
  }
  for (const TrialState& state : made.trials_) {
    if (state.steps > steps.size()) refuse_state("a trial is at a step that does not exist");
    const bool sums_fit = state.sums.empty() || has_merits();
    if (!sums_fit) refuse_state("a trial has sums of several metrics");
  }
  *this = std::move(made);
}

}  // namespace tune
