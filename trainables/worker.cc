#include "trainables/worker.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "trainables/access.h"
#include "trainables/channel.h"
#include "trainables/checkpoint_folder.h"
#include "trainables/failure.h"
#include "trainables/rank_failure.h"
#include "trainables/rank_process.h"
#include "trainables/worker_session.h"

namespace tune {
namespace {

Config config_of(const StartWorker& start) {
  return in_phase("setup", [&] { return Config(unpack(start.launch.config)); });
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
    in_phase("load", [&] { trainable.load(*existing_checkpoint(attempt.start)); });
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
    in_phase("load", [&] { existing_checkpoint(attempt.start); });
  }
  if (!session.begin()) return;
  in_phase("function", [&] { entry.function(config_of(attempt.start), session); });
  session.finish();
}

// An error is sent at once, while the trainable still stands: the other ranks of a group wait in
// vain for this one. (A rank alone first writes the checkpoint that it has copied.) A clean end is
// sent last, so that a crash of a destructor is not missed.
int run_attempt(const TrainableEntry& entry, Channel& channel) {
  Attempt attempt;
  try {
    attempt.start = receive_start(channel);
    become_rank(attempt.start);
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
    if (attempt.session && attempt.start.launch.ranks == 1) attempt.session->end_writing();
    channel.send(WorkerEnded{Outcome::kException, cause, current_exception_is_of_group()});
  }
  if (attempt.session) attempt.session->end_writing();
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
