// The ends of attempts: causes, signals, and the last report of them.
#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/agent/attempt.h"

namespace tune {
namespace {

// The cause for a rank that ended without a last word.
Attempt::Cause exit_cause(const ProcessEnd& end, std::uint32_t rank) {
  Attempt::Cause cause{.outcome = end.signalled ? Outcome::kSignal : Outcome::kExit,
                       .text = end.text,
                       .code = end.code,
                       .rank = rank};
  if (!end.why.empty()) {
    cause.text = fmt::format("{} ({})", end.why, end.text);
    return cause;
  }
  if (!end.signalled) cause.text += " before its trial was over";
  if (end.signalled && end.code == SIGKILL) cause.text += ", as the kernel does to free memory";
  return cause;
}

}  // namespace

// ---- Reasons to end -----------------------------------------------------------------------------

void Attempt::on_exit(const AttemptScene& scene, std::uint32_t number, const ProcessEnd& end) {
  Rank& rank = ranks_[number];
  const bool is_expected = rank.stage == Stage::kSaidEnd || rank.signalled;
  rank.stage = Stage::kGone;
  if (!is_expected) {
    Cause cause = exit_cause(end, number);
    // The rank may have waited for one that is gone: NCCL ends a rank whose collective takes too
    // long.
    if (const auto deserter = pace_ ? pace_->deserter() : std::nullopt) {
      cause.text += fmt::format("; rank {} had ended in {}", deserter->rank, deserter->phase);
    }
    blame(scene, std::move(cause));
  }
  if (is_expected && !end.why.empty()) explain(number, end.why);
  set_gone(scene, number);
}

// The rank has told of a failure (a program that it runs was killed), and only its end tells why.
void Attempt::explain(std::uint32_t rank, const std::string& why) {
  auto* const settling = std::get_if<Settling>(&state_);
  if (settling == nullptr || settling->cause.rank != rank) return;
  settling->cause.text = fmt::format("{} ({})", why, settling->cause.text);
}

void Attempt::on_nonsense(const AttemptScene& scene, std::uint32_t rank, const std::string& what) {
  blame(
      scene,
      {.outcome = Outcome::kException, .text = "the worker sent nonsense: " + what, .rank = rank});
  terminate(scene, *known_end(), kTermGrace);
}

void Attempt::on_loss(const AttemptScene& scene, std::string why, AgentTime grace) {
  if (scene.node.relays) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
  Cause lost{.outcome = Outcome::kLost, .text = std::move(why), .is_of_node = true};
  const bool loses_saves = !saves_.empty() || !gathering_.is_empty();
  const bool cuts_saves_off = outcome() != nullptr && loses_saves;
  stop_gathering(scene, lost.text);
  const auto known = cuts_saves_off ? std::nullopt : known_end();
  terminate_by_loss(scene, known.value_or(std::move(lost)), grace);
}

// The driver kills the lead of a group when another node of it is lost, which this one may not have
// noticed yet. An exception that is not settled then may be the loss's echo.
void Attempt::on_kill(const AttemptScene& scene) {
  const bool may_be_echo = nodes_.size() > 1 && std::holds_alternative<Settling>(state_);
  if (may_be_echo) state_ = Running{};
  on_loss(scene, kKilled);
}

// Trials that the driver has not told how to end are paused, and go on elsewhere or later.
void Attempt::on_leave(const AttemptScene& scene, const std::string& why, Duration grace) {
  leaves_ = true;
  if (is_starting()) return on_loss(scene, why);
  if (has_order()) return;
  on_stop(scene, {launch_.trial, launch_.attempt, StopKind::kPause, grace});
}

// Keeps the first cause and sees to it that every rank ends.
void Attempt::blame(const AttemptScene& scene, Cause cause) {
  if (auto* terminating = std::get_if<Terminating>(&state_)) {
    const bool is_open = std::holds_alternative<Outcome>(terminating->end);
    if (is_open && !terminating->is_settled) terminating->end = std::move(cause);
  } else if (auto* settling = std::get_if<Settling>(&state_)) {
    blame_more(scene, *settling, std::move(cause));
  } else if (cause.outcome == Outcome::kException) {
    settle(scene, std::move(cause));
  } else {
    terminate(scene, std::move(cause), kTermGrace);
  }
}

// An exception may be the echo of another rank's death that is noticed a moment later: then the
// death is the cause. One of the group may be the echo of another rank's own exception as well.
void Attempt::blame_more(const AttemptScene& scene, Settling& settling, Cause cause) {
  const bool exception = cause.outcome == Outcome::kException;
  const AgentTime settle = cause.is_of_group ? kEchoSettle : kSettle;
  const bool is_own = !exception || settling.cause.is_of_group;
  const bool may_be_echo =
      settling.cause.outcome == Outcome::kException && settling.cause.rank != cause.rank;
  if (may_be_echo && is_own && !cause.is_of_group) settling.cause = std::move(cause);
  if (!exception) return terminate(scene, Cause(settling.cause), kTermGrace);
  if (ranks_.size() > 1)
    settling.terminate_at = std::min(settling.terminate_at, scene.now + settle);
}

// The function of a rank may return a moment before rank 0's does. The return was too early when
// rank 0 has reported a step that the rank never will, or waited for it in a collective.
bool Attempt::blame_deserter(const AttemptScene& scene) {
  const Cause* known = cause();
  if (!pace_ || (known != nullptr && !known->is_of_group)) return false;
  const auto deserter = pace_->deserter();
  if (!deserter || !(deserter->missed || known != nullptr)) return false;
  blame(scene,
        {.outcome = Outcome::kException,
         .text = fmt::format("ended in {} before rank 0 did: all ranks must report equally often",
                             deserter->phase),
         .rank = deserter->rank});
  return true;
}

void Attempt::end_by_order(const AttemptScene& scene) {
  const bool pause = order_->stop.kind == StopKind::kPause;
  Cause late{.outcome = pause ? Outcome::kLost : Outcome::kStopped,
             .text = fmt::format("did not end within {:g} s of being told to {}, killed",
                                 seconds(order_->stop.grace), pause ? "pause" : "stop")};
  terminate(scene, known_end().value_or(std::move(late)), kTermGrace);
}

// ---- Transitions --------------------------------------------------------------------------------

void Attempt::leave(Outcome outcome) {
  if (cause() == nullptr && !is_terminating()) state_ = Leaving{outcome};
}

void Attempt::settle(const AttemptScene& scene, Cause cause) {
  const AgentTime settle = cause.is_of_group ? kEchoSettle : kSettle;
  AgentTime by = scene.now + (ranks_.size() > 1 ? settle : kExitGrace);
  if (order_ && order_->deadline) by = std::min(by, *order_->deadline);
  state_ = Settling{std::move(cause), by};
}

// SIGTERM now, SIGKILL later.
void Attempt::terminate(const AttemptScene& scene, std::variant<Outcome, Cause> end,
                        AgentTime grace) {
  if (ranks_.size() > 1) grace = std::min(grace, kGroupGrace);
  AgentTime kill_at = scene.now + grace;
  bool is_settled = false;
  if (const auto* already = std::get_if<Terminating>(&state_)) {
    kill_at = std::min(kill_at, already->kill_at);
    is_settled = already->is_settled;
  }
  state_ = Terminating{.end = std::move(end), .kill_at = kill_at, .is_settled = is_settled};
  signal(scene, SIGTERM);
}

void Attempt::terminate_by_loss(const AttemptScene& scene, std::variant<Outcome, Cause> end,
                                AgentTime grace) {
  terminate(scene, std::move(end), grace);
  std::get<Terminating>(state_).is_settled = true;
}

// SIGKILL at once.
void Attempt::kill(const AttemptScene& scene, std::variant<Outcome, Cause> end) {
  state_ = Terminating{.end = std::move(end), .kill_at = scene.now + kTermGrace};
  signal(scene, SIGKILL);
}

void Attempt::signal(const AttemptScene& scene, int signal) {
  for (std::uint32_t number = 0; number < launch_.local_ranks(); ++number) {
    Rank& rank = ranks_[number];
    if (!is_alive(rank)) continue;
    rank.signalled = true;
    scene.actions.add(SignalWorker{rank.pid, signal});
  }
  end_ranks_elsewhere(scene, signal);
}

void Attempt::set_gone(const AttemptScene& scene, std::uint32_t rank) {
  last_sign_ = scene.watched();
  if (pace_) pace_->on_ended(scene.watched(), rank);
  ranks_[rank].stage = Stage::kGone;
  if (is_here(rank)) scene.actions.add(ForgetWorker{ranks_[rank].worker});
  give_place_back(scene);
}

// ---- The last word ------------------------------------------------------------------------------

const Attempt::Cause* Attempt::cause() const {
  if (const auto* settling = std::get_if<Settling>(&state_)) return &settling->cause;
  const auto* terminating = std::get_if<Terminating>(&state_);
  return terminating == nullptr ? nullptr : std::get_if<Cause>(&terminating->end);
}

const Outcome* Attempt::outcome() const {
  if (const auto* leaving = std::get_if<Leaving>(&state_)) return &leaving->outcome;
  const auto* terminating = std::get_if<Terminating>(&state_);
  return terminating == nullptr ? nullptr : std::get_if<Outcome>(&terminating->end);
}

std::optional<std::variant<Outcome, Attempt::Cause>> Attempt::known_end() const {
  if (const Cause* known = cause()) return *known;
  if (const Outcome* said = outcome()) return *said;
  return std::nullopt;
}

void Attempt::conclude(const AttemptScene& scene) {
  for (Reported& report : held_) scene.actions.tell(scene.now, std::move(report));
  held_.clear();
  if (awaits_checkpoint_) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
  ConcludeAttempt conclusion{.ended = result()};
  const Outcome outcome = conclusion.ended.outcome;
  const bool may_go_on_here = outcome == Outcome::kPaused || is_failure(outcome);
  conclusion.ended.is_kept = may_go_on_here && scene.node.relays && nodes_.size() == 1;
  const bool has_saved =
      outcome == Outcome::kCompleted || outcome == Outcome::kStopped || outcome == Outcome::kPaused;
  // A stop that took too long was killed, maybe in the middle of its save.
  conclusion.removes_half_written = !has_saved || cause() != nullptr || gathers(scene);
  const auto tail = tails_.find(conclusion.ended.rank);
  conclusion.wants_stderr_tail = is_failure(outcome) && tail == tails_.end();
  if (is_failure(outcome) && tail != tails_.end()) conclusion.ended.stderr_tail = tail->second;
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    if (!nodes_[node].is_lost) scene.actions.add(TellNode{key, node, ReleaseNode{}});
  }
  if (nodes_.size() > 1) {
    scene.actions.add(CloseGroup{key});
  }
  scene.actions.add(std::move(conclusion));
}

