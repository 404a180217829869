// Groups over several nodes: they end everywhere when a node is lost, and that is nobody's failure.
#include <algorithm>
#include <cstdint>
#include <set>

#include <fmt/format.h>

#include "simulator/invariants.h"
#include "simulator/violation.h"

namespace tune::simulator {

Invariants::Open Invariants::open_of(const Trial& trial) {
  Open open{trial.attempt, 1, std::nullopt, {}, {}};
  if (!trial.placement) return open;
  open.nodes = trial.placement->nodes;
  if (!trial.placement->lead_has_ended) open.lead = trial.placement->agent;
  for (const PlacementPart& part : trial.placement->others) {
    open.others.insert(part.agent);
    if (part.is_free) open.free.insert(part.agent);
  }
  if (open.lead && trial.placement->lead_is_free) open.free.insert(*open.lead);
  return open;
}

void Invariants::end_on(AgentNumber agent) {
  for (auto& [trial, open] : open_) open.remove(agent);
  std::erase_if(open_, [](const auto& open) { return open.second.is_over(); });
}

const Launch* Invariants::promised(const WorkerLaunch& launch, std::uint32_t rank) const {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  const auto lead = promised_.find({key, 0});
  if (lead == promised_.end()) return nullptr;
  const auto own = promised_.find({key, rank / lead->second.local_ranks()});
  return own == promised_.end() ? nullptr : &own->second;
}

// Within five seconds of the break of a connection; an agent that hangs, or that words reach late,
// has its own time, and where it leads the group, so have those whom it is to tell.
void Invariants::groups_end_everywhere(const Agents& agents) const {
  if (world_.lost_a_node.empty()) return;
  constexpr Time kPromise = std::chrono::seconds(5);
  const Time slack = 400 * world_.scenario.network_delay + 20 * world_.scenario.file_delay;
  std::set<std::uint64_t> led_by_such;
  for (const SimulatedAgent* agent : agents) {
    if (!agent->hung_lately(kPromise + slack)) continue;
    for (const auto& [pid, worker] : agent->workers()) {
      if (worker->start() == nullptr || worker->start()->rank != 0) continue;
      const WorkerLaunch& launch = worker->start()->launch;
      led_by_such.insert(attempt_key(launch.trial, launch.attempt));
    }
  }
  for (const SimulatedAgent* agent : agents) {
    if (agent->hung_lately(kPromise + slack)) continue;
    for (const auto& [pid, worker] : agent->workers()) {
      if (!worker->exists() || worker->start() == nullptr) continue;
      const WorkerLaunch& launch = worker->start()->launch;
      const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
      const auto lost = world_.lost_a_node.find(key);
      if (lost == world_.lost_a_node.end() || led_by_such.contains(key)) continue;
      const Time held = agent->held_up_until();
      const Time since = std::max(lost->second, held);
      if (world_.queue.now() - since <= kPromise + slack) continue;
      violate("a group ends everywhere when it has lost a node",
              fmt::format("process {} of attempt {} of trial {} is still there", pid,
                          launch.attempt.value, launch.trial.value));
    }
  }
}

// What the other ranks notice of it are echoes.
void Invariants::no_loss_of_a_node_is_a_failure(const AttemptEnded& ended) const {
  const std::uint64_t key = attempt_key(ended.trial, ended.attempt);
  if (!is_failure(ended.outcome) || !world_.lost_a_node.contains(key)) return;
  if (world_.killed.contains(key) || world_.given_up.contains(key)) return;
  const auto launch = promised_.find({key, 0});
  if (launch == promised_.end() || world_.scenario.rates.promotion_fails > 0) return;
  WorkerLaunch of_worker;
  of_worker.trial = ended.trial;
  of_worker.attempt = ended.attempt;
  of_worker.ranks = launch->second.ranks;
  if (draw_fault(world_.scenario, of_worker).kind != AttemptFault::Kind::kNone) return;
  violate("the loss of a node is no failure of its trials",
          fmt::format("attempt {} of trial {} ends as {}: {}", ended.attempt.value,
                      ended.trial.value, outcome_name(ended.outcome), ended.cause));
}

// What a machine was told is lost with it, when the lead had all that it waited for.
void Invariants::no_nonsense_ends_well(const AttemptEnded& ended) const {
  const std::uint64_t key = attempt_key(ended.trial, ended.attempt);
  const auto nonsense = world_.spoke_nonsense.find(key);
  if (nonsense == world_.spoke_nonsense.end()) return;
  if (is_failure(ended.outcome) || ended.outcome == Outcome::kLost) return;
  const bool was_away = world_.lost_a_node.contains(key) || world_.held_up.contains(key);
  if (nonsense->second && was_away) return;
  violate("a worker's nonsense fails its attempt",
          fmt::format("attempt {} of trial {} ends as {}", ended.attempt.value, ended.trial.value,
                      outcome_name(ended.outcome)));
}

}  // namespace tune::simulator
