// The shell around a WorkerMachine, and the one mechanism behind class and function trainables: the
// user's code on one side, the socket to the agent, the checkpoint's files and the clock on the
// other. The decisions at a step boundary are made in trainables/worker_machine.h.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "core/worker_contract.h"
#include "trainables/channel.h"
#include "trainables/checkpoint_writing.h"
#include "trainables/session.h"
#include "trainables/solitude.h"
#include "trainables/trainable.h"
#include "trainables/worker_machine.h"

namespace tune {

class WorkerSession : public Session {
 public:
  // `start` and `channel` must outlive it.
  WorkerSession(const StartWorker& start, Channel& channel);

  // The trainable is set up, and is still to be loaded from its checkpoint.
  void is_set_up();
  // Everything is set up and loaded. False: the attempt is over before its first step.
  bool begin();
  // A function trainable has returned: it is completed unless its outcome is known already.
  void finish();

  bool report(const Result& result) override { return end_step(result, nullptr); }
  bool report(const Result& result, const Save& save) override {
    return end_step(result, save ? &save : nullptr);
  }
  std::optional<std::filesystem::path> checkpoint() const override;
  const Context& context() const override { return context_; }

  WorkerEnded last_word() const { return machine_.last_word(); }
  // Returns when no checkpoint is being written any more: before the trainable is destroyed.
  void end_writing() { writing_.end(); }

 private:
  bool end_step(const Result& result, const Save* save);
  bool carry_out(const Save* save);
  // Whether the user's code goes on; nothing: more actions follow first.
  std::optional<bool> act(SayToAgent& action, const Save* save);
  std::optional<bool> act(const PrepareCheckpoint& action, const Save* save);
  std::optional<bool> act(const WriteCheckpoint& action, const Save* save);
  std::optional<bool> act(const WriteBeside& action, const Save* save);
  std::optional<bool> act(const ListenToAgent& action, const Save* save);
  std::optional<bool> act(const BeginStep&, const Save*) { return true; }
  std::optional<bool> act(const LeaveAttempt& action, const Save* save);
  std::optional<bool> act(const FailAttempt& action, const Save* save);
  std::optional<bool> act(const ExitWorker&, const Save* save);
  void call_save(const Save& save, const std::filesystem::path& folder);
  void finish_writing();
  void say_alone(bool begins);

  const StartWorker& start_;
  Channel& channel_;
  Context context_;
  WorkerMachine machine_;
  std::vector<WorkerAction> actions_;
  PackWriter packed_result_;
  bool saves_ = false;
  std::vector<std::function<void()>> later_;  // parts of this save that are written beside
  SolitudeListener solitude_{[this](bool begins) { say_alone(begins); }};
  std::optional<SolitudeWitness> witness_;  // of a group
  CheckpointWriting writing_;               // ends first
};

}  // namespace tune
