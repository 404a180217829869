#include "core/agent/agent.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "core/agent/agent_shell.h"
#include "core/agent/checkpoint_files.h"
#include "core/agent/joining.h"
#include "core/agent/worker_command.h"
#include "core/agent/worker_rest.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/node.h"
#include "core/rank_environment.h"
#include "core/spawn.h"

namespace tune {

namespace {

static_assert(AgentMachine::kCreditBytes == kAgentCreditBytes);

constexpr AgentTime kHeartbeat = std::chrono::milliseconds(500);  // the longest sleep

}  // namespace

AgentShell::AgentShell(const AgentOptions& options)
    : options_(options),
      now_(clock_.monotonic()),
      machine_(facts_of(options, now_)),
      memory_(std::in_place, options.trial_memory_bytes) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  signals_ = watch_signals(options.join.has_value());  // before there is a child
  if (!options_.zygote) files_.emplace();              // no process is forked of this one
  if (options_.join) {
    search_.emplace(*options_.join, now_);
  } else {
    machine_.start(now_);
    perform();
  }
  workers_epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  groups_epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  endpoint();
  if (!files_) files_.emplace();
  machine_.on_connected(now_);
  perform();
  tell_of_memory(memory_->why_not());
}

JoinedEnd AgentShell::run() {
  while (!machine_.is_over() && (!search_ || search_->failure().empty())) {
    turn();
    if (!search_) continue;
    search_->look(now_, search_parts());
    if (!promoted_.empty() && !awaits_proof()) tell_promoted({});
    perform();
    end_stay_if_due();
  }
  std::error_code ignored;  // a driver that was killed cannot remove it itself
  if (driver_gone_) std::filesystem::remove_all(options_.runtime_directory, ignored);
  if (!search_) return {};
  if (!search_->failure().empty()) return {search_->failure(), true, false, search_->token()};
  return {machine_.end_cause(),       is_unfit_,
          machine_.joins_again(),     search_->token(),
          machine_.has_lost_driver(), machine_.was_told_to_end()};
}

AgentEndpoint& AgentShell::endpoint() {
  if (!endpoint_ && options_.join) {
    endpoint_.emplace(options_.join->token, options_.join->name);
  } else if (!endpoint_ && !options_.stays_as.empty()) {
    endpoint_.emplace(AgentEndpoint::JoinsLater{}, options_.stays_as);
  } else if (!endpoint_) {
    endpoint_.emplace(options_.driver_address, agent_identity(options_.hostname, ::getpid()));
  }
  return *endpoint_;
}

// ---- The loop -----------------------------------------------------------------------------------

void AgentShell::turn() {
  const short control_events = zygote_.has_backlog() ? POLLIN | POLLOUT : POLLIN;
  const bool listens =
      !files_->is_full();  // a file system that stalls slows workers, not this loop
  std::array<pollfd, 12> watched{{
      {signals_.get(), POLLIN, 0},
      {zygote_.control(), control_events, 0},
      {driver_gone_ ? -1 : options_.driver_alive_fd, POLLIN, 0},
      {endpoint_->descriptor(), POLLIN, 0},
      {listens && machine_.reading() ? workers_epoll_.get() : -1, POLLIN, 0},
      {listens ? groups_epoll_.get() : -1, POLLIN, 0},
      {files_->descriptor(), POLLIN, 0},
      {relay_ ? relay_->descriptor() : -1, POLLIN, 0},
      {relay_ ? relay_->object_descriptor() : -1, POLLIN, 0},
      {links_.descriptor(), POLLIN, 0},
      {links_.tunnel_descriptor(), POLLIN, 0},
      {zygote_.report(), POLLIN, 0},
  }};
  const auto sleep = std::chrono::ceil<std::chrono::milliseconds>(sleep_time());
  ::poll(watched.data(), watched.size(), static_cast<int>(sleep.count()));
  now_ = clock_.monotonic();
  if (watched[0].revents != 0) take_signals();
  if (watched[1].revents != 0 || watched[11].revents != 0) take_zygote_messages();
  if (watched[2].revents != 0) hear_driver();
  if (watched[3].revents != 0) take_commands();
  if (watched[4].revents != 0) read_workers(workers_epoll_.get());
  if (watched[5].revents != 0) read_workers(groups_epoll_.get());
  if (watched[6].revents != 0) {
    files_->take_outcomes();
    perform();
  }
  if (relay_) look_at_relay();
  if (!resting_.empty() && rest_end_ <= now_) end_rests();
  machine_.on_disk(now_, !files_->is_full());
  machine_.on_time(now_);
  perform();
  usage_.look(now_, *files_);
  links_.look(now_);
  perform();
  links_.flush(now_);
  zygote_.flush();
  if (machine_.is_due_to_send(now_)) {
    endpoint_->flush(now_);
    machine_.on_sent();
  }
  machine_.on_backlog(now_, endpoint_->unacknowledged_bytes());
  perform();
}

