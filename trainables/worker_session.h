// The step boundary of a worker: counts iterations and time, sends results, saves when it is due,
// waits for verdicts and keeps the ranks of a group in step. The one mechanism behind class and
// function trainables.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/messages.h"
#include "trainables/channel.h"
#include "trainables/failure.h"
#include "trainables/session.h"
#include "trainables/trainable.h"

namespace tune {

class WorkerSession : public Session {
 public:
  // `start` and `channel` must outlive it.
  WorkerSession(const StartWorker& start, Channel& channel);

  // The trainable is set up, and is still to be loaded from its checkpoint.
  void is_set_up() { say_done(); }
  // Everything is set up and loaded. False: the attempt is over before its first step.
  bool begin();
  // A function trainable has returned: what has no outcome yet is completed.
  void finish();

  bool report(const Result& result) override { return step_done(result, nullptr); }
  bool report(const Result& result, const Save& save) override {
    return step_done(result, save ? &save : nullptr);
  }
  std::optional<std::filesystem::path> checkpoint() const override;
  const Context& context() const override { return context_; }

  Outcome outcome() const { return outcome_.value_or(Outcome::kCompleted); }

 private:
  using Clock = std::chrono::steady_clock;

  bool step_done(const Result& result, const Save* save);
  bool lead(const Result& result, const Save* save);
  bool follow(const Save* save);
  Reported make_report(const Result& result);
  std::optional<double> number(const Result& result, const Reported& report,
                               const std::string& path) const;
  bool is_final(const Result& result, const Reported& report) const;
  bool is_due(const Reported& report, const Result& result) const;
  std::optional<StopKind> await_verdict(bool waiting);
  bool carry_out(StopKind verdict, const Save* save);
  bool end(Outcome outcome);
  bool go_on();
  void say_done();
  void save_now(const Save* save);
  void write_checkpoint(const Save* save);
  bool is_group_leader() const { return start_.launch.ranks > 1 && start_.rank == 0; }

  const StartWorker& start_;
  Channel& channel_;
  Context context_;
  Milestone until_;
  Clock::time_point step_began_;
  Duration time_total_;
  Duration time_since_restore_{};
  std::optional<double> timesteps_total_;
  std::uint64_t saved_ = 0;  // iteration of the newest checkpoint; 0: none
  bool save_was_missed_ = false;
  std::optional<Outcome> outcome_;
  std::optional<AttemptFailure> failure_;
  PackWriter packed_result_;
};

}  // namespace tune
