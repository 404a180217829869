// The time limits of an attempt, and the rank that is named when one is exceeded.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "core/agent/attempt.h"

namespace tune {
namespace {

void earliest(std::optional<AgentTime>& soonest, std::optional<AgentTime> other) {
  if (other && (!soonest || *other < *soonest)) soonest = other;
}

GroupPace::Limits group_limits(const AttemptConditions& on) {
  return {on.experiment.group_timeout, on.experiment.alone_timeout};
}

}  // namespace

std::optional<AgentTime> Attempt::deadline(const AttemptConditions& on) const {
  std::optional<AgentTime> soonest = node_deadline(on);
  if (const auto* terminating = std::get_if<Terminating>(&state_)) {
    return std::min(soonest.value_or(terminating->kill_at), terminating->kill_at);
  }
  if (const auto* settling = std::get_if<Settling>(&state_)) {
    return std::min(soonest.value_or(settling->terminate_at), settling->terminate_at);
  }
  earliest(soonest, silence_deadline(on));
  earliest(soonest, group_deadline(on));
  if (order_) earliest(soonest, order_->deadline);
  return soonest;
}

void Attempt::on_time(const AttemptScene& scene) {
  const auto is_past = [&](const std::optional<AgentTime>& due) {
    return due && *due <= scene.now;
  };
  look_at_nodes(scene);
  if (!is_past(deadline(scene))) return;
  if (auto* terminating = std::get_if<Terminating>(&state_)) {
    if (terminating->kill_at > scene.now) return;
    terminating->kill_at = scene.now + kTermGrace;  // said again until it is heard
    return signal(scene, SIGKILL);
  }
  if (const auto* settling = std::get_if<Settling>(&state_)) {
    if (settling->terminate_at > scene.now) return;
    return terminate(scene, Cause(settling->cause), kTermGrace);
  }
  if (order_ && is_past(order_->deadline)) return end_by_order(scene);
  if (is_past(group_deadline(scene))) return kill(scene, group_cause(scene));
  if (!is_past(silence_deadline(scene))) return;
  const Outcome* said = outcome();
  if (said != nullptr && have_all_said_end()) return kill(scene, *said);
  kill(scene, silence_cause(scene));
}

// The word of a rank may come this much later before its node counts as quiet.
AgentTime Attempt::link_delay() const {
  return nodes_.size() > 1 ? kQuiet : AgentTime{};
}

// ---- Silence ------------------------------------------------------------------------------------

std::optional<AgentTime> Attempt::silence_deadline(const AttemptConditions& on) const {
  const auto* running = std::get_if<Running>(&state_);
  const bool leaving = std::holds_alternative<Leaving>(state_);
  if (!on.reading || !on.disk_keeps_up || !hears_all()) return std::nullopt;
  if (running == nullptr && !leaving) return std::nullopt;
  // A held report waits for a rank, not for a verdict; while a checkpoint is renamed, for the disk.
  const bool waits_for_rank = !held_.empty() && promoting_ == 0;
  if (running != nullptr && running->waiting && !waits_for_rank) return std::nullopt;
  const Duration limit = on.experiment.hang_timeout;
  const AgentTime since = last_sign_ + link_delay();
  if (limit > Duration::zero() && !have_all_said_end()) return on.watch.next_look(since + limit);
  if (leaving) return on.watch.next_look(since + kExitGrace);
  return std::nullopt;
}

// Blames a rank that others are ahead of, or else rank 0, which all follow.
Attempt::Cause Attempt::silence_cause(const AttemptScene& scene) const {
  const Duration limit = scene.experiment.hang_timeout;
  Cause cause{.outcome = Outcome::kHung, .rank = pace_ ? pace_->hindmost() : 0};
  if (outcome() != nullptr) {
    cause.text = fmt::format("did not end within {:g} s of rank 0, killed",
                             seconds(limit > Duration::zero() ? limit : Duration(kExitGrace)));
  } else {
    cause.text = fmt::format("no report for {:g} s (hang_timeout_s), killed", seconds(limit));
  }
  return cause;
}

// ---- Groups -------------------------------------------------------------------------------------

std::optional<GroupPace::Awaited> Attempt::awaited(const AttemptConditions& on) const {
  if (!pace_ || cause() != nullptr || !on.disk_keeps_up || !hears_all()) return std::nullopt;
  if (on.experiment.group_timeout == Duration::zero()) return std::nullopt;
  const auto* running = std::get_if<Running>(&state_);
  return pace_->awaited(group_limits(on), (running != nullptr && running->waiting) || !on.reading);
}

std::optional<AgentTime> Attempt::group_deadline(const AttemptConditions& on) const {
  const auto laggard = awaited(on);
  if (!laggard) return std::nullopt;
  return on.watch.next_look(laggard->due + link_delay() + kGroupPatience);
}

Attempt::Cause Attempt::group_cause(const AttemptScene& scene) const {
  const GroupPace::Awaited late = *awaited(scene);
  return {.outcome = Outcome::kHung,
          .text = pace_->complaint(late, group_limits(scene)),
          .rank = late.rank};
}

}  // namespace tune
