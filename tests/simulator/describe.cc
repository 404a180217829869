#include "simulator/describe.h"

#include <fmt/format.h>

#include "tune/search/proposal.h"

namespace tune::simulator {

namespace {

std::string attempt(TrialNumber trial, AttemptNumber attempt) {
  return fmt::format("of trial {} attempt {}", trial.value, attempt.value);
}

struct Describer {
  std::string operator()(const AgentHello& hello) const {
    return fmt::format("hello from {} to {}, {} live", hello.hostname, hello.epoch,
                       hello.live.size());
  }
  std::string operator()(const ZygoteReady& ready) const {
    return ready.error.empty() ? "zygote ready" : "zygote failed: " + ready.error;
  }
  std::string operator()(const AttemptStarted& started) const {
    return fmt::format("start {} as {}", attempt(started.trial, started.attempt), started.pid);
  }
  std::string operator()(const Reported& report) const {
    return fmt::format("report {} {}{}{}", report.iteration, attempt(report.trial, report.attempt),
                       report.waiting ? ", waiting" : "", report.final ? ", final" : "");
  }
  std::string operator()(const CheckpointSaved& saved) const {
    static const char* const kinds[] = {"", " on its node", " given up"};
    return fmt::format("checkpoint {} {}{}", saved.iteration, attempt(saved.trial, saved.attempt),
                       kinds[static_cast<int>(saved.storing)]);
  }
  std::string operator()(const AttemptEnded& ended) const {
    return fmt::format("end {}: {} {}", attempt(ended.trial, ended.attempt),
                       outcome_name(ended.outcome), ended.cause);
  }
  std::string operator()(const Warning& warning) const { return "warning " + warning.text; }
  std::string operator()(const NodeOut& out) const { return "node out: " + out.cause; }
  std::string operator()(const PlaceFree& free) const {
    return "the place is free of " + std::to_string(free.trial.value) + "." +
           std::to_string(free.attempt.value);
  }
  std::string operator()(const GroupMeets& meets) const {
    return fmt::format("meeting of {} nodes {}", meets.addresses.size() + 1,
                       attempt(meets.trial, meets.attempt));
  }

  std::string operator()(const SetupExperiment&) const { return "set up"; }
  std::string operator()(const Launch& launch) const {
    std::string origin;
    if (launch.origin) {
      origin =
          fmt::format(" of trial {} at {}", launch.origin->trial.value, launch.origin->iteration);
    }
    return fmt::format("launch {} from {}{} until {}", attempt(launch.trial, launch.attempt),
                       launch.restore_iteration, origin, launch.until.value);
  }
  std::string operator()(const Continue& go) const {
    return fmt::format("continue {} until {}{}", attempt(go.trial, go.attempt), go.until.value,
                       go.save ? ", saving" : "");
  }
  std::string operator()(const StopAttempt& stop) const {
    const char* kinds[] = {"stop", "pause", "leave"};
    return fmt::format("{} {}", kinds[static_cast<int>(stop.kind)],
                       attempt(stop.trial, stop.attempt));
  }
  std::string operator()(const KillAttempt& kill) const {
    return fmt::format("kill {}", attempt(kill.trial, kill.attempt));
  }
  std::string operator()(const Shutdown&) const { return "shut down"; }
  std::string operator()(const NewToken&) const { return "new token"; }
  std::string operator()(const Drain& drain) const { return "drain: " + drain.cause; }

  std::string operator()(const DriverStarted& started) const {
    return fmt::format("driver of epoch {} started", started.epoch);
  }
  std::string operator()(const FromAgent& from) const {
    return fmt::format("agent number {}: {}", from.agent.value, describe(from.event));
  }
  std::string operator()(const AgentLost& lost) const {
    return fmt::format("agent number {} lost", lost.agent.value);
  }
  std::string operator()(const DeadlineReached&) const { return "deadline reached"; }
  std::string operator()(const Proposed& proposed) const {
    return fmt::format("answer {} of {} bytes {}", proposed.question, proposed.answer.bytes.size(),
                       proposed.error);
  }
  std::string operator()(const AllocationChanged& changed) const {
    return fmt::format("allocation {} is {}: {} {} {} {}", changed.number,
                       static_cast<int>(changed.state), changed.id, changed.host, changed.reason,
                       static_cast<int>(changed.fault));
  }
  std::string operator()(const PoolOrdered& order) const {
    return fmt::format("pool of {}, paused {}, without {}: {}", order.max.value_or(0),
                       order.paused.value_or(false), order.drained, order.cause);
  }
  std::string operator()(const UserOrdered& order) const {
    return fmt::format("order {} of trial {}: {} samples, {}", static_cast<int>(order.kind),
                       order.trial.value, order.num_samples, order.text);
  }
  std::string operator()(const InterruptRequested& interrupt) const {
    return fmt::format("interrupt {}", interrupt.signal);
  }

