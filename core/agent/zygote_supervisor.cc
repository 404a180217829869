#include "core/agent/zygote_supervisor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/clock.h"

namespace tune {

AgentTime ZygoteSupervisor::pause_before(int attempt) {
  if (attempt <= 2) return AgentTime::zero();
  AgentTime pause = kFirstPause;
  for (int i = 3; i < attempt && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

void ZygoteSupervisor::start(AgentTime now) {
  state_ = Loading{.since = now, .told = now, .pid = 0};
  actions_.add(StartZygote{});
}

void ZygoteSupervisor::end() {
  if (std::exchange(ends_, true)) return;
  const bool is_there =
      !std::holds_alternative<Unborn>(state_) && !std::holds_alternative<Paused>(state_);
  if (!is_there) state_ = Gone{};
  if (!is_gone()) end_process({});
}

// ---- Events -------------------------------------------------------------------------------------

void ZygoteSupervisor::on_started(AgentTime, std::uint32_t pid) {
  if (auto* loading = std::get_if<Loading>(&state_)) loading->pid = pid;
}

void ZygoteSupervisor::on_not_started(AgentTime now, const std::string& error) {
  start_again(now, "could not be started: " + error);
}

void ZygoteSupervisor::on_ready(AgentTime now, ZygoteReady ready) {
  if (!std::holds_alternative<Loading>(state_)) return;
  if (ready.error.empty()) {
    state_ = Ready{};
    if (!ready_) actions_.tell(now, *(ready_ = std::move(ready)));
    return ask(now);
  }
  if (ready_) return end_failed(now, "failed: " + ready.error);
  given_up_ = ready.error;
  actions_.tell(now, std::move(ready));
  end_process({});
}

void ZygoteSupervisor::on_died(AgentTime now, const std::string& how) {
  const auto* ending = std::get_if<Ending>(&state_);
  const std::string failure =
      ending != nullptr && !ending->failure.empty() ? ending->failure : "died: " + how;
  retract();
  start_again(now, failure);
}

bool ZygoteSupervisor::on_spawned(AgentTime now, const Spawned& spawned) {
  const auto request = requests_.find(spawned.request);
  if (request == requests_.end()) return false;
  const bool exists = spawned.pid != 0;
  if (exists) {
    failures_ = 0;
    requests_.erase(request);
  } else {
    request->second.asked = false;
  }
  auto* ready = std::get_if<Ready>(&state_);
  if (!exists && ready != nullptr && !ready->pause) {
    ready->pause = count_failure(now, "could not fork: " + spawned.error);
  }
  if (ready != nullptr) expect_worker(now, *ready);
  return exists;
}

void ZygoteSupervisor::on_time(AgentTime now) {
  if (auto* ready = std::get_if<Ready>(&state_)) {
    if (ready->pause && *ready->pause <= now) {
      ready->pause.reset();
      ask(now);
    } else if (ready->due && *ready->due <= watch_.at(now)) {
      actions_.tell(now, Warning{fmt::format("the process that starts workers has not answered for "
                                             "{:g} s: it is ended",
                                             seconds(kForkLimit))});
      end_failed(now, "did not answer");
    }
  } else if (auto* loading = std::get_if<Loading>(&state_)) {
    look_at_loading(now, *loading);
  } else if (auto* ending = std::get_if<Ending>(&state_)) {
    if (!ending->due || *ending->due > watch_.at(now)) return;
    ending->due.reset();
    ++failures_;
    give_up(now, ending->failure + ", and did not die when it was killed");
  } else if (const auto* paused = std::get_if<Paused>(&state_)) {
    if (paused->until <= now) start(now);
  }
}

// A library may do anything when it is loaded, so a waiting user is told the reason.
void ZygoteSupervisor::look_at_loading(AgentTime now, Loading& loading) {
  if (now - loading.told < kLoadingNotice) return;
  loading.told = now;
  const auto taken = std::chrono::floor<std::chrono::seconds>(now - loading.since);
  const std::string where = loading.pid != 0 ? fmt::format("pid {}", loading.pid)
                                             : "its process waits for the file of its output";
  actions_.tell(
      now, Warning{fmt::format("loading {} for {} s ({})", options_.loads, taken.count(), where)});
  if (++loading.notices * kLoadingNotice < kLoadLimit) return;
  end_failed(now,
             fmt::format("loads {} for longer than {:g} s", options_.loads, seconds(kLoadLimit)));
}

std::optional<AgentTime> ZygoteSupervisor::deadline() const {
  if (const auto* loading = std::get_if<Loading>(&state_)) return loading->told + kLoadingNotice;
  if (const auto* paused = std::get_if<Paused>(&state_)) return paused->until;
  if (const auto* ending = std::get_if<Ending>(&state_)) {
    if (!ending->due) return std::nullopt;
    return watch_.next_look(*ending->due);
  }
  const auto* ready = std::get_if<Ready>(&state_);
  if (ready == nullptr) return std::nullopt;
  if (!ready->due) return ready->pause;
  const AgentTime due = watch_.next_look(*ready->due);
  return ready->pause ? std::min(due, *ready->pause) : due;
}

// ---- Workers ------------------------------------------------------------------------------------

void ZygoteSupervisor::request(AgentTime now, SpawnWorker worker) {
  const WorkerId id = worker.worker;
  requests_[id] = {std::move(worker)};
  ask(now);
}

bool ZygoteSupervisor::withdraw(WorkerId worker) {
  const auto request = requests_.find(worker);
  if (request == requests_.end()) return true;
  if (request->second.asked) return false;
  requests_.erase(request);
  return true;
}

// Asks the zygote, in order, for the workers it has not been asked for yet.
void ZygoteSupervisor::ask(AgentTime now) {
  auto* ready = std::get_if<Ready>(&state_);
  if (ready == nullptr || ready->pause) return;
  for (auto& [id, request] : requests_) {
    if (!std::exchange(request.asked, true)) actions_.add(request.spawn);
  }
  if (!ready->due) expect_worker(now, *ready);
}

// Sets the time by which the zygote has to fork the next of the workers asked of it.
void ZygoteSupervisor::expect_worker(AgentTime now, Ready& ready) {
  ready.due.reset();
  const bool owes =
      std::ranges::any_of(requests_, [](const auto& one) { return one.second.asked; });
  if (owes) ready.due = watch_.at(now) + kForkLimit;
}

void ZygoteSupervisor::retract() {
  for (auto& [id, request] : requests_) request.asked = false;
}

// ---- Failures -----------------------------------------------------------------------------------

void ZygoteSupervisor::end_failed(AgentTime now, std::string failure) {
  end_process({.failure = std::move(failure), .due = watch_.at(now) + kDeathLimit});
}

void ZygoteSupervisor::end_process(Ending ending) {
  state_ = std::move(ending);
  actions_.add(EndZygote{});
}

void ZygoteSupervisor::start_again(AgentTime now, const std::string& failure) {
  state_ = Gone{};
  if (ends_ || !given_up_.empty()) return;
  const auto at = count_failure(now, failure);
  if (!at) return;
  state_ = Paused{*at};
  if (*at <= now) start(now);
}

// When to try again; nothing: never.
std::optional<AgentTime> ZygoteSupervisor::count_failure(AgentTime now,
                                                         const std::string& failure) {
  ++failures_;
  const int limit = ready_ ? kMaxFailures : kMaxFirstFailures;
  if (!options_.can_restart || failures_ >= limit) {
    give_up(now, failure);
    return std::nullopt;
  }
  const AgentTime pause = pause_before(failures_ + 1);
  if (pause > AgentTime::zero()) {
    actions_.tell(now, Warning{fmt::format("the process that starts workers {}; tried again in "
                                           "{:g} s ({} of {} times)",
                                           failure, seconds(pause), failures_, limit)});
  }
  return now + pause;
}

void ZygoteSupervisor::give_up(AgentTime now, const std::string& failure) {
  const std::string times =
      failures_ > 1 ? fmt::format("failed {} times in a row; at last it ", failures_) : "";
  given_up_ = fmt::format("the process that {} {}{}",
                          ready_ ? "starts workers" : "loads the trainables", times, failure);
  if (ready_) {
    actions_.tell(now, NodeOut{given_up_});
  } else {
    ZygoteReady failed;
    failed.error = given_up_;
    actions_.tell(now, std::move(failed));
  }
}

}  // namespace tune