AgentTime AgentShell::sleep_time() const {
  const AgentTime now = clock_.monotonic();
  AgentTime end = now + kHeartbeat;
  if (const auto deadline = machine_.next_deadline()) end = std::min(end, *deadline);
  if (!resting_.empty()) end = std::min(end, rest_end_);
  if (const auto look = links_.next_look(now)) end = std::min(end, *look);
  return std::max(end - now, AgentTime::zero());
}

// ---- Input --------------------------------------------------------------------------------------

void AgentShell::take_signals() {
  signalfd_siginfo told{};
  while (::read(signals_.get(), &told, sizeof told) == sizeof told) {
    const int signal = static_cast<int>(told.ssi_signo);
    if (signal != SIGCHLD) machine_.on_signal(now_, signal_name(signal));
  }
  take_ended_children();
}

// The order matters: processes that the zygote forked before its death are known by then, and their
// messages are heard.
void AgentShell::take_ended_children() {
  const std::vector<Reaped> all = reap(zygote_.pid());
  take_zygote_messages();
  for (const Reaped& child : all) {
    if (child.pid == zygote_.pid()) {
      zygote_.reaped(child.status);
      take_zygote_messages();
      continue;
    }
    const WorkerId id = machine_.worker_of(static_cast<std::uint32_t>(child.pid));
    ProcessEnd end = process_end(child.status);
    if (const auto worker = workers_.find(id); worker != workers_.end()) {
      HeldWorker& dead = worker->second;
      while (dead.readable && dead.socket.read() == WorkerSocket::Read::kData) {
        read_events(id, dead);
      }
      end.why = memory_->excess(dead.attempt).value_or("");
    }
    if (id == 0) strays_.add(child.pid, end);
    machine_.on_exit(now_, static_cast<std::uint32_t>(child.pid), end);
    perform();
  }
}

// A zygote may fork a process before it is asked for a worker (trainables/python/tune/_zygote.py),
// and name it as the worker when it has just ended.
void AgentShell::end_stray(pid_t worker) {
  const auto end = strays_.take(worker);
  if (!end || ::kill(worker, 0) == 0) return;  // an older process had that number
  machine_.on_exit(now_, static_cast<std::uint32_t>(worker), *end);
  perform();
}

void AgentShell::take_zygote_messages() {
  if (const auto refusal = zygote_.take_refusal()) {
    machine_.on_zygote_not_started(now_, *refusal);
    perform();
  }
  zygote_.flush();
  for (ZygoteMessage& message : zygote_.receive()) {
    const auto* spawned = std::get_if<Spawned>(&message);
    const pid_t pid = spawned != nullptr ? static_cast<pid_t>(spawned->pid) : 0;
    if (spawned != nullptr) {
      const auto worker = workers_.find(spawned->request);
      if (worker != workers_.end()) worker->second.pid = pid;
    }
    machine_.on_zygote(now_, std::move(message));
    perform();
    if (pid != 0) end_stray(pid);
  }
  const auto end = zygote_.take_end();
  if (end && end->log.empty()) {
    machine_.on_zygote_died(now_, end->how);
    perform();
  } else if (end) {
    files_->give([this, end] {
      return [this, how = end->with_log()] { machine_.on_zygote_died(now_, how); };
    });
  }
}

