#include "simulator/replacement_promises.h"

#include <utility>

#include <fmt/format.h>

#include "simulator/violation.h"

namespace tune::simulator {

namespace {

constexpr const char* kOnce = "each replacement happens once and whole";

std::string name_of(const CheckpointOrigin& origin) {
  return fmt::format("iteration {} of attempt {} of trial {}", origin.iteration,
                     origin.attempt.value, origin.trial.value);
}

}  // namespace

ReplacementPromises::Origins ReplacementPromises::restarts() const {
  Origins all;
  for (const auto& [number, known] : trials_) {
    if (const auto restart = known.restart()) all.insert(*restart);
  }
  return all;
}

// A turn whose commands were never seen may have replaced what it heard of, and what was paused.
void ReplacementPromises::turn_begins() {
  for (const TrialNumber trial : std::exchange(reported_in_, {})) {
    trials_[trial].may_be_replaced = true;
  }
  for (auto& [number, known] : trials_) {
    if (!is_open_ || !known.may_be_replaced) continue;
    known.allowed.merge(Origins(before_));
    known.allowed.merge(Origins(since_));
  }
  is_open_ = true;
  since_.clear();
  before_ = restarts();
}

void ReplacementPromises::reported(const Reported& report) {
  Known& known = trials_[report.trial];
  if (known.is_leaving) return;
  known.last_reported = report.iteration;
  reported_in_.insert(report.trial);
}

void ReplacementPromises::saved(const CheckpointSaved& saved) {
  Known& known = trials_[saved.trial];
  if (known.is_leaving) return;
  known.own = CheckpointOrigin{saved.trial, saved.iteration, saved.attempt};
  since_.insert(*known.own);
  known.origin.reset();
}

void ReplacementPromises::ended(const AttemptEnded& ended) {
  if (ended.outcome != Outcome::kPaused) return;
  Known& known = trials_[ended.trial];
  known.may_be_replaced = true;
}

void ReplacementPromises::told(const StopAttempt& stop) {
  Known& known = trials_[stop.trial];
  if (stop.kind == StopKind::kPause) known.may_be_replaced = true;  // when it is resumed
  if (stop.kind != StopKind::kLeave || known.is_leaving) return;
  ++world_.tally.replacements;
  known.is_leaving = true;
  known.allowed = before_;
  known.allowed.merge(Origins(since_));
}

void ReplacementPromises::told_unseen(TrialNumber trial) {
  Known& known = trials_[trial];
  if (std::exchange(known.is_leaving, true)) return;
  known.allowed = before_;
  known.allowed.merge(Origins(since_));
  known.allowed.merge(restarts());
}

void ReplacementPromises::launched(const Launch& launch) {
  const auto [found, is_new] = trials_.try_emplace(launch.trial);
  Known& known = found->second;
  const bool may_change = is_new || known.is_leaving || known.may_be_replaced;
  if (!known.config.bytes.empty() && known.config != launch.config && !may_change) {
    violate("a trial's configuration changes only when it is replaced",
            fmt::format("attempt {} of trial {} has another one", launch.attempt.value,
                        launch.trial.value));
  }
  known.config = launch.config;
  if (launch.origin) {
    take_origin(launch, known);
  } else if (known.is_leaving || (known.origin && !known.may_be_replaced)) {
    violate(kOnce, fmt::format("attempt {} of trial {} begins with its own state",
                               launch.attempt.value, launch.trial.value));
  } else {
    known.origin.reset();
  }
  known.last_reported = launch.restore_iteration;  // later results are void
  known.is_leaving = known.may_be_replaced = false;
  known.allowed.clear();
}

void ReplacementPromises::take_origin(const Launch& launch, Known& known) {
  const bool is_again = known.origin == launch.origin && known.count == launch.restore_iteration;
  if (is_again && !known.is_leaving) {
    ++world_.tally.restarts_from_origin;
    return;
  }
  if (!known.is_leaving && !known.may_be_replaced) {
    violate(kOnce, fmt::format("trial {} begins with {}, and was not told to leave its own state",
                               launch.trial.value, name_of(*launch.origin)));
  }
  if (known.may_be_replaced) {  // at some event of this turn
    known.allowed.merge(Origins(before_));
    known.allowed.merge(Origins(since_));
    known.allowed.merge(restarts());
  }
  if (!known.allowed.contains(*launch.origin)) {
    violate(kOnce, fmt::format("trial {} begins with {}, which no trial would restart from",
                               launch.trial.value, name_of(*launch.origin)));
  }
  if (launch.restore_iteration != known.last_reported) {
    violate("a replaced trial keeps its count",
            fmt::format("trial {} reported {} and counts on from {}", launch.trial.value,
                        known.last_reported, launch.restore_iteration));
  }
  known.origin = launch.origin;
  known.count = launch.restore_iteration;
}

void ReplacementPromises::turn_is_over() {
  reported_in_.clear();
  is_open_ = false;
}

bool ReplacementPromises::is_leaving(TrialNumber trial) const {
  const auto found = trials_.find(trial);
  return found != trials_.end() && found->second.is_leaving;
}

}  // namespace tune::simulator
