#include "tune/search/comparable_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tune {

namespace {

const ValueAt kWorst = {0, -std::numeric_limits<double>::infinity()};

bool was_kept_back(const KnownTrial& trial) {
  return trial.standing == Standing::kPaused || trial.standing == Standing::kStopped;
}

// The first value at or after so many steps.
const ValueAt* value_at(const KnownTrial& trial, double steps) {
  for (const ValueAt& each : trial.rungs) {
    if (static_cast<double>(each.iteration) >= steps) return &each;
  }
  return nullptr;
}

// The steps of the highest rung that enough trials have reached; 0: of none.
double highest_full_rung(const History& history) {
  std::vector<std::size_t> reached;  // by rung
  for (const KnownTrial& trial : history.trials()) {
    if (trial.rungs.empty()) continue;
    const auto last = static_cast<double>(trial.rungs.back().iteration);
    std::size_t rungs = 0;
    for (double steps = 1; steps <= last; steps *= kRungFactor) ++rungs;
    if (reached.size() < rungs) reached.resize(rungs);
    ++reached[rungs - 1];
  }
  std::size_t sum = 0;
  for (std::size_t rung = reached.size(); rung-- > 0;) {
    sum += reached[rung];
    if (sum >= kFewestOnRung) return std::pow(kRungFactor, static_cast<double>(rung));
  }
  return 0;
}

std::vector<ComparableResult> results_at(double steps, const History& history) {
  std::vector<ComparableResult> results;
  for (std::size_t i = 0; i < history.trials().size(); ++i) {
    const ValueAt* value = value_at(history.trials()[i], steps);
    if (value != nullptr) results.push_back({i, true, value});
  }
  return results;
}

// The values at which trials ended.
ComparableResults ended_results(const History& history) {
  ComparableResults found;
  found.results.reserve(history.trials().size());
  std::size_t i = 0;
  for (const KnownTrial& trial : history.trials()) {
    const std::size_t at = i++;
    if (trial.standing == Standing::kRunning) continue;
    if (was_kept_back(trial)) found.stopped_early = true;
    const bool completed = trial.standing == Standing::kCompleted;
    if (trial.newest) {
      found.results.push_back({at, completed, &*trial.newest});
    } else if (trial.standing == Standing::kFailed) {
      found.results.push_back({at, false, &kWorst});
    }
  }
  return found;
}

}  // namespace

ComparableResults comparable_results(const History& history) {
  ComparableResults found = ended_results(history);
  const double rung = found.stopped_early ? highest_full_rung(history) : 0;
  if (rung > 0) found.results = results_at(rung, history);
  return found;
}

}  // namespace tune