void AgentShell::read_workers(int epoll) {
  std::array<epoll_event, 64> ready;
  const int count = ::epoll_wait(epoll, ready.data(), ready.size(), 0);
  for (int i = 0; i < count; ++i) {
    const WorkerId id = ready[i].data.u64;
    const auto found = workers_.find(id);
    if (found == workers_.end()) continue;
    HeldWorker& worker = found->second;
    if ((ready[i].events & EPOLLOUT) != 0) {
      worker.socket.flush();
      if (!worker.socket.has_backlog()) watch(id, worker);
    }
    if ((ready[i].events & ~EPOLLOUT) == 0) continue;
    if (worker.socket.read() == WorkerSocket::Read::kEnd) {  // its process ends too, or has ended
      unwatch(worker);
    } else {
      read_events(id, worker);
      if (worker.readable && worker.may_rest) rest(id, worker);
    }
  }
}

void AgentShell::read_events(WorkerId id, HeldWorker& worker) {
  try {
    while (auto event = worker.socket.next()) {
      worker.may_rest = false;
      machine_.on_worker(now_, id, std::move(*event));
      perform();
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kProtocol) throw;
    worker.readable = false;
    unwatch(worker);
    machine_.on_worker_garbled(now_, id, error.what());
    perform();
  }
}

// A resting worker is still heard when its process ends.
void AgentShell::rest(WorkerId id, const HeldWorker& worker) {
  if (resting_.empty()) rest_end_ = now_ + kWorkerRest;
  resting_.push_back(id);
  watch(id, worker, true);
}

void AgentShell::end_rests() {
  for (const WorkerId id : resting_) {
    const auto found = workers_.find(id);
    if (found != workers_.end() && found->second.readable) watch(id, found->second);
  }
  resting_.clear();
}

// ---- Actions ------------------------------------------------------------------------------------

void AgentShell::perform() {
  for (machine_.take_actions(actions_); !actions_.empty(); machine_.take_actions(actions_)) {
    for (AgentAction& action : actions_) {
      std::visit([this](auto& one) { act(one); }, action);
    }
  }
}

// The first zygote may be forked, while there is neither thread nor socket.
void AgentShell::act(StartZygote&) {
  if (options_.zygote_pid > 0 && !std::exchange(zygote_was_forked_, true)) {
    zygote_.adopt(options_.zygote_pid, FileDescriptor(options_.zygote_control));
    machine_.on_zygote_started(now_, static_cast<std::uint32_t>(zygote_.pid()));
    return;
  }
  if (options_.zygote && !std::exchange(zygote_was_forked_, true)) {
    try {
      zygote_.fork(options_.zygote, {options_.driver_alive_fd});
      machine_.on_zygote_started(now_, static_cast<std::uint32_t>(zygote_.pid()));
    } catch (const Error& error) {
      machine_.on_zygote_not_started(now_, error.what());
    }
    return;
  }
  is_zygote_awaited_ = true;
  if (zygote_log_.empty()) return execute_zygote({});
  files_->give([this]() -> FileWorker::Outcome {
    try {
      const auto log = std::make_shared<ZygoteProcess::Log>(ZygoteProcess::Log::open(zygote_log_));
      return [this, log] { execute_zygote(std::move(*log)); };
    } catch (const Error& error) {
      return [this, what = std::string(error.what())] {
        is_zygote_awaited_ = false;
        machine_.on_zygote_not_started(now_, what);
      };
    }
  });
}

void AgentShell::execute_zygote(ZygoteProcess::Log log) {
  is_zygote_awaited_ = false;
  try {
    zygote_.execute({zygote_command_, zygote_environment_, options_.lock_fd}, std::move(log));
    machine_.on_zygote_started(now_, static_cast<std::uint32_t>(zygote_.pid()));
    if (std::exchange(ends_unborn_zygote_, false)) zygote_.end();
  } catch (const Error& error) {
    machine_.on_zygote_not_started(now_, error.what());
  }
}

void AgentShell::act(TellWorker& action) {
  const auto worker = workers_.find(action.worker);
  if (worker == workers_.end()) return;
  if (auto* start = std::get_if<StartWorker>(&action.command)) {
    worker->second.attempt = attempt_key(start->launch.trial, start->launch.attempt);
    const auto port = meeting_.port(worker->second.attempt);
    if (port) add_rendezvous(start->environment, GroupMeeting::kAddress, *port);
    links_.complete(*start, experiment_.environment);
    const int nodes = std::stoi(start->environment.at("GROUP_WORLD_SIZE"));
    tell_of_memory(memory_->add(worker->second.attempt, worker->second.pid, nodes));
    usage_.add(action.worker, *start, worker->second.pid, now_);
    if (relay_ && start->local_rank == 0) relay_->follow(*start);
  }
  WorkerSocket& socket = worker->second.socket;
  socket.send(action.command);
  if (socket.has_backlog()) watch(action.worker, worker->second);
}

