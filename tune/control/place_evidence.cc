#include "tune/control/place_evidence.h"

#include <algorithm>

#include <fmt/format.h>

namespace tune {

namespace {

// Whether the trial's newest attempt has reported.
bool has_reported(const Trial& trial) {
  return trial.last && trial.last->attempt == trial.attempt;
}

}  // namespace

bool PlaceEvidence::reports(const Trial& trial) {
  const bool shows_health =
      !has_reported(trial) && !state_.health.is_fine() && trial.placement->nodes == 1;
  if (!shows_health) return false;
  const DeviceHealth::Places places = state_.nodes.places_of(*trial.placement);
  tell(state_.health.attempt_reported(trial.number, places, state_.now));
  return true;
}

void PlaceEvidence::ended(const Trial& trial, Ending ending) {
  if (trial.placement->nodes > 1) return;
  if (has_reported(trial) || ending == Ending::kFailed || ending == Ending::kCannotPause) return;
  const DeviceHealth::Places places = state_.nodes.places_of(*trial.placement);
  if (ending == Ending::kCompleted) {
    tell(state_.health.attempt_reported(trial.number, places, state_.now));
  } else {
    state_.health.attempt_ended(places);
  }
}

bool PlaceEvidence::tries_elsewhere(const Trial& trial) {
  if (has_reported(trial) || trial.placement->nodes > 1) return false;
  const DeviceHealth::Places places = state_.nodes.places_of(*trial.placement);
  DeviceHealth::Names avoided = state_.health.set_aside();
  avoided.insert(places.begin(), places.end());
  const bool there_is_another = state_.nodes.could_hold(avoided);
  return state_.health.attempt_failed(trial.number, places, there_is_another, state_.now);
}

void PlaceEvidence::did_not_meet(const Trial& trial, const AttemptEnded& ended) {
  const Placement& placement = *trial.placement;
  const auto part = std::ranges::find(placement.others, ended.unlinked, &PlacementPart::node);
  Nodes& nodes = state_.nodes;
  if (ended.unlinked == 0 || part == placement.others.end()) return;
  if (!nodes.contains(placement.agent) || !nodes.contains(part->agent)) return;
  const std::uint64_t attempt = attempt_key(trial.number, trial.attempt);
  const auto apart = nodes.did_not_meet(placement.agent, part->agent, attempt);
  if (!apart) return;
  state_.out.notice(fmt::format(
      "node {} takes no part in groups over several nodes any more: for the second time {}",
      nodes.hello(*apart).hostname, ended.cause));
}

void PlaceEvidence::tell(const DeviceHealth::Findings& findings) {
  for (const std::string& place : findings.set_aside) {
    state_.out.tell(PlaceSetAside{place});
    state_.out.notice(fmt::format(
        "{} is set aside: {} trials failed there before their first report and ran elsewhere; "
        "now and then one is tried there again",
        state_.nodes.place_in_words(place), DeviceHealth::kBlamesToSetAside));
  }
  for (const std::string& place : findings.taken_back) {
    state_.out.tell(PlaceTakenBack{place});
    state_.out.notice(fmt::format("{} works again: trials are placed there as before",
                                  state_.nodes.place_in_words(place)));
  }
}

}  // namespace tune
