#include "core/trial.h"

#include <array>

namespace tune {

namespace {

constexpr std::array<const char*, 5> kNames = {"PENDING", "RUNNING", "PAUSED", "TERMINATED",
                                               "ERROR"};

}  // namespace

const char* status_name(TrialStatus status) {
  return kNames[static_cast<std::size_t>(status)];
}

std::optional<TrialStatus> status_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<TrialStatus>(i);
  }
  return std::nullopt;
}

bool is_over(TrialStatus status) {
  return status == TrialStatus::kTerminated || status == TrialStatus::kError;
}

bool transition_is_legal(TrialStatus from, TrialStatus to) {
  switch (from) {
    case TrialStatus::kPending:
      return to == TrialStatus::kRunning || to == TrialStatus::kPaused ||
             to == TrialStatus::kTerminated;
    case TrialStatus::kRunning:
      return to != TrialStatus::kRunning;
    case TrialStatus::kPaused:
      return to == TrialStatus::kPending || to == TrialStatus::kRunning ||
             to == TrialStatus::kTerminated;
    case TrialStatus::kError:
    case TrialStatus::kTerminated:
      return to == TrialStatus::kPending;
  }
  return false;
}

std::vector<AgentNumber> agents_of(const Placement& placement) {
  std::vector<AgentNumber> agents;
  if (!placement.lead_has_ended) agents.push_back(placement.agent);
  for (const PlacementPart& part : placement.others) agents.push_back(part.agent);
  return agents;
}

}  // namespace tune
