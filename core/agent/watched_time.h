// WatchedTime: the time in which this process could have seen what happens.
//
// Of a longer time between two turns no more than kLongestTurn counts against others: this process
// was stopped or got no processor, and perhaps the others did neither. With plain time a laptop
// that slept for an hour would find every rank an hour late.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/agent/agent_actions.h"

namespace tune {

class WatchedTime {
 public:
  static constexpr AgentTime kLongestTurn = std::chrono::seconds(1);

  void turn(AgentTime now) {
    watched_ = at(now);
    last_turn_ = now;
  }
  AgentTime at(AgentTime now) const { return watched_ + std::min(now - last_turn_, kLongestTurn); }
  // When to look again, so that the watched time is `due` at the earliest.
  AgentTime next_look(AgentTime due) const {
    return last_turn_ + std::min(due - watched_, kLongestTurn);
  }

 private:
  AgentTime last_turn_{};
  AgentTime watched_{};  // at the last turn
};

}  // namespace tune
