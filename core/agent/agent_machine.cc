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
  if (is_set_up_) hello.experiment = experiment_.experiment_id;
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
  with_all(now, [&](std::uint64_t key, auto& attempt) {
    if (std::ranges::find(keep, key) != keep.end()) return;
    attempt.on_loss(scene(now), "the driver does not know this attempt any more");
  });
}

void AgentMachine::on(AgentTime now, Launch launch) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  if (launch.local_ranks() == 0 || launch.node >= launch.nodes()) return;
  if (launch.node > 0) return launch_part(now, std::move(launch));
  const std::uint32_t ranks = launch.local_ranks();
  const WorkerId first = last_worker_ + 1;
  const auto [at, is_new] = attempts_.try_emplace(key, std::move(launch), first);
  if (!is_new) return;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) workers_[++last_worker_] = {key, rank};
  if (const std::string why = why_not_launched(); !why.empty()) {
    at->second.on_loss(scene(now), why);
    return tidy(now, attempts_, at);
  }
  at->second.on_launched(scene(now));
  const Launch& begun = at->second.launch();
  fetch_checkpoint(at->second);
  request_workers(now, begun, first);
}

// Every node of a group that carries needs all of it.
void AgentMachine::fetch_checkpoint(auto& attempt) {
  const Launch& launch = attempt.launch();
  if (!node_.relays || launch.restore_iteration == 0) return;
  attempt.await_checkpoint();
  const CheckpointOrigin own{launch.trial, launch.restore_iteration, launch.restore_attempt};
  actions_.add(
      FetchCheckpoint{launch.trial, launch.attempt, launch.origin.value_or(own), launch.node});
}

// Its lead has begun the attempt already.
void AgentMachine::launch_part(AgentTime now, Launch launch) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  const WorkerId first = last_worker_ + 1;
  const auto [at, is_new] = parts_.try_emplace(key, std::move(launch), first);
  if (!is_new) return;
  const Launch& begun = at->second.launch();
  for (std::uint32_t rank = 0; rank < begun.local_ranks(); ++rank) {
    workers_[++last_worker_] = {key, begun.first_rank() + rank};
  }
  if (const std::string why = why_not_launched(); !why.empty()) {
    at->second.on_loss(scene(now), why);
    return tidy(now, parts_, at);
  }
  at->second.on_launched(scene(now));
  fetch_checkpoint(at->second);
  request_workers(now, begun, first);
}

std::string AgentMachine::why_not_launched() const {
  if (!is_set_up_) return "launched before the experiment was set up";
  if (!zygote_.given_up().empty()) {
    return "this node starts no more workers: " + zygote_.given_up();
  }
  if (leaving_) return "this node starts no more workers: " + leave_cause_;
  return ending_ ? "this node starts no more workers" : "";
}