  std::string operator()(const TrialAdded& added) const {
    return fmt::format("trial {} added", added.trial.number.value);
  }
  std::string operator()(const TrialProposed& proposed) const {
    return fmt::format("trial {} proposed with {} results known", proposed.trial.number.value,
                       proposed.proposal.results_known);
  }
  std::string operator()(const ResultRecorded& recorded) const {
    return fmt::format("trial {} recorded: {}{}", recorded.trial.number.value,
                       describe(AgentEvent(recorded.report)), recorded.done ? ", done" : "");
  }
  std::string operator()(const ResultsCut& cut) const {
    return fmt::format("trial {} cut to {}", cut.trial.number.value, cut.iteration);
  }
  std::string operator()(const TrialChanged& changed) const {
    const Trial& trial = changed.trial;
    return fmt::format("trial {} changed: {} at {}, {} checkpoints", trial.number.value,
                       status_name(trial.status), trial.location, trial.checkpoints.size());
  }
  std::string operator()(const AttemptFailed& failed) const {
    return fmt::format("trial {} failed{}", failed.trial.number.value,
                       failed.retried ? ", again" : "");
  }
  std::string operator()(const Notice& notice) const { return "notice " + notice.text; }
  std::string operator()(const DriverNotice& notice) const { return "said " + notice.text; }
  std::string operator()(const NodeJoined& joined) const {
    return fmt::format("agent number {} joined", joined.agent.value);
  }
  std::string operator()(const NodeLeft& left) const {
    return fmt::format("agent number {} left: {}", left.agent.value, left.cause);
  }
  std::string operator()(const DriverBegan& began) const {
    return fmt::format("driver of epoch {} began", began.epoch);
  }
  std::string operator()(const AllocationTold& told) const {
    return fmt::format("allocation {} changed", told.change.number);
  }
  std::string operator()(const PoolTold&) const { return "the pool was ordered"; }
  std::string operator()(const NodeReturned& returned) const {
    return fmt::format("agent number {} is back with {} trials", returned.agent.value,
                       returned.trials);
  }
  std::string operator()(const AttemptBegan& began) const {
    const Trial& trial = began.trial;
    return fmt::format("{} began on {} from {}", attempt(trial.number, trial.attempt), began.node,
                       began.restored);
  }
  std::string operator()(const AttemptOver& over) const {
    return fmt::format("{} is over: {} {}", attempt(over.trial.number, over.trial.attempt),
                       outcome_name(over.ended.outcome), over.ended.cause);
  }
  std::string operator()(const RungReached& reached) const {
    return fmt::format("trial {} is {} of {} at {}", reached.trial.number.value, reached.place.rank,
                       reached.place.of, reached.iteration);
  }
  std::string operator()(const VerdictGiven& given) const {
    return fmt::format("trial {} {} at {}: {}", given.trial.number.value,
                       given.kind == StopKind::kStop ? "is stopped" : "is paused", given.iteration,
                       given.trial.reason);
  }
  std::string operator()(const TrialReplaced& replaced) const {
    return fmt::format("trial {} is replaced at {} by trial {} at {}: {} for {}, {}",
                       replaced.trial.number.value, replaced.iteration, replaced.origin.trial.value,
                       replaced.origin.iteration, replaced.trial.config.bytes,
                       replaced.former.bytes, replaced.reason);
  }
  std::string operator()(const UserActed& acted) const {
    return fmt::format(
        "a user has ordered {} of {}", static_cast<int>(acted.order.kind),
        acted.about == nullptr ? "the sweep" : std::to_string(acted.about->number.value));
  }
  std::string operator()(const PlaceSetAside& place) const {
    return fmt::format("{} is set aside", place.place);
  }
  std::string operator()(const PlaceTakenBack& place) const {
    return fmt::format("{} is taken back", place.place);
  }
  std::string operator()(const ExperimentOver& over) const {
    return fmt::format("the experiment is {} {}", over.how, over.why);
  }
};

}  // namespace

std::string describe(const AgentEvent& event) {
  return std::visit(Describer{}, event);
}
std::string describe(const Command& command) {
  return std::visit(Describer{}, command);
}
std::string describe(const Event& event) {
  return std::visit(Describer{}, event);
}
std::string describe(const Record& record) {
  return std::visit(Describer{}, record);
}

}  // namespace tune::simulator
