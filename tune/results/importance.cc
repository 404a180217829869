#include "tune/results/importance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/results/analysis.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/ranked_trial.h"
#include "tune/results/recorded_trials.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/ped_anova.h"

namespace tune {

namespace {

using search::gp::Observation;

// The rung of a history nearest to so many steps.
long rung_of(const ValueAt& value) {
  const double steps = std::max(1.0, static_cast<double>(value.iteration));
  return std::lround(std::log(steps) / std::log(kRungFactor));
}

// Larger is better: first how far a trial got, then its rank among those that got about as far. One
// that completed early and is as good as the best of all that got further counts as one of them.
std::vector<double> scores_of(const std::vector<Observation>& observations) {
  std::map<long, std::vector<double>> values;  // by rung
  for (const Observation& one : observations)
    values[rung_of(one.result)].push_back(one.result.value);
  std::map<long, double> best_beyond;  // the best value of higher rungs
  double best = -std::numeric_limits<double>::infinity();
  for (auto rung = values.rbegin(); rung != values.rend(); ++rung) {
    best_beyond[rung->first] = best;
    std::sort(rung->second.begin(), rung->second.end());
    best = std::max(best, rung->second.back());
  }
  std::vector<double> scores;
  for (const Observation& one : observations) {
    const long rung = rung_of(one.result);
    const std::vector<double>& beside = values[rung];
    const auto worse = std::lower_bound(beside.begin(), beside.end(), one.result.value);
    const double rank =
        static_cast<double>(worse - beside.begin()) / static_cast<double>(beside.size());
    const bool is_at_top = one.completed && one.result.value >= best_beyond[rung];
    scores.push_back(static_cast<double>(is_at_top ? values.rbegin()->first : rung) + rank);
  }
  return scores;
}

// "optimiser is sgd": a map goes by its first constant.
std::string when_of(const Encoding& encoding, const Parameter& parameter) {
  if (!parameter.condition) return {};
  const Parameter& on = encoding.parameters()[parameter.condition->choice];
  const Value& option =
      std::get<Domain::Choice>(on.domain.domain().kind()).values[parameter.condition->option];
  std::string name = option.dump();
  for (const auto& [path, value] : option.leaves()) {
    if (value->is_null()) continue;
    name = value->is_string() ? value->string() : value->dump();
    break;
  }
  return fmt::format("{} is {}", on.path, name);
}

struct Known {
  History history;
  std::size_t outside = 0;
  std::size_t without_value = 0;
};

void add(History& history, TrialNumber number, const RankedTrial& trial) {
  history.add(number, trial.point);
  for (const ValueAt& one : trial.values) history.result(number, one.iteration, one.value);
  switch (trial.standing) {
    case Standing::kRunning:
      return;
    case Standing::kPaused:
      return history.pause(number);
    case Standing::kStopped:
      return history.end(number, TrialEnd::kStopped);
    case Standing::kCompleted:
      return history.end(number, TrialEnd::kCompleted);
    case Standing::kFailed:
      return history.end(number, TrialEnd::kError);
  }
}

Known known_of(const std::vector<const RankedTrial*>& trials, Mode mode) {
  Known known{History(mode)};
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const RankedTrial& trial = *trials[i];
    const bool counts = !trial.values.empty() || trial.standing == Standing::kFailed;
    if (!counts) {
      ++known.without_value;
    } else if (trial.is_outside) {
      ++known.outside;
    } else {
      add(known.history, TrialNumber{static_cast<std::uint32_t>(i)}, trial);
    }
  }
  return known;
}

void refuse_too_few(const ImportanceOf& asked, std::size_t count, const Known& known) {
  if (count >= kFewestForImportance) return;
  std::string why = fmt::format("{} trials have a value that counts, at least {} are needed", count,
                                kFewestForImportance);
  if (known.without_value > 0) {
    why += fmt::format("; {} have none", known.without_value);
  }
  if (known.outside > 0) why += fmt::format("; {} lie outside the space", known.outside);
  refuse_importance(asked, why);
}

}  // namespace

void refuse_importance(const ImportanceOf& asked, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("importance of the parameters of {} for '{}': {}",
                                                asked.directory.string(), asked.metric, why));
}

RankedTrial ranked_trial(const RecordedTrial& trial, const Encoding& encoding) {
  Encoded encoded = encoding.encode(trial.config);
  const bool is_outside = !encoded.complaint.empty();
  return {std::move(encoded.point), is_outside, trial.standing, trial.values};
}

Importance importance_of(const std::vector<const RankedTrial*>& trials, const Encoding& encoding,
                         const ImportanceOf& asked) {
  Importance found;
  found.metric = asked.metric;
  found.mode = asked.mode;
  if (encoding.size() == 0) refuse_importance(asked, "nothing in its config is searched");
  const Known known = known_of(trials, found.mode);
  const std::size_t all = trials.size();
  const auto set = search::gp::training_set(known.history, {all + 1, all, 0});
  found.trials = set.observations.size();
  found.outside = known.outside;
  refuse_too_few(asked, found.trials, known);
  const double first = set.observations.front().result.value;
  if (std::ranges::all_of(set.observations,
                          [&](const Observation& one) { return one.result.value == first; })) {
    refuse_importance(asked, fmt::format("all {} values are alike", found.trials));
  }
  std::vector<UnitPoint> points;
  for (const Observation& one : set.observations) points.push_back(one.point);
  const std::vector<ParameterImportance> all_of =
      ped_anova(encoding, points, scores_of(set.observations));
  found.best = best_of(found.trials);
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const Parameter& parameter = encoding.parameters()[i];
    found.parameters.push_back({parameter.path, when_of(encoding, parameter), all_of[i].share,
                                all_of[i].stands_out, all_of[i].trials});
  }
  std::ranges::stable_sort(found.parameters,
                           [](const auto& a, const auto& b) { return a.share > b.share; });
  return found;
}

Importance Analysis::importance(std::string_view metric, std::optional<Mode> mode) const {
  ImportanceOf asked{directory_, metric.empty() ? objective_.metric : std::string(metric), {}};
  asked.mode = mode.value_or(mode_for(asked.metric));
  if (asked.metric.empty() && !objective_.goals.empty()) {
    const std::string& first = objective_.goals.front().metric;
    throw Error(ErrorCode::kBadInput,
                fmt::format("importance of the parameters of {}: it has {} objectives: say which "
                            "one, as in --metric {}, or importance(\"{}\")",
                            directory_.string(), objective_.goals.size(), first, first));
  }
  best_trial(asked.metric, asked.mode);  // or why there is none
  const Encoding encoding = encoding_of(read_spec(directory_).options.config);
  std::vector<RankedTrial> trials;
  for (const RecordedTrial& one : recorded_trials(*this, asked.metric)) {
    trials.push_back(ranked_trial(one, encoding));
  }
  std::vector<const RankedTrial*> all;
  for (const RankedTrial& one : trials) all.push_back(&one);
  return importance_of(all, encoding, asked);
}

}  // namespace tune
