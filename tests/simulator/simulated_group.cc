// A simulated agent's part in groups over several nodes.
#include <utility>

#include "simulator/simulated_agent.h"

namespace tune::simulator {

void SimulatedAgent::act(OpenGroup& action) {
  for (std::uint32_t node = 1; node <= action.others; ++node) ways_[{action.attempt, node}] = false;
  ++world_.tally.groups_over_nodes;
  machine_.on_group_open(now(), action.attempt,
                         outside_.links->listen(identity_, action.attempt, action.others), {});
}

void SimulatedAgent::act(JoinLead& action) {
  ways_[{action.attempt, 0}] = false;
  outside_.links->connect(identity_, action.address);
}

void SimulatedAgent::act(TellNode& action) {
  outside_.links->send(identity_, action.attempt, action.node,
                       encoded(std::vector<LeadWord>{std::move(action.word)}));
}

void SimulatedAgent::act(TellLead& action) {
  outside_.links->send(identity_, action.attempt, 0,
                       encoded(std::vector<NodeWord>{std::move(action.word)}));
}

void SimulatedAgent::act(CloseGroup& action) {
  std::erase_if(ways_, [&](const auto& way) { return way.first.first == action.attempt; });
  outside_.links->close(identity_, action.attempt);
}

void SimulatedAgent::show_life() {
  if (ways_.empty() || now() - life_shown_ < std::chrono::seconds(1)) return;
  life_shown_ = now();
  for (const auto& [way, is_linked] : ways_) {
    const auto& [attempt, node] = way;
    if (node == 0) outside_.links->send(identity_, attempt, 0, encoded(std::vector<NodeWord>{}));
    if (node != 0 && is_linked) {
      outside_.links->send(identity_, attempt, node, encoded(std::vector<LeadWord>{}));
    }
  }
}

void SimulatedAgent::hear_link(std::uint64_t attempt, std::uint32_t node,
                               const std::string& frame) {
  take_part([this, attempt, node, frame] {
    const auto way = ways_.find({attempt, node});
    if (way == ways_.end()) return;
    way->second = true;
    if (node == 0) {
      machine_.on_lead(now(), attempt, decoded<std::vector<LeadWord>>(frame));
    } else {
      machine_.on_node(now(), attempt, node, decoded<std::vector<NodeWord>>(frame));
    }
  });
}

void SimulatedAgent::link_is_broken(std::uint64_t attempt, std::uint32_t node) {
  take_part([this, attempt, node] {
    ways_.erase({attempt, node});
    machine_.on_link_broken(now(), attempt, node, "its connection broke");
  });
}

bool SimulatedAgent::had_ranks(std::uint64_t attempt) const {
  for (const auto& [pid, worker] : workers_) {
    if (!worker->exists() || worker->start() == nullptr) continue;
    const WorkerLaunch& launch = worker->start()->launch;
    if (attempt_key(launch.trial, launch.attempt) == attempt) return true;
  }
  return false;
}

void SimulatedAgent::notice_loss(std::uint64_t attempt) {
  if (dead_) return;
  for (const auto& [pid, worker] : workers_) {
    if (!worker->exists() || worker->start() == nullptr) continue;
    const WorkerLaunch& launch = worker->start()->launch;
    const bool is_of_it = attempt_key(launch.trial, launch.attempt) == attempt;
    if (is_of_it && world_.chance(700'000)) worker->notice_loss();
  }
}

}  // namespace tune::simulator
