#include "tune/control/device_health.h"

#include <algorithm>

namespace tune {

void DeviceHealth::attempt_began(const Places& places) {
  for (const std::string& name : places) {
    const auto found = places_.find(name);
    if (found != places_.end() && found->second.is_set_aside) found->second.is_probed = true;
  }
}

DeviceHealth::Findings DeviceHealth::attempt_reported(TrialNumber trial, const Places& places,
                                                      ExperimentTime now) {
  Findings findings;
  for (const std::string& name : places) {
    const auto found = places_.find(name);
    if (found == places_.end()) continue;
    if (found->second.is_set_aside) findings.taken_back.push_back(name);
    found->second = Place{.doubts = found->second.doubts};
    drop_if_fine(name);
  }
  const auto tried = second_tries_.find(trial);
  if (tried == second_tries_.end()) return findings;
  for (const std::string& name : tried->second) {
    Place& place = places_[name];
    if (++place.blames < kBlamesToSetAside || place.is_set_aside) continue;
    place.is_set_aside = true;
    place.probe_at = now + probe_after_;
    findings.set_aside.push_back(name);
  }
  forget(trial);
  return findings;
}

bool DeviceHealth::attempt_failed(TrialNumber trial, const Places& places, bool there_is_another,
                                  ExperimentTime now) {
  for (const std::string& name : places) {
    const auto found = places_.find(name);
    if (found == places_.end() || !found->second.is_set_aside) continue;
    found->second.is_probed = false;
    found->second.probe_at = now + probe_after_;
  }
  if (second_tries_.contains(trial) || !there_is_another) {
    forget(trial);
    return false;
  }
  for (const std::string& name : places) ++places_[name].doubts;
  second_tries_[trial] = places;
  return true;
}

void DeviceHealth::attempt_ended(const Places& places) {
  for (const std::string& name : places) {
    const auto found = places_.find(name);
    if (found != places_.end()) found->second.is_probed = false;
  }
}

void DeviceHealth::forget(TrialNumber trial) {
  const auto tried = second_tries_.find(trial);
  if (tried == second_tries_.end()) return;
  for (const std::string& name : tried->second) {
    --places_[name].doubts;
    drop_if_fine(name);
  }
  second_tries_.erase(tried);
}

void DeviceHealth::drop_if_fine(const std::string& name) {
  const Place& place = places_.at(name);
  if (place.blames == 0 && place.doubts == 0 && !place.is_set_aside) places_.erase(name);
}

// ---- Consequences

DeviceHealth::Names DeviceHealth::set_aside() const {
  Names names;
  for (const auto& [name, place] : places_) {
    if (place.is_set_aside) names.insert(name);
  }
  return names;
}

DeviceHealth::Names DeviceHealth::closed() const {
  Names names;
  for (const auto& [name, place] : places_) {
    if (place.is_set_aside || place.doubts >= kBlamesToSetAside) names.insert(name);
  }
  return names;
}

DeviceHealth::Names DeviceHealth::due_probes(ExperimentTime now) const {
  Names names;
  for (const auto& [name, place] : places_) {
    if (place.is_set_aside && !place.is_probed && place.probe_at <= now) names.insert(name);
  }
  return names;
}

std::optional<ExperimentTime> DeviceHealth::next_probe(ExperimentTime now) const {
  std::optional<ExperimentTime> next;
  for (const auto& [name, place] : places_) {
    if (!place.is_set_aside || place.is_probed || place.probe_at <= now) continue;
    next = std::min(next.value_or(place.probe_at), place.probe_at);
  }
  return next;
}

// ---- State

void DeviceHealth::clear() {
  places_.clear();
  second_tries_.clear();
}

void DeviceHealth::save(PackWriter& out) const {
  encode(out, places_);
  std::vector<SecondTry> tries;
  for (const auto& [trial, places] : second_tries_) tries.push_back({trial, places});
  encode(out, tries);
}

void DeviceHealth::restore(PackReader& in) {
  decode(in, places_);
  std::vector<SecondTry> tries;
  decode(in, tries);
  second_tries_.clear();
  for (SecondTry& one : tries) {
    for (const std::string& name : one.places) {
      if (!places_.contains(name)) detail::bad_message("second tries at a place", 1, 0);
    }
    second_tries_.emplace(one.trial, std::move(one.places));
  }
}

}  // namespace tune
