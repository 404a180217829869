#include "core/agent/agent_machine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tune {

AgentMachine::AgentMachine(AgentFacts facts)
    : hello_(std::move(facts.hello)),
      stay_(facts.stay),
      node_{hello_.gpus, std::move(facts.once_directory), hello_.pid},
      zygote_(std::move(facts.zygote), watch_, actions_) {}

void AgentMachine::start(AgentTime now) {
  watch_.turn(now);
  if (!ending_) zygote_.start(now);
}

void AgentMachine::on_connected(AgentTime now) {
  AgentHello hello = hello_;
  hello.live = live();
  if (stay_.until) hello.lasts = *stay_.until - now;
  driver_heard_ = now;
  actions_.tell(now, std::move(hello));
}

void AgentMachine::on_unfit(AgentTime now, const std::string& why) {
  end_cause_ = why;
  actions_.tell(now, NodeOut{why});
  end_all(now, Attempt::kTermGrace);
}

// All that this driver may lack, if the one before it has not journaled what it acknowledged. After
// its last word an agent says nothing more.
void AgentMachine::on_other_driver(AgentTime now, std::uint64_t epoch) {
  if (farewell_until_) return;
  AgentHello hello = hello_;
  hello.live = live();
  hello.epoch = epoch;
  if (stay_.until) hello.lasts = std::max(*stay_.until - now, AgentTime{1});
  driver_heard_ = now;
  actions_.tell(now, std::move(hello));
  if (zygote_.ready()) actions_.tell(now, *zygote_.ready());
  if (!leaving_ && !ending_ && zygote_.given_up().empty()) return;
  std::string why = leave_cause_.empty() ? zygote_.given_up() : leave_cause_;
  if (why.empty()) why = end_cause_.empty() ? "it ends" : end_cause_;
  actions_.tell(now, NodeOut{std::move(why)});
}

void AgentMachine::on_experiment_over(AgentTime now) {
  if (ending_) return;
  has_driver_ = false;
  if (node_.relays) actions_.add(GiveUpRelay{});
  end_cause_.clear();
  end_all(now, kAbandonedGrace);
}

// ---- Commands of the driver ---------------------------------------------------------------------

void AgentMachine::on_command(AgentTime now, Command command) {
  std::visit([&](auto& one) { on(now, std::move(one)); }, command);
}

void AgentMachine::on(AgentTime now, SetupExperiment setup) {
  const std::vector<std::uint64_t> keep = std::exchange(setup.keep, {});
  if (node_.relays) setup.experiment_directory = experiment_.experiment_directory;
  experiment_ = std::move(setup);
  is_set_up_ = true;
  for (auto& [key, attempt] : attempts_) {
    if (std::ranges::find(keep, key) != keep.end()) continue;
    attempt.on_loss(scene(now), "the driver does not know this attempt any more");
  }
  tidy_all(now);
}

void AgentMachine::on(AgentTime now, Launch launch) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  if (launch.ranks == 0) return;
  const std::uint32_t ranks = launch.ranks;
  const auto [at, is_new] = attempts_.try_emplace(key, std::move(launch), last_worker_ + 1);
  if (!is_new) return;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) workers_[++last_worker_] = {key, rank};
  if (const std::string why = why_not_launched(); !why.empty()) {
    at->second.on_loss(scene(now), why);
    return tidy(now, at);
  }
  const Launch& begun = at->second.launch();
  if (node_.relays && begun.restore_iteration > 0) {
    at->second.await_checkpoint();
    const CheckpointOrigin own{begun.trial, begun.restore_iteration, begun.restore_attempt};
    actions_.add(FetchCheckpoint{begun.trial, begun.attempt, begun.origin.value_or(own)});
  }
  request_workers(now, at->second);
}

std::string AgentMachine::why_not_launched() const {
  if (!is_set_up_) return "launched before the experiment was set up";
  if (!zygote_.given_up().empty()) {
    return "this node starts no more workers: " + zygote_.given_up();
  }
  if (leaving_) return "this node starts no more workers: " + leave_cause_;
  return ending_ ? "this node starts no more workers" : "";
}

void AgentMachine::request_workers(AgentTime now, const Attempt& attempt) {
  const Launch& launch = attempt.launch();
  for (std::uint32_t rank = 0; rank < launch.ranks; ++rank) {
    SpawnWorker spawn{attempt.worker(rank), experiment_.trainable, launch.ranks > 1, std::nullopt, 0};
    if (spawn.of_group) spawn.group = attempt_key(launch.trial, launch.attempt);
    if (spawn.of_group && rank == 0) spawn.rendezvous = spawn.group;
    zygote_.request(now, std::move(spawn));
  }
}

