#include "core/agent/agent_machine.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "core/agent/worker_rest.h"

namespace tune {

AgentMachine::AgentMachine(NodeFacts node, bool can_restart)
    : node_(std::move(node)), can_restart_(can_restart) {}

// ---- Commands of the driver ---------------------------------------------------------------------

void AgentMachine::on_command(AgentTime now, Command command) {
  std::visit([&](auto& one) { on(now, std::move(one)); }, command);
  conclude_finished();
}

void AgentMachine::on(AgentTime now, SetupExperiment setup) {
  std::vector<std::uint64_t> keep = std::exchange(setup.keep, {});
  experiment_ = std::move(setup);
  for (auto& [key, attempt] : attempts_) {
    if (std::ranges::find(keep, key) != keep.end()) continue;
    lose(attempt, "the driver does not know this attempt any more");
    terminate(now, attempt);
  }
}

void AgentMachine::on(AgentTime now, Launch launch) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  if (attempts_.contains(key) || launch.ranks == 0) return;
  Attempt& attempt = attempts_[key];
  attempt.launch = std::move(launch);
  attempt.until = attempt.launch.until;
  attempt.ranks.resize(attempt.launch.ranks);
  for (std::uint32_t rank = 0; rank < attempt.launch.ranks; ++rank) {
    attempt.ranks[rank].worker = ++last_worker_;
    workers_[last_worker_] = {key, rank};
    requests_[last_worker_] = false;
  }
  if (!experiment_ || ending_ || !zygote_error_.empty()) {
    lose(attempt, !experiment_ ? "launched before the experiment was set up"
                               : fmt::format("this node starts no more workers{}{}",
                                             zygote_error_.empty() ? "" : ": ", zygote_error_));
    return terminate(now, attempt);
  }
  request_workers(now);
}

void AgentMachine::on(AgentTime now, Continue verdict) {
  Attempt* attempt = find(verdict.trial, verdict.attempt);
  if (attempt == nullptr || !attempt->started || attempt->ranks[0].gone) return;
  attempt->waiting = false;
  attempt->until = verdict.until;
  attempt->last_sign = now;
  if (attempt->pace) attempt->pace->on_listening(watched(now), 0);
  act(TellWorker{attempt->ranks[0].worker, std::move(verdict)});
}

void AgentMachine::on(AgentTime now, StopAttempt stop) {
  Attempt* attempt = find(stop.trial, stop.attempt);
  if (attempt == nullptr) return;
  attempt->waiting = false;
  attempt->last_sign = now;
  if (attempt->pace) attempt->pace->on_listening(watched(now), 0);
  if (stop.grace > Duration::zero()) attempt->stop_deadline = now + stop.grace;
  if (attempt->started && !attempt->ranks[0].gone) act(TellWorker{attempt->ranks[0].worker, stop});
  attempt->stop = stop;
}

void AgentMachine::on(AgentTime now, KillAttempt kill) {
  Attempt* attempt = find(kill.trial, kill.attempt);
  if (attempt == nullptr) return;
  lose(*attempt, "killed on the driver's order");
  terminate(now, *attempt);
}

void AgentMachine::on(AgentTime now, Shutdown) {
  end_all(now, kTermGrace);
}

void AgentMachine::on_driver_gone(AgentTime now) {
  end_all(now, kAbandonedGrace);
  conclude_finished();
}

void AgentMachine::end_all(AgentTime now, AgentTime grace) {
  if (!std::exchange(ending_, true)) act(EndZygote{});
  for (auto& [key, attempt] : attempts_) {
    lose(attempt, "the agent was told to end");
    terminate(now, attempt, grace);
  }
}

// ---- The zygote ---------------------------------------------------------------------------------

void AgentMachine::on_zygote(AgentTime now, ZygoteMessage message) {
  std::visit([&](auto& one) { on(now, std::move(one)); }, message);
  conclude_finished();
}

