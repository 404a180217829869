#include "core/agent/agent_actions.h"

namespace tune {
namespace {

// Whether the event may wait a little: no trial and no resource depends on the driver's hearing it.
bool may_linger(const AgentEvent& event) {
  const auto* report = std::get_if<Reported>(&event);
  return std::holds_alternative<AttemptStarted>(event) || (report != nullptr && !report->waiting);
}

}  // namespace

void AgentActions::add(AgentAction action) {
  actions_.push_back(std::move(action));
}

void AgentActions::tell_worker(WorkerId worker, WorkerCommand command) {
  auto& told = std::get<TellWorker>(actions_.emplace_back(std::in_place_type<TellWorker>));
  told.worker = worker;
  told.command = std::move(command);
}

void AgentActions::tell(AgentTime now, AgentEvent event) {
  const AgentTime by = may_linger(event) ? now + kLinger : now;
  if (!tell_by_ || by < *tell_by_) tell_by_ = by;
  add(TellDriver{std::move(event)});
}

}  // namespace tune