// Told once: it is the same for every trial. It names the node, as the driver shows equal warnings
// once.
void AgentShell::tell_of_memory(const std::string& why_unlimited) {
  if (why_unlimited.empty() || std::exchange(memory_told_, true)) return;
  endpoint().send(Warning{fmt::format("{}: {}", options_.hostname, why_unlimited)});
}

void AgentShell::act(RestWorker& action) {
  const auto worker = workers_.find(action.worker);
  if (worker != workers_.end()) worker->second.may_rest = true;
}

void AgentShell::act(SpawnWorker& action) {
  try {
    ZygoteProcess::Given given;
    if (action.rendezvous) given.rendezvous = meeting_.listen(*action.rendezvous);
    if (action.group != 0) given.memory = meeting_.memory(action.group);
    WorkerSocketPair pair = worker_socket_pair();
    workers_.erase(action.worker);  // asked for again after a zygote's death
    const int epoll = (action.of_group ? groups_epoll_ : workers_epoll_).get();
    const auto [worker, added] = workers_.try_emplace(action.worker, std::move(pair.agent), epoll);
    watch(action.worker, worker->second);
    given.socket = std::move(pair.worker);
    zygote_.request({action.worker, action.trainable}, std::move(given));
  } catch (const Error& error) {
    machine_.on_zygote(now_, Spawned{action.worker, 0, error.what()});
  }
}

void AgentShell::act(SignalWorker& action) {
  const auto pid = static_cast<pid_t>(action.pid);
  if (::kill(-pid, action.signal) != 0) ::kill(pid, action.signal);  // not its group's leader yet
}

void AgentShell::act(PromoteCheckpoint& action) {
  files_->give([this, saved = action.saved, joins = std::move(action.joins),
                directory = trial_directory(action.saved.trial)] {
    const std::string error = why_not_promoted(directory, saved, joins);
    return [this, saved, error] { on_promoted(saved, error); };
  });
}

void AgentShell::act(DropCheckpoint& action) {
  files_->give([saved = action.saved, directory = trial_directory(action.saved.trial)] {
    drop_checkpoint(directory, saved);
    return [] {};
  });
}

void AgentShell::act(ConcludeAttempt& action) {
  meeting_.forget(attempt_key(action.ended.trial, action.ended.attempt));
  memory_->end(attempt_key(action.ended.trial, action.ended.attempt));
  // The usual end asks nothing of the disk: two switches of threads would be a good part of its
  // time.
  const bool needs_files = action.removes_half_written || action.wants_stderr_tail;
  if (!needs_files && files_->waiting() == 0) return conclude(action.ended, action.node);
  files_->give([this, action, directory = trial_directory(action.ended.trial)] {
    return
        [this, ended = concluded(directory, action), node = action.node] { conclude(ended, node); };
  });
}

void AgentShell::conclude(const AttemptEnded& ended, std::uint32_t node) {
  if (relay_) return relay_->conclude(machine_, now_, ended, node);
  machine_.on_concluded(now_, ended);
}

std::string agent_identity(const std::string& hostname, pid_t pid) {
  return fmt::format("{}-{}", hostname, pid);
}

std::string life_name() {
  std::random_device random;
  return fmt::format("{}-{}-{:08x}{:08x}", hostname(), ::getpid(), random(), random());
}

JoinedEnd run_joined_agent(const AgentOptions& options) {
  TUNE_CHECK(options.join.has_value());
  for (const int signal : {SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  return AgentShell(options).run();
}

int run_agent(const AgentOptions& options) {
  ::setsid();  // fails when it leads a session already
  for (const int signal : {SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  const JoinedEnd end = AgentShell(options).run();
  if (!end.cause.empty()) std::fprintf(stderr, "the agent has ended: %s\n", end.cause.c_str());
  return 0;
}

}  // namespace tune