void AgentMachine::on(AgentTime now, ZygoteReady ready) {
  if (!ready.error.empty()) return zygote_failed(now, std::move(ready.error));
  zygote_ready_ = true;
  if (!std::exchange(ready_told_, true)) act(TellDriver{std::move(ready)});
  request_workers(now);
}

void AgentMachine::on(AgentTime now, const Spawned& spawned) {
  const auto place = workers_.find(spawned.request);
  if (place == workers_.end() || requests_.erase(spawned.request) == 0) return;
  expect_worker(now);
  const auto [key, number] = place->second;
  Attempt& attempt = attempts_.at(key);
  Rank& rank = attempt.ranks[number];
  if (spawned.pid == 0) {
    blame(now, attempt,
          {.outcome = Outcome::kException,
           .text = "the worker could not be started: " + spawned.error,
           .rank = number});
    return gone(now, rank);
  }
  zygote_deaths_ = 0;
  rank.pid = spawned.pid;
  pids_[spawned.pid] = spawned.request;
  if (attempt.kill_at) {  // ended while this rank was being forked
    rank.signalled = true;
    act(SignalWorker{rank.pid, SIGKILL});
  }
  start_if_complete(now, attempt);
}

void AgentMachine::start_if_complete(AgentTime now, Attempt& attempt) {
  const auto exists = [](const Rank& rank) { return rank.pid != 0 && !rank.gone; };
  if (attempt.kill_at || !std::ranges::all_of(attempt.ranks, exists)) return;
  attempt.started = true;
  attempt.last_sign = now;
  const Launch& launch = attempt.launch;
  if (launch.ranks > 1) {
    attempt.pace.emplace(watched(now), launch.ranks, launch.restore_iteration > 0);
  }
  act(TellDriver{AttemptStarted{launch.trial, launch.attempt, attempt.ranks[0].pid}});
  for (std::uint32_t rank = 0; rank < launch.ranks; ++rank) {
    act(TellWorker{attempt.ranks[rank].worker, worker_start(*experiment_, launch, rank, node_)});
  }
  if (attempt.stop) act(TellWorker{attempt.ranks[0].worker, *attempt.stop});
  if (!reading_) hold(attempt);
}

// Asks for what has not been asked for yet, in order.
void AgentMachine::request_workers(AgentTime now) {
  if (!zygote_ready_) return;
  for (auto& [worker, asked] : requests_) {
    if (std::exchange(asked, true)) continue;
    const Place place = workers_.at(worker);
    const bool of_group = attempts_.at(place.attempt).launch.ranks > 1;
    const bool leads = of_group && place.rank == 0;
    const auto rendezvous = leads ? std::optional(place.attempt) : std::nullopt;
    act(SpawnWorker{worker, experiment_->trainable, of_group, rendezvous});
  }
  if (!zygote_due_) expect_worker(now);
}

// The zygote has until then to fork the next of those that it has been asked for.
void AgentMachine::expect_worker(AgentTime now) {
  zygote_due_.reset();
  const auto is_asked = [](const auto& request) { return request.second; };
  if (std::ranges::any_of(requests_, is_asked)) zygote_due_ = watched(now) + kForkLimit;
}

void AgentMachine::end_stuck_zygote() {
  zygote_due_.reset();
  act(
      TellDriver{Warning{fmt::format("the process that starts workers has not answered for {:g} s: "
                                     "it is ended",
                                     seconds(kForkLimit))}});
  act(EndZygote{});
}

void AgentMachine::on_zygote_died(AgentTime now, const std::string& how) {
  zygote_alive_ = zygote_ready_ = false;
  zygote_due_.reset();
  ++zygote_deaths_;
  for (auto& [worker, asked] : requests_) asked = false;
  drop_ending_requests(now);
  if (!ending_ && zygote_error_.empty()) {
    if (can_restart_ && zygote_deaths_ < kMaxZygoteDeaths) {
      zygote_alive_ = true;
      act(StartZygote{});
    } else {
      zygote_failed(
          now,
          fmt::format("the process that loads the trainables died{}: {}",
                      zygote_deaths_ > 1 ? fmt::format(" {} times", zygote_deaths_) : "", how));
    }
  }
  conclude_finished();
}

