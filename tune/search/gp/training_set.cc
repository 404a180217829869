#include "tune/search/gp/training_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "schedulers/fronts.h"

namespace tune::search::gp {

namespace {

// The rung of the history nearest to so many steps.
int nearest_rung(std::uint64_t iteration) {
  const double steps = std::max(1.0, static_cast<double>(iteration));
  return static_cast<int>(std::lround(std::log(steps) / std::log(kRungFactor)));
}

// Where schedulers kept back or ended trials.
std::set<int> judged_rungs(const SharedBlocks<KnownTrial>& trials) {
  std::set<int> rungs;
  for (const KnownTrial& trial : trials) {
    const bool judged = trial.standing == Standing::kPaused || trial.standing == Standing::kStopped;
    if (judged && trial.newest) rungs.insert(nearest_rung(trial.newest->iteration));
  }
  return rungs;
}

// Nothing: pending, or it ended without having said anything.
std::optional<ValueAt> value_that_counts(const KnownTrial& trial, const std::set<int>& judged) {
  if (trial.standing == Standing::kFailed && !trial.newest) {
    return ValueAt{1, -std::numeric_limits<double>::infinity()};
  }
  if (trial.standing != Standing::kRunning) return trial.newest;
  if (trial.rungs.empty()) return std::nullopt;
  const ValueAt& passed = trial.rungs.back();
  if (!judged.contains(nearest_rung(passed.iteration))) return std::nullopt;
  return passed;
}

struct Counted {
  std::size_t trial = 0;
  ValueAt result;
  double worth = 0;  // its value, or its place among several numbers, counted backwards
};

void rank(std::vector<Counted>& counted, const History& history) {
  std::vector<Merit> merits;
  for (const Counted& each : counted) merits.push_back(history.merit(each.result));
  double place = 0;
  for (const std::size_t i : best_first(merits)) counted[i].worth = place--;
}

// The best by value, and besides the newest.
std::vector<Counted> limited(std::vector<Counted> counted, const TrainingLimits& limits) {
  if (counted.size() <= limits.observations) return counted;
  std::vector<Counted> by_value = counted;
  const auto best_end = by_value.begin() + static_cast<std::ptrdiff_t>(limits.best);
  std::nth_element(by_value.begin(), best_end, by_value.end(),
                   [](const Counted& a, const Counted& b) {
                     if (a.worth != b.worth) return a.worth > b.worth;
                     return a.trial > b.trial;
                   });
  std::vector<bool> taken(counted.back().trial + 1, false);
  std::for_each(by_value.begin(), best_end, [&](const Counted& each) { taken[each.trial] = true; });
  std::size_t room = limits.observations - limits.best;
  for (std::size_t i = counted.size(); i-- > 0 && room > 0;) {
    if (taken[counted[i].trial]) continue;
    taken[counted[i].trial] = true;
    --room;
  }
  std::erase_if(counted, [&](const Counted& each) { return !taken[each.trial]; });
  return counted;
}

}  // namespace

TrainingSet training_set(const History& history, const TrainingLimits& limits) {
  const SharedBlocks<KnownTrial>& trials = history.trials();
  const std::set<int> judged = judged_rungs(trials);
  TrainingSet set;
  set.stopped_early = !judged.empty();
  std::vector<Counted> counted;
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (const auto value = value_that_counts(trials[i], judged)) {
      counted.push_back({i, *value, value->value});
    } else if (trials[i].standing == Standing::kRunning) {
      pending.push_back(i);
    }
  }
  if (history.goals() > 0 && counted.size() > limits.observations) rank(counted, history);
  set.results_known = static_cast<std::uint32_t>(counted.size());
  set.pending_known = static_cast<std::uint32_t>(pending.size());
  for (const Counted& each : limited(std::move(counted), limits)) {
    const KnownTrial& trial = trials[each.trial];
    set.observations.push_back(
        {trial.number, trial.point, each.result, trial.standing == Standing::kCompleted});
  }
  const std::size_t skipped = pending.size() - std::min(pending.size(), limits.pending);
  for (std::size_t i = skipped; i < pending.size(); ++i) {
    set.pending.push_back(trials[pending[i]].point);
  }
  set.fingerprints.assign(history.fingerprints().begin(), history.fingerprints().end());
  std::sort(set.fingerprints.begin(), set.fingerprints.end());
  return set;
}

}  // namespace tune::search::gp