// Where a batch system ends all of a node, a program or a helper of the trial may die before the
// trial has saved.
AttemptEnded Attempt::result() const {
  AttemptEnded ended = own_end();
  if (!leaves_ || (!is_failure(ended.outcome) && ended.outcome != Outcome::kLost)) return ended;
  ended.outcome = Outcome::kLost;
  ended.is_of_node = true;
  return ended;
}

AttemptEnded Attempt::own_end() const {
  AttemptEnded ended;
  ended.trial = launch_.trial;
  ended.attempt = launch_.attempt;
  if (const Cause* known = cause()) {
    ended.outcome = known->outcome;
    ended.rank = known->rank;
    ended.code = known->code;
    ended.cause = known->text;
    ended.is_of_node = known->is_of_node;
    ended.unlinked = known->unlinked;
    return ended;
  }
  const Outcome* said = outcome();
  ended.outcome = said == nullptr ? Outcome::kLost : *said;
  if (ended.outcome == Outcome::kPaused && !saves_.empty()) {
    ended.outcome = Outcome::kLost;
    ended.cause = fmt::format("only {} of {} ranks saved before they ended",
                              saves_.rbegin()->second.ranks, ranks_.size());
  } else if (ended.outcome == Outcome::kPaused && !not_stored_.empty()) {
    ended.outcome = Outcome::kException;  // as a save that fails where the folder is shared
    ended.code = 1;
    ended.cause = "save: not stored: " + not_stored_;
  } else if (ended.outcome == Outcome::kLost) {
    ended.cause = "it was told to pause but cannot be saved";
  }
  return ended;
}

}  // namespace tune
