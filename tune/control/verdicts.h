// Verdicts: the scheduler's decision on each trial, so that it is asked once and obeyed always.
// Pure.
//
// The simpler way is to ask the scheduler at every report. It fails when an attempt is lost: the
// next one goes back to the last checkpoint and reports steps again that were judged before. Told
// twice, the scheduler counts a trial twice in its rungs; not told, the trial whose stop was lost
// on the way runs on. So a trial has a mark up to which it was judged, and the verdict given there
// stands until it is carried out: a step done again gets the recorded verdict, and the scheduler
// hears each (trial, iteration) once, in order.
#pragma once

#include <memory>
#include <optional>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "core/wire.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

// The debt of a trial whose attempt ended too early, see Verdicts::owed.
enum class Owed : std::uint8_t {
  kNothing,  // it has steps to do
  kCompletion,
  kStop,
  kPause,
};

class Verdicts {
 public:
  // A configured one.
  explicit Verdicts(std::unique_ptr<TrialScheduler> scheduler) : scheduler_(std::move(scheduler)) {}

  const TrialScheduler& scheduler() const { return *scheduler_; }

  // For a new trial, or one that ended in an error and is tried again.
  Milestone begin(TrialNumber trial, const Packed& config);
  // A trial that the scheduler lets go on after a pause runs to its next milestone, perhaps with
  // another state and other values.
  std::optional<ResumedAs> resume(Trial& trial);
  void checkpoint_saved(TrialNumber trial, std::uint64_t iteration) {
    scheduler_->checkpoint_saved(trial, iteration);
  }

  struct Ruling {
    bool done = false;              // the trial ends with this result
    std::optional<Command> answer;  // to its agent
    bool is_first = false;          // this step was not reported before
    std::optional<StopKind> given;  // decided just now
    std::optional<ResumedAs> replaced = {};  // decided just now, and to be carried out
    std::optional<RungPlace> place = {};     // at the rung that it came to just now,
    Decision::Kind kind = Decision::Kind::kContinue;  // with this decision there
  };
  // The ruling on `report`, the trial's newest result. `others_wait`: another trial waits for room.
  Ruling rule(Trial& trial, const Reported& report, bool others_wait = false);

  // The ruling on the trial's newest result, again: the driver that made it may not have lived to
  // tell it. Nothing: none is awaited.
  static std::optional<Command> say_again(const Trial& trial);

  // The limit of the unasked work of the trial's next attempt. A trial whose verdict is still to be
  // carried out comes back to the step at which it was given, however long that takes this time:
  // measured by time_total_s, a faster attempt would not be there yet, and would run past it.
  static Milestone until(const Trial& trial);

  // The pending decision on a trial that is saved up to its last result: only its attempt's last
  // word was lost.
  static Owed owed(const Trial& trial);

  // The trial is over; the scheduler is told once.
  void end(Trial& trial, TrialEnd end);

  void save(PackWriter& out) const { out.binary(scheduler_->save()); }
  void restore(PackReader& in) { scheduler_->restore(in.binary()); }

 private:
  static Ruling repeat(const Trial& trial, const Reported& report);
  static void apply(Trial& trial, Decision& decision, bool waiting, Ruling& ruling);

  std::unique_ptr<TrialScheduler> scheduler_;
};

}  // namespace tune