// Attempts that are being ended get no more workers.
void AgentMachine::drop_ending_requests(AgentTime now) {
  for (const auto& [worker, asked] : std::map(requests_)) {
    const Place place = workers_.at(worker);
    Attempt& attempt = attempts_.at(place.attempt);
    if (attempt.kill_at && !asked) gone(now, attempt.ranks[place.rank]);
  }
}

// No more workers here: what waits for one is lost.
void AgentMachine::zygote_failed(AgentTime now, std::string error) {
  zygote_error_ = error;
  ZygoteReady failed;
  failed.error = std::move(error);
  act(TellDriver{std::move(failed)});
  for (const auto& [worker, asked] : std::map(requests_)) {
    const auto place = workers_.find(worker);
    if (place == workers_.end()) continue;  // gone with another rank of its attempt
    Attempt& attempt = attempts_.at(place->second.attempt);
    lose(attempt, "this node starts no more workers: " + zygote_error_);
    terminate(now, attempt);
  }
}

// ---- Workers ------------------------------------------------------------------------------------

void AgentMachine::on_worker(AgentTime now, WorkerId worker, WorkerEvent event) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  Attempt& attempt = attempts_.find(place->second.attempt)->second;
  attempt.last_sign = now;
  Rank& rank = attempt.ranks[place->second.rank];
  std::visit([&](auto& one) { heard(now, attempt, rank, std::move(one)); }, event);
}

void AgentMachine::on_worker_garbled(AgentTime now, WorkerId worker, const std::string& what) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  Attempt& attempt = attempts_.at(place->second.attempt);
  blame(now, attempt,
        {.outcome = Outcome::kException,
         .text = "the worker sent nonsense: " + what,
         .rank = place->second.rank});
  terminate(now, attempt);
}

void AgentMachine::heard(AgentTime now, Attempt& attempt, Rank& rank, Reported report) {
  const Launch& launch = attempt.launch;
  if (&rank != &attempt.ranks[0] || report.trial != launch.trial ||
      report.attempt != launch.attempt) {
    return on_worker_garbled(now, rank.worker, "a report of another rank or attempt");
  }
  done(now, attempt, rank);
  if (blame_deserter(now, attempt)) return;  // the result is of a part of the group
  attempt.waiting = report.waiting;
  if (launch.ranks == 1 && may_rest(report, attempt.until)) act(RestWorker{rank.worker});
  // Rank 0 may be ahead of a rank that still saves: the driver hears of that checkpoint first.
  const bool ahead = !attempt.saves.empty() && attempt.saves.begin()->first < report.iteration;
  if (ahead) return attempt.held.push_back(std::move(report));
  act(TellDriver{std::move(report)});
}

void AgentMachine::heard(AgentTime now, Attempt& attempt, Rank& rank, RankSaved saved) {
  done(now, attempt, rank);
  Save& save = attempt.saves[saved.iteration];
  if (&rank == &attempt.ranks[0]) save.leader = saved;
  if (++save.ranks < attempt.ranks.size()) return;
  act(PromoteCheckpoint{{attempt.launch.trial, attempt.launch.attempt, saved.iteration,
                         save.leader.time_total, save.leader.timesteps_total}});
}

void AgentMachine::heard(AgentTime now, Attempt& attempt, Rank& rank, GroupStep step) {
  if (&rank != &attempt.ranks[0]) {
    return on_worker_garbled(now, rank.worker, "a word to the group that is not of rank 0");
  }
  if (attempt.pace) attempt.pace->on_word(watched(now), step);
  for (const Rank& other : attempt.ranks) {
    if (&other != &rank && !other.gone) act(TellWorker{other.worker, step});
  }
}

