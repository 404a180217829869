#include "tune/control/outbox.h"

namespace tune {

Effects Outbox::close() {
  sink_ = nullptr;
  return std::exchange(effects_, {});
}

void Outbox::send(AgentNumber agent, Command command) {
  effects_.commands.emplace_back(agent, std::move(command));
}

void Outbox::send_to_lead(const Trial& trial, Command command) {
  if (trial.placement->lead_has_ended) return;
  send(trial.placement->agent, std::move(command));
}

void Outbox::remove(TrialNumber trial, const CheckpointId& checkpoint) {
  effects_.removals.push_back({trial, checkpoint});
}

void Outbox::settle(TrialNumber trial, AttemptNumber lost) {
  effects_.settle(trial, lost);
}

}  // namespace tune
