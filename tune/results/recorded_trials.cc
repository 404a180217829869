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

// The trials' fates of events.jsonl, by id.
struct Told {
  struct Replaced {
    std::uint64_t iteration = 0;
    Config before;
  };
  std::map<std::string, std::string> outcomes;  // of the newest attempt that ended
  std::map<std::string, Replaced> replaced;     // the first time
};

Told read_events(const std::filesystem::path& directory) {
  Told told;
  for_each_event(directory, {"attempt_ended", "replaced"}, [&](const Value& event) {
    const auto trial = event.get<std::string>("trial");
    if (event.get<std::string>("event") == "attempt_ended") {
      told.outcomes[trial] = event.get<std::string>("outcome");
      return;
    }
    told.replaced.try_emplace(trial,
                              Told::Replaced{event.get<std::uint64_t>("iteration"),
                                             config_from_json(to_json(event.at("old")), trial)});
  });
  return told;
}

// Older experiments have no events: there a trial that is over has completed.
Standing standing_of(const TrialSummary& trial, const Told& told) {
  if (trial.status == TrialStatus::kError) return Standing::kFailed;
  if (trial.status == TrialStatus::kPaused) return Standing::kPaused;
  if (trial.status != TrialStatus::kTerminated) return Standing::kRunning;
  const auto outcome = told.outcomes.find(trial.id);
  if (told.replaced.contains(trial.id)) return Standing::kStopped;
  const bool completed = outcome == told.outcomes.end() || outcome->second == "completed";
  return completed ? Standing::kCompleted : Standing::kStopped;
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
    const Value* value = result.find(metric);
    if (value != nullptr && value->is_number()) history.result(kOnly, iteration, value->number());
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

std::vector<RecordedTrial> recorded_trials(const Analysis& analysis, const std::string& metric) {
  const Told told = read_events(analysis.directory());
  std::vector<RecordedTrial> trials;
  for (const TrialSummary& trial : analysis.trials()) {
    const auto replaced = told.replaced.find(trial.id);
    const bool is_replaced = replaced != told.replaced.end();
    std::optional<std::uint64_t> end;
    if (is_replaced) end = replaced->second.iteration;
    trials.push_back({trial.id, is_replaced ? replaced->second.before : trial.config(),
                      standing_of(trial, told), values_of(trial, metric, end)});
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
