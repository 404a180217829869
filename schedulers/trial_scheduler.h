// TrialScheduler: judges running trials and picks the next one. Pure: no clock, file, log
// or thread; the same calls in the same order give the same decisions. Derive a custom one from it.
//
// Call order: add_trial once a trial; result for each (trial, iteration) once, in order of
// iteration within a trial; end_trial once. A trial that ended in ERROR may be tried again on
// resume: then it is added again, as a participant whose earlier results stand and are not told
// again, and ends again. choose may be offered the next new trial before it is added. save/restore
// carry the whole state across a restart. None of these throws once the scheduler is built (see
// configure).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/contract_values.h"
#include "core/ids.h"
#include "core/result_view.h"

namespace tune {

enum class Mode : std::uint8_t { kMax, kMin, kLast = kMin };

// What a scheduler is told about the experiment before anything else.
struct Objective {
  std::string metric;  // a key path; empty: none was given
  Mode mode = Mode::kMax;
  std::uint64_t seed = 0;
};

struct Decision {
  enum class Kind : std::uint8_t { kContinue, kPause, kStop, kLast = kStop };
  Kind kind = Kind::kContinue;
  Milestone until;     // kContinue: how far the trial may run unasked
  std::string reason;  // fit to show a user: "0.81 is worse than the cut-off 0.842 of 9 at rung 3"

  static Decision go_on(Milestone until, std::string reason = {}) {
    return {Kind::kContinue, std::move(until), std::move(reason)};
  }
  static Decision pause(std::string reason) { return {Kind::kPause, {}, std::move(reason)}; }
  static Decision stop(std::string reason) { return {Kind::kStop, {}, std::move(reason)}; }
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

enum class TrialEnd : std::uint8_t { kCompleted, kStopped, kError, kLast = kError };

class TrialScheduler {
 public:
  virtual ~TrialScheduler() = default;

  // Metric and mode: those given to the scheduler itself, else the experiment's. Throws Error
  // (kBadInput) when a needed one is missing or both give one.
  virtual void configure(const Objective& experiment) = 0;
  // The objective it works with after configure (empty metric: none).
  virtual Objective objective() const = 0;

  // A new trial, or one that ended as kError before; says how far it may run unasked.
  virtual Milestone add_trial(TrialNumber trial) = 0;
  virtual Decision result(TrialNumber trial, const ResultView& result) = 0;
  // A trial it paused goes on: says how far it may run unasked. Only for schedulers that pause.
  virtual Milestone resume_trial(TrialNumber /*trial*/) { return {}; }
  // `last` is null when the trial never reported. A stopped trial's last result was judged already.
  virtual void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) = 0;

  // Which candidate gets freed resources; nothing: none now. There is at least one.
  virtual std::optional<TrialNumber> choose(const Candidates& candidates) const;
  virtual bool resumed_first() const { return false; }
  // Whether it may pause trials: then trainables must be able to save.
  virtual bool pauses() const { return false; }
  // The largest value of training_iteration a trial can reach, when the scheduler bounds it.
  virtual std::optional<double> max_t() const { return std::nullopt; }

  // Lines of the status block ("Using AsyncHyperBand: num_stopped=3").
  virtual std::vector<std::string> status_lines() const = 0;

  virtual std::string save() const = 0;              // MessagePack
  virtual void restore(std::string_view state) = 0;  // Error (kProtocol) when it is not its own
};

}  // namespace tune
