// TrialBook: every trial of the experiment with its status, results and checkpoints, and the lists
// of trials that wait, run or are paused. Pure.
//
// It holds the state and knows the legal changes; it does not decide what happens next. An illegal
// change is a programmer's error (TUNE_CHECK).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "core/wire.h"
#include "schedulers/merit.h"
#include "schedulers/trial_scheduler.h"
#include "tune/control/outbox.h"

namespace tune {

class TrialBook {
 public:
  using Numbers = std::set<TrialNumber>;
  using Counts = std::array<std::uint64_t, 5>;  // by TrialStatus

  // `keep`: how many of a trial's newest checkpoints stay, beside the best one. `out` outlives it.
  TrialBook(Outbox& out, Objective objective, std::size_t keep);

  const std::deque<Trial>& all() const { return trials_; }
  const Counts& counts() const { return counts_; }
  const Numbers& waiting() const { return waiting_; }  // PENDING
  const Numbers& paused() const { return paused_; }    // PAUSED by the scheduler
  const Numbers& running() const { return running_; }
  const Numbers& held() const { return held_back_; }  // PAUSED by a user
  // By the last results; O(n). By the metric, and first of all by how well constraints are kept;
  // nothing when there are several objectives.
  std::optional<TrialNumber> best() const;
  // With several objectives the trials that no other one dominates.
  std::vector<TrialNumber> pareto() const;
  // Whether a result has a metric of the objective, and which of them it lacks.
  bool has_a_metric(const Reported& report) const;
  std::vector<std::string> missing_metrics(const Reported& report) const;

  Trial& at(TrialNumber number) { return trials_[number.value]; }
  // The trial a message speaks of, when that attempt is the one that runs now; else null.
  Trial* current(AgentNumber agent, TrialNumber number, AttemptNumber attempt);
  // The same for a message of a node that has a part of the attempt, but does not lead it.
  Trial* current_part(AgentNumber agent, TrialNumber number, AttemptNumber attempt);
  TrialNumber next_number() const { return {static_cast<std::uint32_t>(trials_.size())}; }

  Trial& add(Packed config, Milestone until);  // next_number(), PENDING
  void set_status(Trial& trial, TrialStatus status);
  // Paused by the scheduler when that was its verdict, which is carried out now; else by the user.
  void pause(Trial& trial);
  // PENDING, RUNNING or PAUSED -> PAUSED by a user, until release: PAUSED -> PENDING.
  void hold(Trial& trial);
  void release(Trial& trial);
  // The trial is over: it keeps no result of its checkpoint, except after an error. What trials
  // keep that are over or paused is bounded, however much they reported: results without their long
  // parts, a reason of one line. A replaced trial that may be tried again keeps its origin, as one
  // with an error does.
  void finish(Trial& trial, TrialStatus status, bool keeps_origin = false);
  // Drops the tail of stderr once it was told; the trial's file holds it.
  static void shorten_failure(Trial& trial);
  // PENDING or PAUSED -> RUNNING, with a new attempt there.
  void begin_attempt(Trial& trial, Placement placement);

  // The newest result; nothing is told.
  void take_result(Trial& trial, const Reported& report) const;
  // A checkpoint stands on its node only, or will not be stored.
  void expect_checkpoint(Trial& trial, const CheckpointSaved& saved) const;
  // A checkpoint on disk replaces the records of later ones; surplus ones are removed.
  void take_checkpoint(Trial& trial, const CheckpointSaved& saved);
  // The trial goes on from the donor's newest checkpoint, which stays on disk until the trial has
  // its own, with this configuration; the donor may be the trial itself. False: there is no such
  // checkpoint, and nothing changes.
  bool replace(Trial& trial, TrialNumber donor, Packed config, const std::string& reason);
  // Returns the iteration that the next attempt restores; 0: none. Later results become void.
  std::uint64_t cut_to_checkpoint(Trial& trial) const;

  void save(PackWriter& out) const;
  void restore(PackReader& in);

 private:
  using Held = std::map<CheckpointOrigin, std::uint32_t>;  // with the number of those who need it

  Numbers* group_of(const Trial& trial);
  Merit merit(const Reported& report) const;
  void retain_checkpoints(Trial& trial) const;
  bool is_held(const Trial& trial, const CheckpointRecord& record) const;
  void let_go_of_origin(Trial& trial);
  void shorten(Trial& trial) const;

  Outbox* out_;
  Objective objective_;
  std::vector<std::string> metrics_;  // of it
  std::size_t keep_;
  std::deque<Trial> trials_;
  Counts counts_{};  // and the sets: they follow from trials_
  Numbers waiting_;
  Numbers paused_;
  Numbers running_;
  Numbers held_back_;
  Held held_;  // checkpoints that other trials would restart from
};

// A result as it is kept of a trial that does not run: unchanged up to kMaxKeptBytes, else its
// numbers and short texts at their paths, including the numbers at `metrics`, of at most as many
// bytes.
inline constexpr std::size_t kMaxKeptBytes = 4096;
Packed kept_result(const Packed& result, const std::vector<std::string>& metrics);

// Whether the newest checkpoint stands where the last result does: no step is to be done again.
bool is_saved_to_the_end(const Trial& trial);

}  // namespace tune
