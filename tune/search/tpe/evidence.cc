#include "tune/search/tpe/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tune::search::tpe {

namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

struct Ranked {
  std::size_t trial = 0;
  bool completed = false;
  std::uint64_t iteration = 0;
  double value = 0;
};

bool is_better(const Ranked& a, const Ranked& b) {
  if (a.completed != b.completed) return a.completed;
  if (!a.completed && a.iteration != b.iteration) return a.iteration > b.iteration;
  if (a.value != b.value) return a.value > b.value;
  return a.trial < b.trial;
}

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

std::vector<Ranked> results_at(double steps, const History& history) {
  std::vector<Ranked> results;
  for (std::size_t i = 0; i < history.trials().size(); ++i) {
    const ValueAt* value = value_at(history.trials()[i], steps);
    if (value != nullptr) results.push_back({i, true, value->iteration, value->value});
  }
  return results;
}

std::vector<Ranked> ended_results(const History& history) {
  std::vector<Ranked> results;
  for (std::size_t i = 0; i < history.trials().size(); ++i) {
    const KnownTrial& trial = history.trials()[i];
    if (trial.standing == Standing::kRunning) continue;
    const bool completed = trial.standing == Standing::kCompleted;
    if (trial.newest) {
      results.push_back({i, completed, trial.newest->iteration, trial.newest->value});
    } else if (trial.standing == Standing::kFailed) {
      results.push_back({i, false, 0, kWorst});
    }
  }
  return results;
}

// Whether one of the results says more than another.
bool differ(const std::vector<Ranked>& results) {
  return std::any_of(results.begin(), results.end(),
                     [&](const Ranked& each) { return each.value != results.front().value; });
}

enum class Side : char { kNone, kGood, kOther };

std::vector<Side> sides_of(std::vector<Ranked> results, const History& history) {
  std::vector<Side> sides;
  for (const KnownTrial& trial : history.trials()) {
    const bool failed = trial.standing == Standing::kFailed && !trial.newest;
    const bool counts = failed || trial.standing == Standing::kRunning;
    sides.push_back(counts ? Side::kOther : Side::kNone);
  }
  for (const Ranked& each : results) sides[each.trial] = Side::kOther;
  const auto good_end = results.begin() + static_cast<std::ptrdiff_t>(good_of(results.size()));
  std::nth_element(results.begin(), good_end, results.end(), is_better);
  std::for_each(results.begin(), good_end,
                [&](const Ranked& each) { sides[each.trial] = Side::kGood; });
  return sides;
}

}  // namespace

std::size_t good_of(std::size_t results) {
  return std::min((results + 9) / 10, kMostGood);
}

Evidence evidence(const History& history, std::size_t parameters, std::size_t more) {
  const auto& trials = history.trials();
  Evidence found;
  found.stopped_early = std::any_of(trials.begin(), trials.end(), was_kept_back);
  const double rung = found.stopped_early ? highest_full_rung(history) : 0;
  std::vector<Ranked> results = rung > 0 ? results_at(rung, history) : ended_results(history);
  found.results_known = static_cast<std::uint32_t>(results.size());
  if (!differ(results)) found.trouble = "all results are alike";
  std::vector<bool> has_result(trials.size());
  for (const Ranked& each : results) has_result[each.trial] = true;

  const std::vector<Side> sides = sides_of(std::move(results), history);
  found.good_points = Columns<double>(parameters, kMostGood);
  found.other_points = Columns<float>(parameters, trials.size() + more);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (sides[i] == Side::kGood) {
      found.good.push_back(i);
      found.good_points.add(trials[i].point);
    } else if (sides[i] == Side::kOther) {
      found.other_points.add(trials[i].point);
    }
    const bool runs = trials[i].standing == Standing::kRunning;
    if (runs && !has_result[i]) ++found.pending_known;
  }
  return found;
}

}  // namespace tune::search::tpe
