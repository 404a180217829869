#include "tune/search/tpe/evidence.h"

#include <algorithm>

#include "schedulers/fronts.h"
#include "tune/search/comparable_results.h"

namespace tune::search::tpe {

namespace {

struct Ranked {
  std::size_t trial = 0;
  bool completed = false;
  std::uint64_t iteration = 0;
  double value = 0;
  bool kept = true;  // all constraints
};

bool is_better(const Ranked& a, const Ranked& b) {
  if (a.completed != b.completed) return a.completed;
  if (!a.completed && a.iteration != b.iteration) return a.iteration > b.iteration;
  if (a.value != b.value) return a.value > b.value;
  return a.trial < b.trial;
}

std::vector<Ranked> ranked(const std::vector<ComparableResult>& results) {
  std::vector<Ranked> all;
  all.reserve(results.size());
  for (const ComparableResult& each : results) {
    all.push_back({each.trial, each.completed, each.value->iteration, each.value->value, true});
  }
  return all;
}

// Of several numbers the place in the order of fronts takes the part of the value, over all trials
// alike: completed ones are not before others that dominate them.
std::vector<Ranked> ranked_by_fronts(const std::vector<ComparableResult>& results,
                                     const History& history) {
  std::vector<Merit> merits;
  for (const ComparableResult& each : results) merits.push_back(history.merit(*each.value));
  const std::vector<std::size_t> order = best_first(merits);
  std::vector<Ranked> all(results.size());
  double place = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t i = order[at];
    if (at > 0 && !(merits[i] == merits[order[at - 1]])) place = static_cast<double>(at);
    all[i] = {results[i].trial, true, 0, -place, merits[i].violation == 0};
  }
  return all;
}

// The number of good ones of the results: none that breaks constraints, where one keeps them.
std::size_t good_among(const std::vector<Ranked>& results) {
  const auto kept = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const Ranked& each) { return each.kept; }));
  const std::size_t good = good_of(results.size());
  return kept > 0 ? std::min(good, kept) : good;
}

// Whether one of the results says more than another.
bool differ(const std::vector<Ranked>& results) {
  return std::any_of(results.begin(), results.end(),
                     [&](const Ranked& each) { return each.value != results.front().value; });
}

enum class Side : char { kNone, kGood, kOther };

// Of the trials that have results, by their places in the history.
std::vector<Side> sides_of(std::vector<Ranked> results, std::size_t trials) {
  std::vector<Side> sides(trials, Side::kNone);
  for (const Ranked& each : results) sides[each.trial] = Side::kOther;
  const auto good_end = results.begin() + static_cast<std::ptrdiff_t>(good_among(results));
  std::partial_sort(results.begin(), good_end, results.end(), is_better);
  std::for_each(results.begin(), good_end,
                [&](const Ranked& each) { sides[each.trial] = Side::kGood; });
  return sides;
}

// Without a result, a trial that runs belongs to the others, and so does one that failed.
bool counts_without(const KnownTrial& trial) {
  return trial.standing == Standing::kRunning ||
         (trial.standing == Standing::kFailed && !trial.newest);
}

}  // namespace

std::size_t good_of(std::size_t results) {
  return std::min((results + 9) / 10, kMostGood);
}

Evidence evidence(const History& history, std::size_t parameters, std::size_t more) {
  const auto& trials = history.trials();
  Evidence found;
  const ComparableResults known = comparable_results(history);
  found.stopped_early = known.stopped_early;
  std::vector<Ranked> results =
      history.goals() > 0 ? ranked_by_fronts(known.results, history) : ranked(known.results);
  found.results_known = static_cast<std::uint32_t>(results.size());
  if (!differ(results)) found.trouble = "all results are alike";

  const std::vector<Side> sides = sides_of(std::move(results), trials.size());
  std::vector<const UnitPoint*> good;
  std::vector<const UnitPoint*> others;
  others.reserve(trials.size());
  std::size_t i = 0;
  for (const KnownTrial& trial : trials) {
    const Side side = sides[i];
    if (side == Side::kGood) {
      found.good.push_back(i);
      good.push_back(&trial.point);
    } else if (side == Side::kOther) {
      others.push_back(&trial.point);
    } else if (counts_without(trial)) {
      others.push_back(&trial.point);
      if (trial.standing == Standing::kRunning) ++found.pending_known;
    }
    ++i;
  }
  found.good_points = Columns<double>(parameters, kMostGood);
  found.good_points.add(good);
  found.other_points = Columns<float>(parameters, trials.size() + more);
  found.other_points.add(others);
  return found;
}

}  // namespace tune::search::tpe
