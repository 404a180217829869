#include "tune/control/controller.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/error.h"
#include "tune/control/abandoned_attempts.h"
#include "tune/control/experiment_end.h"
#include "tune/control/launcher.h"
#include "tune/control/membership.h"
#include "tune/control/place_evidence.h"
#include "tune/control/reports.h"
#include "tune/control/returning_nodes.h"
#include "tune/control/running_attempts.h"
#include "tune/control/trial_moves.h"
#include "tune/control/trial_source.h"
#include "tune/control/user_orders.h"

namespace tune {

struct Controller::Parts {
  explicit Parts(ControlState& state)
      : source(state),
        moves(state),
        end(state, source, moves),
        launcher(state, source, moves, end),
        evidence(state),
        attempts(state, moves, evidence, end),
        abandoned(state),
        returning(state, attempts, abandoned, launcher),
        membership(state, attempts, abandoned, launcher),
        reports(state, source, moves, evidence),
        orders(state, source, moves, launcher) {}

  TrialSource source;
  TrialMoves moves;
  ExperimentEnd end;
  Launcher launcher;
  PlaceEvidence evidence;
  RunningAttempts attempts;
  AbandonedAttempts abandoned;
  ReturningNodes returning;
  Membership membership;
  Reports reports;
  UserOrders orders;
};

Controller::Controller(ControllerSetup setup)
    : state_(std::make_unique<ControlState>(std::move(setup))),
      parts_(std::make_unique<Parts>(*state_)) {}

Controller::Controller(Controller&&) noexcept = default;
Controller& Controller::operator=(Controller&&) noexcept = default;
Controller::~Controller() = default;

Effects Controller::handle(ExperimentTime now, const Event& event, const Sink& sink) {
  TUNE_CHECK(now >= state_->now);
  state_->now = now;
  state_->out.open(sink);
  std::visit([this](const auto& what) { on(what); }, event);
  return state_->out.close();
}

std::optional<ExperimentTime> Controller::next_deadline() const {
  if (!state_->course.is_running()) return std::nullopt;
  const Duration budget = state_->driver.time_budget;
  std::optional<ExperimentTime> next = state_->health.next_probe(state_->now);
  if (budget > Duration{}) next = std::min(next.value_or(budget), budget);
  return next;
}

std::optional<Asking::Question> Controller::question() const {
  return parts_->source.question();
}

std::uint64_t Controller::wanted() const {
  return parts_->launcher.wanted(kNoEnd);
}

// What ends with the driver before it ends by that one's settings.
void Controller::on(const DriverStarted& event) {
  parts_->returning.await(event);
  parts_->moves.take_up(event.retry_errored);
  parts_->source.serve(event);
  state_->driver = event;
  state_->course.go_on();
  // Without an agent nothing can run, but an experiment in which nothing is left to do is over now.
  parts_->end.settle();
}

void Controller::on(const FromAgent& event) {
  parts_->returning.check_words(event);
  std::visit([&](const auto& what) { on_agent(event.agent, what); }, event.event);
  state_->nodes.set_heard(event.agent, event.number);
}

void Controller::on(const AgentLost& event) {
  parts_->membership.lose(event);
}

void Controller::on(const DeadlineReached&) {
  if (!state_->course.is_running()) return;
  if (state_->is_budget_spent()) return parts_->end.spend_budget();
  parts_->launcher.fill();  // a probe may be due
}

void Controller::on(const InterruptRequested&) {
  parts_->end.interrupt();
}

void Controller::on(const Proposed& event) {
  if (parts_->source.answer(event)) parts_->launcher.fill();
}

void Controller::on(const AllocationChanged& event) {
  state_->pool.change(event, state_->now);
  state_->out.tell(AllocationTold{event});
}

void Controller::on(const PoolOrdered& event) {
  state_->pool.order(event);
  state_->out.tell(PoolTold{event});
}

void Controller::on(const UserOrdered& event) {
  parts_->orders.obey(event);
}

void Controller::on_agent(AgentNumber agent, const AgentHello& hello) {
  if (state_->nodes.contains(agent)) return parts_->returning.come_back(agent, hello);
  parts_->membership.join(agent, hello);
}

void Controller::on_agent(AgentNumber agent, const ZygoteReady& ready) {
  parts_->membership.become_ready(agent, ready);
}

void Controller::on_agent(AgentNumber agent, const AttemptStarted& started) {
  parts_->reports.began(agent, started);
}

void Controller::on_agent(AgentNumber agent, const Reported& report) {
  if (parts_->reports.reported(agent, report)) parts_->launcher.fill();
}

void Controller::on_agent(AgentNumber agent, const CheckpointSaved& saved) {
  parts_->reports.saved(agent, saved);
}

void Controller::on_agent(AgentNumber agent, const AttemptEnded& ended) {
  const bool frees = parts_->attempts.ended(agent, ended) || parts_->abandoned.ended(agent, ended);
  if (frees) parts_->launcher.fill();
}

void Controller::on_agent(AgentNumber, const Warning& warning) {
  state_->course.warn(warning.text);
}

void Controller::on_agent(AgentNumber agent, const NodeOut& out) {
  parts_->membership.go_out(agent, out);
}

void Controller::on_agent(AgentNumber agent, const GroupMeets& meets) {
  parts_->launcher.begin_others(agent, meets);
}

void Controller::on_agent(AgentNumber agent, const PlaceFree& free) {
  if (parts_->attempts.freed(agent, free)) parts_->launcher.fill();
}

}  // namespace tune