void AgentMachine::on(AgentTime now, const Continue& verdict) {
  const auto at = find(verdict.trial, verdict.attempt);
  if (at != attempts_.end()) at->second.on_continue(scene(now), verdict);
}

void AgentMachine::on(AgentTime now, const StopAttempt& stop) {
  const auto at = find(stop.trial, stop.attempt);
  if (at != attempts_.end()) at->second.on_stop(scene(now), stop);
}

void AgentMachine::on(AgentTime now, const KillAttempt& kill) {
  const auto at = find(kill.trial, kill.attempt);
  if (at == attempts_.end()) return;
  at->second.on_loss(scene(now), "killed on the driver's order");
  tidy(now, at);
}

void AgentMachine::on(AgentTime now, const Shutdown& shutdown) {
  if (!ending_ && leave_cause_.empty()) {
    end_cause_ = shutdown.cause;
    joins_again_ = shutdown.joins_again;
  }
  end_all(now, Attempt::kTermGrace);
}

void AgentMachine::on(AgentTime now, const Drain& drain) {
  leave(now, drain.cause);
}

void AgentMachine::on_driver_gone(AgentTime now) {
  has_driver_ = false;
  end_all(now, kAbandonedGrace);
}

// One that has joined is told alone: its driver has no part in it.
void AgentMachine::on_signal(AgentTime now, const std::string& name) {
  if (ending_ || !leave_cause_.empty()) return;
  leave(now, "its agent was told to end (" + name + ")");
  if (!hello_.joined) leave_at_ = now + kDriverFirst;
}

void AgentMachine::leave(AgentTime now, const std::string& cause) {
  if (ending_ || !leave_cause_.empty()) return;
  leave_cause_ = end_cause_ = cause;
  if (!has_driver_ && node_.relays) actions_.add(GiveUpRelay{});
  leave_at_ = now;
}

// ---- The stay of an agent that has joined -------------------------------------------------------

std::optional<AgentTime> AgentMachine::stay_ends_at() const {
  if (!hello_.joined || ending_ || !leave_cause_.empty()) return std::nullopt;
  std::optional<AgentTime> soonest;
  const auto earliest = [&](AgentTime other) {
    soonest = std::min(soonest.value_or(other), other);
  };
  if (stay_.until) earliest(*stay_.until - stay_.drain);
  if (idle_since_ && stay_.idle > AgentTime{}) earliest(*idle_since_ + stay_.idle);
  if (is_set_up_) earliest(driver_heard_ + experiment_.joined.patience);
  return soonest;
}

std::string AgentMachine::why_stay_ends(AgentTime now) const {
  const auto seconds = [](AgentTime time) { return std::chrono::duration<double>(time).count(); };
  if (stay_.until && *stay_.until - stay_.drain <= now) {
    return fmt::format("its time ends in {:.0f} s", seconds(*stay_.until - now));
  }
  if (is_set_up_ && driver_heard_ + experiment_.joined.patience <= now) {
    return fmt::format("no driver was heard for {:.0f} s", seconds(now - driver_heard_));
  }
  return fmt::format("it had no trial for {:.0f} s", seconds(stay_.idle));
}

void AgentMachine::end_stay_if_due(AgentTime now) {
  const bool is_idle = is_set_up_ && attempts_.empty();
  if (!is_idle) idle_since_.reset();
  if (is_idle && !idle_since_) idle_since_ = now;
  // Where no worker can be started any more, a machine that joined is of no use to anybody.
  const bool is_useless = hello_.joined && attempts_.empty() && !zygote_.given_up().empty();
  if (is_useless) leave(now, zygote_.given_up());
  const std::optional<AgentTime> end = stay_ends_at();
  if (!end || *end > now) return;
  if (is_set_up_ && driver_heard_ + experiment_.joined.patience <= now) has_driver_ = false;
  leave(now, why_stay_ends(now));
}

// Trials that the driver has not told how to end are paused, and go on elsewhere or later.
void AgentMachine::leave_if_due(AgentTime now) {
  if (leave_at_ && *leave_at_ <= now && !ending_) {
    leave_at_.reset();
    leaving_ = true;
    actions_.tell(now, NodeOut{leave_cause_});
    for (auto& [key, attempt] : attempts_) {
      const Launch& launch = attempt.launch();
      if (attempt.is_starting()) {
        attempt.on_loss(scene(now), leave_cause_);
      } else if (!attempt.has_order()) {
        attempt.on_stop(scene(now), {launch.trial, launch.attempt, StopKind::kPause, kSaveGrace});
      }
    }
    tidy_all(now);
  }
  if (leaving_ && !ending_ && attempts_.empty()) end_all(now, Attempt::kTermGrace);
}

