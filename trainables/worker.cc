#include "trainables/worker.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/rank_start.h"
#include "core/spawn.h"
#include "trainables/access.h"
#include "trainables/channel.h"
#include "trainables/failure.h"
#include "trainables/rank_failure.h"
#include "trainables/worker_session.h"

namespace tune {
namespace {

void set_environment(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
}

// Output is appended to the file; every attempt opens with a line of its own.
void redirect(int descriptor, const char* name, const StartWorker& start) {
  const auto path = std::filesystem::path(start.trial_directory) / rank_file_name(name, start.rank);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || ::dup2(file, descriptor) < 0) {
    throw AttemptFailure(fmt::format("setup: cannot open {} for the trial's output: {}",
                                     path.string(), std::strerror(errno)));
  }
  ::close(file);
  const std::string line = attempt_line(start.launch.attempt);
  if (::write(descriptor, line.data(), line.size()) < 0) {
    throw AttemptFailure(
        fmt::format("setup: cannot write {}: {}", path.string(), std::strerror(errno)));
  }
}

void prepare_process(const StartWorker& start) {
  set_environment(start.experiment.environment);
  set_environment(start.environment);
  in_phase("setup", [&] { std::filesystem::create_directories(start.trial_directory); });
  redirect(STDOUT_FILENO, "stdout", start);
  redirect(STDERR_FILENO, "stderr", start);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // lines can be followed while the trial runs
  begin_rank();
}

Config config_of(const StartWorker& start) {
  return in_phase("setup", [&] { return Config(unpack(start.launch.config)); });
}

std::filesystem::path existing_checkpoint(const WorkerSession& session) {
  const auto folder = *session.checkpoint();
  if (!std::filesystem::is_directory(folder)) {
    throw AttemptFailure(fmt::format(
        "load: the checkpoint {} is not there; was it moved or deleted?", folder.string()));
  }
  return folder;
}

// Members are destroyed in reverse: a trainable may use its context to the end.
struct Attempt {
  StartWorker start;
  std::optional<WorkerSession> session;
  std::unique_ptr<Trainable> trainable;
};

void run_class(const TrainableEntry& entry, Attempt& attempt) {
  WorkerSession& session = *attempt.session;
  in_phase("setup", [&] {
    attempt.trainable = entry.make();
    TrainableAccess::set_context(*attempt.trainable, session.context());
    attempt.trainable->setup(config_of(attempt.start));
  });
  Trainable& trainable = *attempt.trainable;
  if (session.checkpoint()) {
    session.is_set_up();
    in_phase("load", [&] { trainable.load(existing_checkpoint(session)); });
  }
  const Session::Save save = [&](const std::filesystem::path& folder) { trainable.save(folder); };
  for (bool more = session.begin(); more;) {
    const Result result = in_phase("step", [&] { return trainable.step(); });
    more = entry.can_save ? session.report(result, save) : session.report(result);
  }
  attempt.trainable.reset();
}

void run_function(const TrainableEntry& entry, Attempt& attempt) {
  WorkerSession& session = *attempt.session;
  if (session.checkpoint()) {
    session.is_set_up();
    in_phase("load", [&] { existing_checkpoint(session); });
  }
  if (!session.begin()) return;
  in_phase("function", [&] { entry.function(config_of(attempt.start), session); });
  session.finish();
}

StartWorker receive_start(Channel& channel) {
  WorkerCommand command = channel.wait();
  auto* start = std::get_if<StartWorker>(&command);
  if (start == nullptr) throw AttemptFailure("setup: the agent's first word was no start");
  return std::move(*start);
}

void flush_output() {
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
}

// An error is sent at once, while the trainable still stands: the other ranks of a group wait in
// vain for this one. A clean end is sent last, so that a crash of a destructor is not missed.
int run_attempt(const TrainableEntry& entry, Channel& channel) {
  Attempt attempt;
  try {
    attempt.start = receive_start(channel);
    prepare_process(attempt.start);
    WorkerSession& session = attempt.session.emplace(attempt.start, channel);
    entry.is_function ? run_function(entry, attempt) : run_class(entry, attempt);
    flush_output();
    channel.send(session.last_word());
    return 0;
  } catch (...) {
    say_rank_failed();  // what the trainable holds must not wait for the other ranks
    const std::string cause = describe_current_exception();
    std::fprintf(stderr, "error: %s\n", cause.c_str());
    flush_output();
    channel.send(WorkerEnded{Outcome::kException, cause, current_exception_is_of_group()});
  }
  attempt.trainable.reset();
  flush_output();
  return 1;
}

}  // namespace

int run_worker(const TrainableEntry& entry, int socket) {
  Channel channel(socket);
  try {
    return run_attempt(entry, channel);
  } catch (...) {
    return 1;  // not even the error could be said; the agent reports the exit code
  }
}

}  // namespace tune
