// TrialScheduler: judges running trials and picks the next one. Pure: no clock, file, log
// or thread; the same calls in the same order give the same decisions. Derive a custom one from it.
//
// Call order: add_trial once a trial; result for each (trial, iteration) once, in order of
// iteration within it; end_trial once. A trial that ended as kError, or was stopped, may be tried
// again, and one that a user pauses ends as kError too: then it is added again, as a participant
// whose earlier results stand and are not told again, and ends again. choose may be offered the
// next new trial before it is added. save/restore carry the whole state across a restart. None of
// these throws once the scheduler is built (see configure).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/contract_values.h"
#include "core/ids.h"
#include "core/result_view.h"
#include "core/value.h"

namespace tune {

enum class Mode : std::uint8_t { kMax, kMin, kLast = kMin };

// One of several metrics that an experiment is to make good.
struct Goal {
  std::string metric;  // a key path
  Mode mode = Mode::kMax;
};

// Bounds that a metric of a trial has to keep; one, or both.
struct Constraint {
  std::string metric;
  std::optional<double> min = {};
  std::optional<double> max = {};
};

// The experiment, as a scheduler is told of it before anything else.
struct Objective {
  std::string metric;  // a key path; empty: none was given, or there are `goals`
  Mode mode = Mode::kMax;
  std::uint64_t seed = 0;
  std::vector<Goal> goals = {};  // two or more in place of the metric; else empty
  std::vector<Constraint> constraints = {};
};

// The state and the configuration that a trial goes on with in place of its own.
struct Replacement {
  TrialNumber donor;  // from its newest checkpoint
  Config config;
};

// A result's standing among all that have come to the same rung so far, for those who ask later.
struct RungPlace {
  double milestone = 0;                // in the scheduler's attribute of time
  double value = 0;                    // as reported
  std::optional<double> cut_off = {};  // as reported; nothing while there is none
  std::uint64_t rank = 1;              // from 1, the best; equal values share theirs
  std::uint64_t of = 1;                // values, its own included
  std::optional<std::uint32_t> bracket = {};  // from 0; nothing where there is only one
};

struct Decision {
  enum class Kind : std::uint8_t { kContinue, kPause, kStop, kReplace, kLast = kReplace };
  Kind kind = Kind::kContinue;
  Milestone until = {};     // kContinue, kReplace: how far the trial may run unasked
  std::string reason = {};  // fit to show a user: "0.81 is worse than the cut-off 0.842 of 9"
  // kContinue: the trial writes a checkpoint before it goes on, where it can.
  bool save = false;
  // kContinue: the trial is paused while another one waits for room; resume_trial lets it go on.
  bool yields = false;
  // kReplace: the trial keeps its number, its count of iterations and its results. When the donor
  // has no checkpoint it goes on as it is; the user is told so once.
  std::optional<Replacement> replacement = {};
  // At a rung: told in events.jsonl, whatever the decision is. It decides nothing.
  std::optional<RungPlace> place = {};

  static Decision go_on(Milestone until, std::string reason = {}) {
    return {Kind::kContinue, std::move(until), std::move(reason)};
  }
  static Decision pause(std::string reason) { return {Kind::kPause, {}, std::move(reason)}; }
  static Decision stop(std::string reason) { return {Kind::kStop, {}, std::move(reason)}; }
  // The donor is another trial, of which checkpoint_saved was told.
  static Decision replace(Replacement by, Milestone until, std::string reason) {
    return {Kind::kReplace, std::move(until), std::move(reason), false, false, std::move(by)};
  }
};

// The state that a trial just resumed goes on with instead of its own; the trial itself as donor:
// its own checkpoint with other values.
struct ResumedAs {
  Replacement by;
  std::string reason;
};

// A trial that could run: PENDING, or PAUSED by the scheduler. When no trial is PENDING, the next
// new one stands for them: it is added, with add_trial, when it is chosen, so that a searcher that
// learns is asked as late as can be.
struct Candidate {
  TrialNumber trial;
  bool paused = false;
};

// All trials that could run, in the default order: by number, paused ones before all others when
// `paused_first`. A view of sets that it does not own.
class Candidates {
 public:
  using Numbers = std::set<TrialNumber>;
  Candidates(const Numbers& pending, const Numbers& paused, bool paused_first)
      : pending_(pending), paused_(paused), paused_first_(paused_first) {}
  bool empty() const { return pending_.empty() && paused_.empty(); }
  bool contains(TrialNumber trial) const;
  Candidate front() const;              // not when empty
  std::optional<TrialNumber> first_pending() const;
  std::vector<Candidate> list() const;  // costs as many steps as there are

 private:
  bool paused_goes_first() const;

  const Numbers& pending_;
  const Numbers& paused_;
  bool paused_first_;
};

// Whether a configuration keeps the rules of the sweep's space (`where`).
using Keeps = std::function<bool(const Config&)>;

enum class TrialEnd : std::uint8_t { kCompleted, kStopped, kError, kLast = kError };

class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  // Metric and mode: those given to the scheduler itself, else the experiment's. Throws Error
  // (kBadInput) when a needed one is missing or both give one.
  virtual void configure(const Objective& experiment) = 0;
  // The objective it works with after configure (empty metric and no goals: none).
  virtual Objective objective() const = 0;
  // Whether it heeds an objective's goals and constraints; else a sweep that has them is refused.
  virtual bool takes_several_objectives() const { return false; }

  // Called after configure if the space has rules: values that the scheduler itself chooses are to
  // keep them.
  virtual void take_rules(Keeps /*keeps*/) {}

  // The configuration of the trial that add_trial is called for next. One that was replaced and
  // ended as kError has that of its last replacement.
  virtual void take_config(TrialNumber /*trial*/, const Packed& /*config*/) {}
  // A new trial, or one that ended as kError or kStopped before; says how far it may run unasked.
  virtual Milestone add_trial(TrialNumber trial) = 0;
  virtual Decision result(TrialNumber trial, const ResultView& result) = 0;
  // A trial it paused goes on: says how far it may run unasked. Only for schedulers that pause.
  virtual Milestone resume_trial(TrialNumber /*trial*/) { return {}; }
  // Asked once, right after resume_trial.
  virtual std::optional<ResumedAs> resumed_as(TrialNumber /*trial*/) { return std::nullopt; }
  // The trial's own state after this iteration is on disk: from now on it can be a donor.
  virtual void checkpoint_saved(TrialNumber /*trial*/, std::uint64_t /*iteration*/) {}
  // `last` is null when the trial never reported. A stopped trial's last result was judged already.
  virtual void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) = 0;

  // Which candidate gets freed resources; nothing: none now. There is at least one.
  virtual std::optional<TrialNumber> choose(const Candidates& candidates) const;
  virtual bool resumed_first() const { return false; }
  // Whether it may pause trials: then trainables must be able to save.
  virtual bool pauses() const { return false; }
  // Whether it may replace trials: then trainables must be able to save, and recorded curves tell
  // nothing about it.
  virtual bool replaces() const { return false; }
  // The largest value of training_iteration a trial can reach, when the scheduler bounds it.
  virtual std::optional<double> max_t() const { return std::nullopt; }

  // Lines of the status block ("Using AsyncHyperBand: num_stopped=3").
  virtual std::vector<std::string> status_lines() const = 0;

  virtual std::string save() const = 0;              // MessagePack
  virtual void restore(std::string_view state) = 0;  // Error (kProtocol) when it is not its own
};

}  // namespace tune