void AgentMachine::end_all(AgentTime now, AgentTime grace) {
  leave_at_.reset();
  ending_ = true;
  zygote_.end();
  for (auto& [key, attempt] : attempts_) {
    attempt.on_loss(scene(now), "the agent was told to end", grace);
  }
  tidy_all(now);
}

// ---- The zygote ---------------------------------------------------------------------------------

void AgentMachine::on_zygote_started(AgentTime now, std::uint32_t pid) {
  zygote_.on_started(now, pid);
}

void AgentMachine::on_zygote_not_started(AgentTime now, const std::string& error) {
  zygote_.on_not_started(now, error);
  end_unborn(now);
}

void AgentMachine::on_zygote(AgentTime now, ZygoteMessage message) {
  std::visit([&](auto& one) { on(now, std::move(one)); }, message);
}

void AgentMachine::on(AgentTime now, ZygoteReady ready) {
  zygote_.on_ready(now, std::move(ready));
  end_unborn(now);
}

void AgentMachine::on(AgentTime now, const Spawned& spawned) {
  const bool exists = zygote_.on_spawned(now, spawned);
  const auto place = workers_.find(spawned.request);
  if (exists && place != workers_.end()) {
    pids_[spawned.pid] = spawned.request;
    attempts_.at(place->second.attempt).on_forked(scene(now), place->second.rank, spawned.pid);
  } else if (place != workers_.end()) {
    tidy(now, attempts_.find(place->second.attempt));
  }
  end_unborn(now);
}

void AgentMachine::on_zygote_died(AgentTime now, const std::string& how) {
  zygote_.on_died(now, how);
  tidy_all(now);  // attempts that are being ended get no more workers
  end_unborn(now);
}

// Attempts that wait for a worker are lost when there will be no workers any more.
void AgentMachine::end_unborn(AgentTime now) {
  if (zygote_.given_up().empty()) return;
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const auto attempt = at++;
    if (!attempt->second.is_starting()) continue;
    attempt->second.on_loss(scene(now), "this node starts no more workers: " + zygote_.given_up());
    tidy(now, attempt);
  }
}

// ---- Workers ------------------------------------------------------------------------------------

void AgentMachine::on_worker(AgentTime now, WorkerId worker, WorkerEvent event) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  const auto attempt = attempts_.find(place->second.attempt);
  attempt->second.on_word(scene(now), place->second.rank, std::move(event));
  if (attempt->second.is_terminating()) tidy(now, attempt);
}

void AgentMachine::on_worker_garbled(AgentTime now, WorkerId worker, const std::string& what) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  const auto attempt = attempts_.find(place->second.attempt);
  attempt->second.on_nonsense(scene(now), place->second.rank, what);
  tidy(now, attempt);
}

void AgentMachine::on_exit(AgentTime now, std::uint32_t pid, const ProcessEnd& end) {
  const auto known = pids_.find(pid);
  if (known == pids_.end()) return;
  const auto worker = workers_.find(known->second);
  const Place place = worker->second;
  workers_.erase(worker);
  pids_.erase(known);
  const auto attempt = attempts_.find(place.attempt);
  attempt->second.on_exit(scene(now), place.rank, end);
  tidy(now, attempt);
}

void AgentMachine::on_promoted(AgentTime now, const CheckpointSaved& saved,
                               const std::string& error) {
  const auto attempt = find(saved.trial, saved.attempt);
  if (attempt == attempts_.end()) return;
  attempt->second.on_promoted(scene(now), saved, error);
  tidy(now, attempt);
}

void AgentMachine::on_own_folder(const std::string& folder) {
  node_.relays = true;
  experiment_.experiment_directory = folder;
}

void AgentMachine::on_stored(AgentTime now, const CheckpointSaved& saved, bool is_stored,
                             const std::string& why_not) {
  const auto attempt = find(saved.trial, saved.attempt);
  if (attempt == attempts_.end()) return;
  attempt->second.on_stored(scene(now), saved, is_stored, why_not);
  tidy(now, attempt);
}

void AgentMachine::on_fetched(AgentTime now, TrialNumber trial, AttemptNumber number,
                              const std::string& error, bool is_of_node) {
  if (is_of_node) leave(now, "it cannot hold a checkpoint: " + error);
  const auto attempt = find(trial, number);
  if (attempt == attempts_.end()) return;
  if (is_of_node) {
    attempt->second.on_loss(scene(now), "this node cannot hold its checkpoint: " + error);
  } else {
    attempt->second.on_fetched(scene(now), error);
  }
  tidy(now, attempt);
}

