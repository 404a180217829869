#include "trainables/command/command_worker.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "core/platform/process.h"
#include "trainables/command/command_session.h"
#include "trainables/failure.h"
#include "trainables/rank_process.h"

namespace tune {
namespace {

constexpr int kSignalExitCode = 128 + SIGTERM;

// Signals to the program go to this process's group, and what it leaves behind comes to this
// process.
void prepare_to_supervise() {
  if (::getpgrp() != ::getpid()) ::setpgid(0, 0);
  adopt_descendants();
}

// As in any worker an error is said at once: the other ranks of a group may wait in vain.
int run_attempt(const CommandSettings& settings, int socket) {
  Channel channel(socket);
  StartWorker start;
  std::optional<CommandSession> session;
  try {
    start = receive_start(channel);
    become_rank(start);
    prepare_to_supervise();
    session.emplace(settings, start, channel, socket);
    session->run();
    if (session->was_told_to_end()) return kSignalExitCode;
    flush_output();
    channel.send(session->last_word());
    return 0;
  } catch (...) {
    const std::string cause = describe_current_exception();
    std::fprintf(stderr, "error: %s\n", cause.c_str());
    flush_output();
    channel.send(WorkerEnded{Outcome::kException, cause, current_exception_is_of_group()});
  }
  if (session) session->abandon();
  return 1;
}

}  // namespace

int run_command_worker(const CommandSettings& settings, int socket) {
  try {
    return run_attempt(settings, socket);
  } catch (...) {
    return 1;  // not even the error could be said; the agent reports the exit code
  }
}

ZygoteTrainables command_trainables(CommandSettings settings) {
  ZygoteTrainables trainables;
  const bool can_save = settings.command.restart != CommandRestart::kNever;
  trainables.infos.push_back({settings.name, can_save, true});
  trainables.run_worker = [settings = std::move(settings)](std::uint32_t, int socket) {
    return run_command_worker(settings, socket);
  };
  return trainables;
}

}  // namespace tune