// Ranks on several nodes share no memory. Rank 0 comes last: the zygote forks the others while this
// agent makes the socket where they meet rank 0.
void AgentMachine::request_workers(AgentTime now, const Launch& launch, WorkerId first) {
  const std::uint64_t key = attempt_key(launch.trial, launch.attempt);
  for (std::uint32_t rank = launch.local_ranks(); rank-- > 0;) {
    SpawnWorker spawn{first + rank, experiment_.trainable, launch.ranks > 1, std::nullopt, 0};
    if (spawn.of_group && launch.nodes() == 1) spawn.group = key;
    if (spawn.of_group && launch.first_rank() + rank == 0) spawn.rendezvous = key;
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
  const std::uint64_t key = attempt_key(kill.trial, kill.attempt);
  const bool is_known = attempts_.contains(key) || parts_.contains(key) ||
                        concluding_.contains({kill.trial, kill.attempt});
  if (is_known) {
    return with(now, key, [&](auto& attempt) { attempt.on_kill(scene(now)); });
  }
  // Its lead was lost before the other nodes were launched: this one holds a place for nothing.
  AttemptEnded never;
  never.trial = kill.trial;
  never.attempt = kill.attempt;
  never.outcome = Outcome::kLost;
  never.cause = "nothing of it runs here";
  never.is_of_node = true;
  actions_.tell(now, std::move(never));
}

void AgentMachine::on(AgentTime now, const Shutdown& shutdown) {
  if (!ending_ && leave_cause_.empty()) {
    end_cause_ = shutdown.cause;
    joins_again_ = shutdown.joins_again;
  }
  if (shutdown.at_once) has_driver_ = false;
  end_all(now, shutdown.at_once ? kAbandonedGrace : Attempt::kTermGrace);
}

void AgentMachine::on(AgentTime now, const Drain& drain) {
  leave(now, drain.cause);
}

void AgentMachine::on_driver_gone(AgentTime now) {
  has_driver_ = false;
  end_all(now, kAbandonedGrace);
}

bool AgentMachine::on_other_experiment(AgentTime now) {
  if (ending_ || !leave_cause_.empty()) return false;
  const bool has_words = actions_.tell_by() || unacknowledged_bytes_ > 0;
  if (is_set_up_ && (has_attempts() || has_words)) return true;
  on(now, Shutdown{"another experiment has taken the place of its own", true});
  has_driver_ = false;
  return false;
}

// One that has joined another host is told alone: its driver has no part in it.
void AgentMachine::on_signal(AgentTime now, const std::string& name) {
  was_told_to_end_ = true;
  if (ending_ || !leave_cause_.empty()) return;
  leave(now, "its agent was told to end (" + name + ")");
  if (!hello_.joined || hello_.own) leave_at_ = now + kDriverFirst;
}

void AgentMachine::leave(AgentTime now, const std::string& cause) {
  if (ending_ || !leave_cause_.empty()) return;
  leave_cause_ = end_cause_ = cause;
  for (auto& [key, attempt] : attempts_) attempt.on_node_ends();
  for (auto& [key, part] : parts_) part.on_node_ends();
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
  const bool is_idle = is_set_up_ && !has_attempts();
  if (!is_idle) idle_since_.reset();
  if (is_idle && !idle_since_) idle_since_ = now;
  // Where no worker can be started any more, a machine that joined is of no use to anybody.
  const bool is_useless = hello_.joined && !has_attempts() && !zygote_.given_up().empty();
  if (is_useless) leave(now, zygote_.given_up());
  const std::optional<AgentTime> end = stay_ends_at();
  if (!end || *end > now) return;
  if (is_set_up_ && driver_heard_ + experiment_.joined.patience <= now) has_driver_ = false;
  leave(now, why_stay_ends(now));
}

void AgentMachine::leave_if_due(AgentTime now) {
  if (leave_at_ && *leave_at_ <= now && !ending_) {
    leave_at_.reset();
    leaving_ = true;
    actions_.tell(now, NodeOut{leave_cause_});
    with_all(now, [&](std::uint64_t, auto& attempt) {
      attempt.on_leave(scene(now), leave_cause_, save_grace(now));
    });
  }
  if (leaving_ && !ending_ && !has_attempts()) end_all(now, Attempt::kTermGrace);
}

// A user's limit holds, but where an end is known trials have at least `drain`, and no more than is
// left.
Duration AgentMachine::save_grace(AgentTime now) const {
  const Duration limit = experiment_.save_grace;
  if (!stay_.until) return limit;
  const Duration left = std::max(*stay_.until - now, AgentTime{1});
  const Duration most = left - std::min<Duration>(kEndMargin, left / 2);
  return limit == Duration::zero() ? most : std::min(most, std::max<Duration>(limit, stay_.drain));
}

void AgentMachine::end_all(AgentTime now, AgentTime grace) {
  leave_at_.reset();
  ending_ = true;
  zygote_.end();
  with_all(now, [&](std::uint64_t, auto& attempt) {
    attempt.on_loss(scene(now), "the agent was told to end", grace);
  });
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
  ready.relays = node_.relays;
  zygote_.on_ready(now, std::move(ready));
  end_unborn(now);
}

void AgentMachine::on(AgentTime now, const Spawned& spawned) {
  const bool exists = zygote_.on_spawned(now, spawned);
  const auto place = workers_.find(spawned.request);
  if (exists && place != workers_.end()) {
    pids_[spawned.pid] = spawned.request;
    const Place where = place->second;
    with(now, where.attempt,
         [&](auto& attempt) { attempt.on_forked(scene(now), where.rank, spawned.pid); });
  } else if (place != workers_.end()) {
    with(now, place->second.attempt, [](auto&) {});
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
  with_all(now, [&](std::uint64_t, auto& attempt) {
    if (!attempt.is_starting()) return;
    attempt.on_loss(scene(now), "this node starts no more workers: " + zygote_.given_up());
  });
}

// ---- Workers ------------------------------------------------------------------------------------

void AgentMachine::on_worker(AgentTime now, WorkerId worker, WorkerEvent event) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  const Place at = place->second;
  with(now, at.attempt,
       [&](auto& attempt) { attempt.on_word(scene(now), at.rank, std::move(event)); });
}

void AgentMachine::on_worker_garbled(AgentTime now, WorkerId worker, const std::string& what) {
  const auto place = workers_.find(worker);
  if (place == workers_.end()) return;
  const Place at = place->second;
  with(now, at.attempt, [&](auto& attempt) { attempt.on_nonsense(scene(now), at.rank, what); });
}

void AgentMachine::on_exit(AgentTime now, std::uint32_t pid, const ProcessEnd& end) {
  const auto known = pids_.find(pid);
  if (known == pids_.end()) return;
  const auto worker = workers_.find(known->second);
  const Place place = worker->second;
  workers_.erase(worker);
  pids_.erase(known);
  with(now, place.attempt, [&](auto& attempt) { attempt.on_exit(scene(now), place.rank, end); });
}

void AgentMachine::on_promoted(AgentTime now, const CheckpointSaved& saved,
                               const std::string& error) {
  const auto attempt = find(saved.trial, saved.attempt);
  if (attempt == attempts_.end()) return;
  attempt->second.on_promoted(scene(now), saved, error);
  tidy(now, attempts_, attempt);
}

void AgentMachine::on_own_folder(const std::string& folder, bool is_alone) {
  node_.relays = true;
  node_.owns_folder = is_alone;
  experiment_.experiment_directory = folder;
}

void AgentMachine::on_stored(AgentTime now, const CheckpointSaved& saved, bool is_stored,
                             const std::string& why_not, bool is_of_trial) {
  const std::uint64_t key = attempt_key(saved.trial, saved.attempt);
  if (const auto attempt = attempts_.find(key); attempt != attempts_.end()) {
    attempt->second.on_stored(scene(now), saved, is_stored, why_not, is_of_trial);
    tidy(now, attempts_, attempt);
  } else if (const auto part = parts_.find(key); part != parts_.end()) {
    part->second.on_stored(scene(now), saved, is_stored, why_not);
    tidy(now, parts_, part);
  }
}

void AgentMachine::on_fetched(AgentTime now, TrialNumber trial, AttemptNumber number,
                              const std::string& error, bool is_of_node) {
  if (is_of_node) leave(now, "it cannot hold a checkpoint: " + error);
  with(now, attempt_key(trial, number), [&](auto& attempt) {
    if (is_of_node) {
      attempt.on_loss(scene(now), "this node cannot hold its checkpoint: " + error);
    } else {
      attempt.on_fetched(scene(now), error);
    }
  });
}

// Ranks that were not asked for yet never will be when their attempt is being ended. An attempt
// that is over is reported.
template <class Map>
void AgentMachine::tidy(AgentTime now, Map& map, typename Map::iterator at) {
  auto& attempt = at->second;
  const Launch& launch = attempt.launch();
  const std::uint32_t first = launch.first_rank();
  const std::uint32_t end = first + launch.local_ranks();
  for (std::uint32_t rank = first; attempt.is_terminating() && rank < end; ++rank) {
    if (!attempt.is_awaited(rank) || !zygote_.withdraw(attempt.worker(rank))) continue;
    workers_.erase(attempt.worker(rank));
    attempt.on_never_forked(scene(now), rank);
  }
  if (!attempt.is_over()) return;
  concluding_.emplace(launch.trial, launch.attempt);
  attempt.conclude(scene(now));
  map.erase(at);
}

template <class What>
void AgentMachine::with(AgentTime now, std::uint64_t key, What what) {
  if (const auto at = attempts_.find(key); at != attempts_.end()) {
    what(at->second);
    if (at->second.may_be_over()) tidy(now, attempts_, at);
  } else if (const auto part = parts_.find(key); part != parts_.end()) {
    what(part->second);
    if (part->second.may_be_over()) tidy(now, parts_, part);
  }
}

template <class What>
void AgentMachine::with_all(AgentTime now, What what) {
  const auto each = [&](auto& map) {
    for (auto at = map.begin(); at != map.end();) {
      const auto one = at++;
      what(one->first, one->second);
      if (one->second.may_be_over()) tidy(now, map, one);
    }
  };
  each(attempts_);
  each(parts_);
}

void AgentMachine::tidy_all(AgentTime now) {
  with_all(now, [](std::uint64_t, auto&) {});
}

// ---- Groups over several nodes ------------------------------------------------------------------

void AgentMachine::on_group_open(AgentTime now, std::uint64_t key,
                                 std::vector<std::string> addresses, const std::string& error) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end()) return actions_.add(CloseGroup{key});
  at->second.on_group_open(scene(now), std::move(addresses), error);
  if (at->second.may_be_over()) tidy(now, attempts_, at);
}

