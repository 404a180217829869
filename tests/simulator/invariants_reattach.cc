// Work on machines that outlive their driver, from one driver to the next.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "simulator/invariants.h"
#include "simulator/violation.h"

namespace tune::simulator {

void Invariants::count_said_again(const Turn& turn, const Effects& effects) {
  std::set<TrialNumber> reported;
  bool is_greeted = false;
  for (const Event& event : turn.events) {
    const auto* from = std::get_if<FromAgent>(&event);
    if (from == nullptr) continue;
    if (const auto* one = std::get_if<Reported>(&from->event)) reported.insert(one->trial);
    is_greeted = is_greeted || std::holds_alternative<Apart<AgentHello>>(from->event);
  }
  for (const auto& [agent, command] : effects.commands) {
    const auto* go = std::get_if<Continue>(&command);
    const auto* stop = std::get_if<StopAttempt>(&command);
    const bool is_of_phase = stop != nullptr && stop->grace > Duration::zero();
    if (!is_greeted || is_of_phase || (go == nullptr && stop == nullptr)) continue;
    const TrialNumber trial = go != nullptr ? go->trial : stop->trial;
    if (!reported.contains(trial)) ++world_.tally.said_again;
  }
}

// A launch that never arrived, as the driver ended before, is lost.
void Invariants::follow(AgentNumber agent, const AgentHello& hello) {
  if (hello.epoch != leader_ || expected_.erase(agent) == 0) return;
  ++world_.tally.returned;
  for (auto at = open_.begin(); at != open_.end();) {
    const auto one = at++;
    auto& [trial, open] = *one;
    const auto is_it = [&](const LiveAttempt& live) {
      return live.trial == one->first && live.attempt == one->second.attempt;
    };
    if (!open.runs_on(agent) || std::ranges::any_of(hello.live, is_it)) continue;
    ++world_.tally.never_begun;
    open.remove(agent);
    if (open.is_over()) open_.erase(one);
  }
}

// The nodes that the driver which has just taken over waits for.
void Invariants::follow_start(const SimulatedDriver& driver) {
  const std::vector<AgentNumber> all = driver.controller().nodes().all();
  kept_ = {all.begin(), all.end()};
  const bool has_unseen = follow_unseen(driver);
  if (has_unseen || !world_.scenario.joined || !legacy_ || !legacy_->was_running) return;
  // One that stalled may have gone on for a while.
  if (store_.ever.size() < 2 || legacy_->last != store_.ever[store_.ever.size() - 2].id) return;
  for (const auto& [trial, open] : open_) {
    const bool is_kept = !open.lead || kept_.contains(*open.lead);
    if (is_kept && std::ranges::includes(kept_, open.others)) continue;
    violate("what runs on machines that have joined goes on under the next driver",
            fmt::format("attempt {} of trial {} is lost", open.attempt.value, trial.value));
  }
}

// Turns whose driver did not live to learn that they are in the journal: what followed from them was
// not seen.
bool Invariants::follow_unseen(const SimulatedDriver& driver) {
  bool has_unseen = false;
  for (const Entry& entry : store_.ever) {
    if ((followed_ && entry.id <= *followed_) || entry.id >= *driver.last_appended()) continue;
    has_unseen = true;
    for (const Event& event : turn_of(entry.payload).events) {
      if (const auto* from = std::get_if<FromAgent>(&event)) follow(*from);
    }
  }
  if (!has_unseen) return false;
  open_.clear();
  for (const Trial& trial : driver.controller().trials()) {
    if (trial.attempt.value > 0) launched_[trial.number] = trial.attempt;
    if (trial.placement) open_[trial.number] = open_of(trial);
  }
  return true;
}

}  // namespace tune::simulator
