#include "trainables/worker_session.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "trainables/access.h"
#include "trainables/checkpoint_folder.h"
#include "trainables/failure.h"

namespace tune {
namespace {

Duration now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace

WorkerSession::WorkerSession(const StartWorker& start, Channel& channel)
    : start_(start),
      channel_(channel),
      context_(ContextBuilder::for_worker(start)),
      machine_(start) {
  if (start.launch.ranks > 1) witness_.emplace([this] { return channel_.is_another_alone(); });
}

std::optional<std::filesystem::path> WorkerSession::checkpoint() const {
  return checkpoint_to_load(start_);
}

// ---- Events -------------------------------------------------------------------------------------

void WorkerSession::is_set_up() {
  machine_.on_set_up();
  carry_out(nullptr);
}

bool WorkerSession::begin() {
  machine_.on_ready();
  return carry_out(nullptr);
}

void WorkerSession::finish() {
  machine_.on_returned();
  carry_out(nullptr);
}

bool WorkerSession::end_step(const Result& result, const Save* save) {
  const Duration ended = now();
  packed_result_.clear();
  packed_result_.value(result);
  machine_.on_report(ended, {std::string(packed_result_.bytes())}, save != nullptr);
  context_.iteration_ = machine_.iteration();
  return carry_out(save);
}

// ---- Actions ------------------------------------------------------------------------------------

// Whether the user's code goes on.
bool WorkerSession::carry_out(const Save* save) try {
  std::optional<bool> goes_on;
  for (machine_.take_actions(actions_); !actions_.empty(); machine_.take_actions(actions_)) {
    for (WorkerAction& action : actions_) {
      goes_on = std::visit([&](auto& one) { return act(one, save); }, action);
    }
  }
  return goes_on.value_or(true);
} catch (const AttemptFailure& failure) {
  machine_.on_failed(failure.what(), failure.is_of_group());
  throw;
}

std::optional<bool> WorkerSession::act(SayToAgent& action, const Save*) {
  channel_.send(action.event);
  return std::nullopt;
}

std::optional<bool> WorkerSession::act(const PrepareCheckpoint& action, const Save*) {
  finish_writing();
  in_phase("save", [&] { make_fresh_folder(checkpoint_to_write(start_, action.iteration)); });
  return std::nullopt;
}

std::optional<bool> WorkerSession::act(const WriteCheckpoint& action, const Save* save) {
  const std::filesystem::path folder = checkpoint_to_write(start_, action.iteration);
  saves_ = true;
  in_phase("save", [&] {
    const Solitude solitude;  // another rank may wait for this one in a collective of its own save
    if (start_.rank > 0) std::filesystem::create_directories(folder);  // rank 0's may be elsewhere
    if (save != nullptr) call_save(*save, folder);
    if (later_.empty()) flush_checkpoint(folder);
  });
  saves_ = false;
  later_.empty() ? machine_.on_saved() : machine_.on_copied();
  return std::nullopt;
}

// Rank 0 takes the parts that are to be written later.
void WorkerSession::call_save(const Save& save, const std::filesystem::path& folder) {
  struct Taking {
    Context& context;
    ~Taking() { context.later_ = nullptr; }
  } const taking{context_};
  if (start_.rank == 0 && start_.hears_copied) context_.later_ = &later_;
  save(folder);
}

std::optional<bool> WorkerSession::act(const WriteBeside& action, const Save*) {
  const std::filesystem::path folder = checkpoint_to_write(start_, action.saved.iteration);
  in_phase("save", [&] {
    writing_.begin([this, folder, saved = action.saved, parts = std::exchange(later_, {})] {
      for (const std::function<void()>& write : parts) write();
      flush_checkpoint(folder);
      channel_.send(saved);
    });
  });
  return std::nullopt;
}

std::optional<bool> WorkerSession::act(const LeaveAttempt&, const Save*) {
  finish_writing();
  return false;
}

// The other ranks wait for it as they do for a save.
void WorkerSession::finish_writing() {
  if (!writing_.is_under_way()) return;
  const Solitude solitude;
  in_phase("save", [&] { writing_.wait(); });
}

std::optional<bool> WorkerSession::act(const ListenToAgent& action, const Save*) {
  const auto command = action.wait ? std::optional(channel_.wait()) : channel_.poll();
  in_phase("save", [&] { writing_.look(); });
  command ? machine_.on_command(*command) : machine_.on_silence(now());
  return std::nullopt;
}

std::optional<bool> WorkerSession::act(const FailAttempt& action, const Save*) {
  throw AttemptFailure(action.cause, action.is_of_group);
}

std::optional<bool> WorkerSession::act(const ExitWorker&, const Save*) {
  std::fprintf(stderr, "report was called after it returned false; the process ends here\n");
  std::fflush(nullptr);
  ::_exit(0);
}

// A save is not announced: the agent knows of it.
void WorkerSession::say_alone(bool begins) {
  if (start_.launch.ranks > 1 && !saves_) channel_.send(RankAlone{begins});
}

}  // namespace tune