void AgentMachine::heard(AgentTime now, Attempt& attempt, Rank& rank, WorkerEnded ended) {
  rank.said_end = true;
  const std::uint32_t number = workers_.at(rank.worker).rank;
  const bool threw = ended.outcome == Outcome::kException;
  if (attempt.pace && threw) attempt.pace->on_ended(watched(now), number);
  if (attempt.pace && !threw) attempt.pace->on_returned(watched(now), number);
  if (threw) {
    blame(now, attempt,
          {.outcome = ended.outcome,
           .text = std::move(ended.cause),
           .code = 1,
           .rank = number,
           .is_of_group = ended.is_of_group});
  } else if (number == 0) {
    attempt.leader_outcome = ended.outcome;
    attempt.waiting = false;
  }
  blame_deserter(now, attempt);
}

void AgentMachine::heard(AgentTime, Attempt&, Rank&, Warning warning) {
  act(TellDriver{std::move(warning)});
}

void AgentMachine::heard(AgentTime now, Attempt& attempt, Rank& rank, PhaseDone) {
  done(now, attempt, rank);
}

void AgentMachine::done(AgentTime now, Attempt& attempt, const Rank& rank) {
  if (attempt.pace) attempt.pace->on_done(watched(now), workers_.at(rank.worker).rank);
}

void AgentMachine::on_promoted(AgentTime now, const CheckpointSaved& saved,
                               const std::string& error) {
  Attempt* attempt = find(saved.trial, saved.attempt);
  if (error.empty()) act(TellDriver{saved});
  if (attempt == nullptr) return;
  attempt->saves.erase(saved.iteration);
  const auto next = attempt->saves.begin();
  tell_held(*attempt, next == attempt->saves.end() ? ~std::uint64_t{0} : next->first);
  if (error.empty()) return;
  blame(now, *attempt, {.outcome = Outcome::kException, .text = "save: " + error});
  terminate(now, *attempt);
}

void AgentMachine::tell_held(Attempt& attempt, std::uint64_t up_to) {
  auto held = attempt.held.begin();
  for (; held != attempt.held.end() && held->iteration <= up_to; ++held) {
    act(TellDriver{std::move(*held)});
  }
  attempt.held.erase(attempt.held.begin(), held);
}

void AgentMachine::on_backlog(AgentTime now, std::size_t unacknowledged_bytes) {
  if (reading_ && unacknowledged_bytes > kCreditBytes) {
    reading_ = false;
    for (auto& [key, attempt] : attempts_) hold(attempt);
  } else if (!reading_ && unacknowledged_bytes < kCreditBytes / 2) {
    reading_ = true;
    for (auto& [key, attempt] : attempts_) {  // they were not listened to, or held
      attempt.last_sign = now;
      if (attempt.pace) attempt.pace->on_listening(watched(now), 0);
      hold(attempt);
    }
  }
}

// A group, or lets it go on, as the driver keeps up.
void AgentMachine::hold(Attempt& attempt) {
  if (!attempt.pace || attempt.ranks[0].gone) return;
  act(TellWorker{attempt.ranks[0].worker, HoldGroup{!reading_}});
}

WorkerId AgentMachine::worker_of(std::uint32_t pid) const {
  const auto found = pids_.find(pid);
  return found == pids_.end() ? 0 : found->second;
}

std::vector<LiveAttempt> AgentMachine::live() const {
  std::vector<LiveAttempt> live;
  for (const auto& [key, attempt] : attempts_) {
    live.push_back({attempt.launch.trial, attempt.launch.attempt});
  }
  return live;
}

AgentMachine::Attempt* AgentMachine::find(TrialNumber trial, AttemptNumber attempt) {
  const auto found = attempts_.find(attempt_key(trial, attempt));
  return found == attempts_.end() ? nullptr : &found->second;
}

}  // namespace tune
