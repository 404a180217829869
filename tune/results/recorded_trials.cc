#include "tune/results/recorded_trials.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/json.h"
#include "tune/results/event_lines.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

// Outcomes of the newest attempts that ended, by trial's id.
std::map<std::string, std::string> read_outcomes(const std::filesystem::path& directory) {
  std::map<std::string, std::string> outcomes;
  for_each_event(directory, {"attempt_ended"}, [&](const Value& event) {
    outcomes[event.get<std::string>("trial")] = event.get<std::string>("outcome");
  });
  return outcomes;
}

std::vector<ValueAt> values_of(const TrialSummary& trial, const std::string& metric,
                               std::optional<std::uint64_t> end) {
  constexpr TrialNumber kOnly{0};
  History history;  // keeps what is wanted
  history.add(kOnly, {});
  std::uint64_t iteration = 0;
  for (const Result& result : trial.results()) {
    ++iteration;
    if (end && iteration > *end) break;
    const std::optional<double> value = number_at(result, iteration, metric);
    if (value) history.result(kOnly, iteration, *value);
  }
  const KnownTrial& known = *history.find(kOnly);
  std::vector<ValueAt> values = known.rungs;
  if (known.newest && (values.empty() || values.back() != *known.newest)) {
    values.push_back(*known.newest);
  }
  for (ValueAt& one : values) {
    if (!std::isfinite(one.value)) one.value = std::numeric_limits<double>::quiet_NaN();
  }
  return values;
}

}  // namespace

std::map<std::string, FirstReplaced> first_replaced(const std::filesystem::path& experiment) {
  std::map<std::string, FirstReplaced> replaced;
  for_each_event(experiment, {"replaced"}, [&](const Value& event) {
    const auto trial = event.get<std::string>("trial");
    replaced.try_emplace(trial, FirstReplaced{event.get<std::uint64_t>("iteration"),
                                              config_from_json(to_json(event.at("old")), trial)});
  });
  return replaced;
}

Standing standing_of(TrialStatus status, bool was_cut_short, bool was_replaced) {
  if (status == TrialStatus::kError) return Standing::kFailed;
  if (status == TrialStatus::kPaused) return Standing::kPaused;
  if (status != TrialStatus::kTerminated) return Standing::kRunning;
  return was_replaced || was_cut_short ? Standing::kStopped : Standing::kCompleted;
}

RecordedTrial recorded_trial(const TrialSummary& trial, const std::string& metric,
                             Standing standing, const FirstReplaced* replaced) {
  std::optional<std::uint64_t> end;
  if (replaced != nullptr) end = replaced->iteration;
  return {trial.id, replaced != nullptr ? replaced->before : trial.config(), standing,
          values_of(trial, metric, end)};
}

// Older experiments have no events: there a trial that is over has completed.
std::vector<RecordedTrial> recorded_trials(const Analysis& analysis, const std::string& metric) {
  const auto outcomes = read_outcomes(analysis.directory());
  const auto replaced = first_replaced(analysis.directory());
  std::vector<RecordedTrial> trials;
  for (const TrialSummary& trial : analysis.trials()) {
    const auto outcome = outcomes.find(trial.id);
    const bool was_cut_short = outcome != outcomes.end() && outcome->second != "completed";
    const auto found = replaced.find(trial.id);
    const bool was_replaced = found != replaced.end();
    const Standing standing = standing_of(trial.status, was_cut_short, was_replaced);
    trials.push_back(
        recorded_trial(trial, metric, standing, was_replaced ? &found->second : nullptr));
  }
  return trials;
}

Encoding encoding_of(const SearchSpace& space) {
  SearchSpace choices = space;
  for (const auto& [path, domain] : space.domains()) {
    if (!domain->is_grid()) continue;
    choices.set(path, choice(std::get<Domain::Grid>(domain->kind()).values));
  }
  return Encoding(choices);
}

}  // namespace tune