// Ranks that were not asked for yet never will be when their attempt is being ended. An attempt
// that is over is reported.
void AgentMachine::tidy(AgentTime now, Attempts::iterator at) {
  Attempt& attempt = at->second;
  for (std::uint32_t rank = 0; attempt.is_terminating() && rank < attempt.launch().ranks; ++rank) {
    if (!attempt.is_awaited(rank) || !zygote_.withdraw(attempt.worker(rank))) continue;
    workers_.erase(attempt.worker(rank));
    attempt.on_never_forked(scene(now), rank);
  }
  if (!attempt.is_over()) return;
  concluding_.emplace(attempt.launch().trial, attempt.launch().attempt);
  attempt.conclude(scene(now));
  attempts_.erase(at);
}

void AgentMachine::tidy_all(AgentTime now) {
  for (auto at = attempts_.begin(); at != attempts_.end();) tidy(now, at++);
}

void AgentMachine::on_concluded(AgentTime now, AttemptEnded ended) {
  concluding_.erase({ended.trial, ended.attempt});
  actions_.tell(now, std::move(ended));
}

// ---- The driver's pace --------------------------------------------------------------------------

void AgentMachine::on_backlog(AgentTime now, std::size_t unacknowledged_bytes) {
  unacknowledged_bytes_ = unacknowledged_bytes;
  const bool is_behind = unacknowledged_bytes > kCreditBytes;
  const bool keeps_up = unacknowledged_bytes < kCreditBytes / 2;
  if (reading_ ? !is_behind : !keeps_up) return;
  reading_ = !reading_;
  for (auto& [key, attempt] : attempts_) attempt.on_reading_changed(scene(now));
}

void AgentMachine::on_disk(AgentTime now, bool keeps_up) {
  const bool again = keeps_up && !disk_keeps_up_;
  disk_keeps_up_ = keeps_up;
  if (!again) return;
  for (auto& [key, attempt] : attempts_) attempt.on_disk_keeps_up(scene(now));
}

bool AgentMachine::is_due_to_send(AgentTime now) const {
  return !actions_.tell_by() || *actions_.tell_by() <= now;
}

// ---- Time ---------------------------------------------------------------------------------------

std::optional<AgentTime> AgentMachine::next_deadline() const {
  std::optional<AgentTime> soonest = zygote_.deadline();
  const auto earliest = [&](const std::optional<AgentTime>& other) {
    if (other && (!soonest || *other < *soonest)) soonest = other;
  };
  earliest(actions_.tell_by());
  earliest(leave_at_);
  earliest(stay_ends_at());
  earliest(farewell_until_);
  for (const auto& [key, attempt] : attempts_) earliest(attempt.deadline(conditions()));
  return soonest;
}

void AgentMachine::on_time(AgentTime now) {
  watch_.turn(now);
  zygote_.on_time(now);
  end_unborn(now);
  for (auto at = attempts_.begin(); at != attempts_.end();) {
    const auto attempt = at++;
    attempt->second.on_time(scene(now));
    if (attempt->second.is_terminating()) tidy(now, attempt);
  }
  end_stay_if_due(now);
  leave_if_due(now);
  check_farewell(now);
}

void AgentMachine::check_farewell(AgentTime now) {
  const bool is_done = ending_ && attempts_.empty() && concluding_.empty() && zygote_.is_gone();
  if (is_done && !farewell_until_) {
    farewell_until_ = now + kFarewell;
    if (hello_.joined) actions_.tell(now, NodeOut{end_cause_, true});
  }
  if (is_done && now >= *farewell_until_) farewell_is_over_ = true;
}

bool AgentMachine::is_over() const {
  if (!farewell_until_) return false;
  const bool is_heard = !actions_.tell_by() && unacknowledged_bytes_ == 0;
  return is_heard || !has_driver_ || farewell_is_over_;
}

// ---- Queries ------------------------------------------------------------------------------------

WorkerId AgentMachine::worker_of(std::uint32_t pid) const {
  const auto found = pids_.find(pid);
  return found == pids_.end() ? 0 : found->second;
}

std::vector<LiveAttempt> AgentMachine::live() const {
  std::vector<LiveAttempt> live;
  for (const auto& [key, attempt] : attempts_) live.push_back(attempt.account());
  for (const auto& [trial, attempt] : concluding_) live.push_back({trial, attempt});
  return live;
}

AgentMachine::Attempts::iterator AgentMachine::find(TrialNumber trial, AttemptNumber attempt) {
  return attempts_.find(attempt_key(trial, attempt));
}

}  // namespace tune
