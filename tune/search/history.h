// History: what a model-based searcher knows of the trials of its experiment, and of earlier ones
// it began with. For each the point that was tried, how the trial stands, its newest value, and its
// values on the way at rungs of the history's own (1, 3, 9, 27 ... steps). Schedulers have rungs of
// their own; neither looks into the other's.
//
// Values are larger when better, whatever the mode; what is not finite is the worst there is
// (-infinity): a diverged loss is a result, and what it should be learnt from. A result without the
// metric says nothing. Where there are several objectives, or constraints, a value has a number for
// each (schedulers/merit.h), and a result that lacks one of the metrics says nothing.
//
// A result costs the same however many trials there are. A trial costs its point, and at most
// 40 bytes for each power of 3 up to its steps, and 8 for each of several numbers. Pure; a plain
// value, whose copies share what has not changed since (SharedBlocks), so that a searcher's thread
// can have one for each question.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "schedulers/merit.h"
#include "schedulers/trial_scheduler.h"
#include "tune/search/earlier_trial.h"
#include "tune/search/encoding.h"
#include "tune/search/shared_blocks.h"

namespace tune {

inline constexpr double kRungFactor = 3;  // from one rung of a history to the next; the first is 1

enum class Standing : std::uint8_t {
  kRunning,    // or PENDING: it will report, or end
  kPaused,     // a scheduler keeps it back
  kStopped,    // a scheduler has ended it
  kCompleted,  // it came to its own end
  kFailed,
  kLast = kFailed
};

struct KnownTrial {
  std::optional<TrialNumber> number = {};  // nothing: of an earlier experiment, or added
  UnitPoint point = {};
  Standing standing = Standing::kRunning;
  std::optional<ValueAt> newest = {};
  std::vector<ValueAt> rungs = {};        // the first value at or after each rung that it reached
  std::optional<TrialNumber> added = {};  // by a user: its number in the sweep
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.point, s.standing, s.newest, s.rungs);
    f.added(s.added);
  }
};

class History {
 public:
  explicit History(Mode mode = Mode::kMax) : mode_(mode) {}
  // Of an objective whose values have several numbers, if it has goals or constraints.
  explicit History(const Objective& objective);

  // A trial with this configuration begins. One that failed and begins again is known already.
  void add(TrialNumber trial, UnitPoint point);
  // A trial of an earlier experiment. Its values are in the metric's own direction, by iteration.
  void add_earlier(UnitPoint point, const std::vector<ValueAt>& values, TrialEnd end);
  // A trial that a user has added is over, with a value that is larger when better: it takes the
  // place of what it was at an earlier end.
  void add_ended(TrialNumber trial, UnitPoint point, const ValueAt& value, TrialEnd end);
  // One that is proposed and has not begun: it runs, and has no number.
  void add_proposed(UnitPoint point);
  // All of these leave trials alone that were never added.
  void result(TrialNumber trial, std::uint64_t iteration, double value);
  void result(TrialNumber trial, std::uint64_t iteration, MeritNumbers numbers);
  void pause(TrialNumber trial) { set(trial, Standing::kPaused); }
  void go_on(TrialNumber trial) { set(trial, Standing::kRunning); }
  void end(TrialNumber trial, TrialEnd end);

  Mode mode() const { return mode_; }
  // The count of numbers that a value has for objectives, others being for constraints; 0: it has
  // none.
  std::size_t goals() const { return goals_; }
  Merit merit(const ValueAt& value) const { return merit_of(value.numbers, goals_); }
  // In the order they were added.
  const SharedBlocks<KnownTrial>& trials() const { return trials_; }
  // Of the points of all trials, in that order.
  const SharedBlocks<std::uint64_t>& fingerprints() const { return fingerprints_; }
  const KnownTrial* find(TrialNumber trial) const;

  // MessagePack; restore throws Error (kProtocol) and changes nothing when it cannot be read, or
  // when a point does not have `coordinates` coordinates.
  std::string save() const;
  void restore(std::string_view state, std::size_t coordinates);

 private:
  KnownTrial* known(TrialNumber trial);
  static void reach(KnownTrial& trial, ValueAt value);
  void set(TrialNumber trial, Standing standing);
  void append(KnownTrial trial);
  double directed(double value) const;
  void take(TrialNumber trial, ValueAt value);

  Mode mode_;
  std::size_t goals_ = 0;
  SharedBlocks<KnownTrial> trials_;
  SharedBlocks<std::uint64_t> fingerprints_;
  SharedBlocks<std::uint32_t> places_;  // in trials_, by number; kNowhere
};

}  // namespace tune