void AgentMachine::on_node(AgentTime now, std::uint64_t key, std::uint32_t node,
                           std::vector<NodeWord> words) {
  const auto at = attempts_.find(key);
  if (at == attempts_.end()) return;
  at->second.on_node(scene(now), node, std::move(words));
  if (at->second.may_be_over()) tidy(now, attempts_, at);
}

void AgentMachine::on_lead(AgentTime now, std::uint64_t key, std::vector<LeadWord> words) {
  const auto at = parts_.find(key);
  if (at == parts_.end()) return;
  at->second.on_lead(scene(now), std::move(words));
  if (at->second.may_be_over()) tidy(now, parts_, at);
}

void AgentMachine::on_tail(AgentTime now, const ReadTail& of, const std::string& text) {
  const auto part = parts_.find(attempt_key(of.trial, of.attempt));
  if (part == parts_.end()) return;
  part->second.on_tail(scene(now), of.rank, text);
  tidy(now, parts_, part);
}

void AgentMachine::on_link_broken(AgentTime now, std::uint64_t key, std::uint32_t node,
                                  const std::string& why) {
  if (const auto at = attempts_.find(key); at != attempts_.end()) {
    at->second.on_node_lost(scene(now), node, why);
    if (at->second.may_be_over()) tidy(now, attempts_, at);
  } else if (const auto part = parts_.find(key); part != parts_.end() && node == 0) {
    part->second.on_lead_lost(scene(now), why);
    if (part->second.may_be_over()) tidy(now, parts_, part);
  }
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
  const bool is_other = std::exchange(disk_keeps_up_, keeps_up) != keeps_up;
  for (auto& [key, part] : parts_) {
    if (is_other) part.on_disk(scene(now));
  }
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
  for (const auto& [key, part] : parts_) earliest(part.deadline(conditions()));
  return soonest;
}

void AgentMachine::on_time(AgentTime now) {
  watch_.turn(now);
  zygote_.on_time(now);
  end_unborn(now);
  with_all(now, [&](std::uint64_t, auto& attempt) { attempt.on_time(scene(now)); });
  end_stay_if_due(now);
  leave_if_due(now);
  check_farewell(now);
}

void AgentMachine::check_farewell(AgentTime now) {
  const bool is_done = ending_ && !has_attempts() && concluding_.empty() && zygote_.is_gone();
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
  for (const auto& [key, part] : parts_) live.push_back(part.account());
  for (const auto& [trial, attempt] : concluding_) live.push_back({trial, attempt});
  return live;
}

AgentMachine::Attempts::iterator AgentMachine::find(TrialNumber trial, AttemptNumber attempt) {
  return attempts_.find(attempt_key(trial, attempt));
}

}  // namespace tune
