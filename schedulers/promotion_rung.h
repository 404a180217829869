// PromotionRung: the values recorded at one milestone, and which of the trials that wait there may
// go on: those among the best floor(n / factor) of the n values, or all once it is open. Pure.
//
// The simpler way is to sort the rung whenever a place is free, as Syne Tune and the ASHA paper's
// pseudocode do: with 100,000 trials that is 10 ms a launch. Here two heaps meet at position
// floor(n / factor), and those of the better one that wait are kept in order: a value costs
// O(log n), the best that waits O(1). Both heaps hold promoted trials too, because a promoted trial
// that others overtake, and that growth brings back, counts among the best again.
//
// Merits (schedulers/merit.h) have no such order: one more may change the rank of all others. A
// rung has values or merits; of merits the best are found anew whenever one is added, and the heaps
// are plain lists.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/wire.h"
#include "schedulers/fronts.h"
#include "schedulers/ranked_values.h"
#include "schedulers/rung.h"

namespace tune {

// Of one trial. Larger values are better, NaN is the worst, and of equal ones the earlier is
// better. Among merits the value is one of the rung's own, and only the arrival names the entry.
struct RungEntry {
  double value = 0;
  std::uint32_t arrival = 0;  // its number in the order of the rung
  TrialNumber trial;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.value, s.arrival, s.trial);
  }
};
bool is_better(const RungEntry& a, const RungEntry& b);

struct BetterEntry {
  bool operator()(const RungEntry& a, const RungEntry& b) const { return is_better(a, b); }
};
using RungOrder = std::set<RungEntry, BetterEntry>;  // the best first

class PromotionRung {
 public:
  // None is promoted while the rung has fewer than `min_size` values.
  PromotionRung(double milestone, CutOffPosition position, std::size_t min_size)
      : milestone_(milestone), position_(position), min_size_(min_size) {}

  double milestone() const { return milestone_; }
  std::size_t size() const { return best_.size() + others_.size(); }
  std::size_t places() const { return best_.size(); }  // how many of them may go on
  // The worst value that is good enough; nothing while none is.
  std::optional<double> cut_off() const;

  // A trial that waits here, or one that has passed already. Gives its entry.
  RungEntry add(double value, TrialNumber trial, bool waits);
  RungEntry add(const Merit& merit, TrialNumber trial, bool waits);
  void leave(const RungEntry& entry);       // it waits no more: promoted, or over
  void wait_again(const RungEntry& entry);  // after it left
  void open();                              // all go on from now; O(n log n)
  bool is_open() const { return is_open_; }
  bool is_among_best(const RungEntry& entry) const;
  // The place among the values, from 1, of one that was added; equal ones share theirs.
  std::size_t rank(double value) const { return ranked_.better_than(value) + 1; }
  // Those that wait and may go on.
  const RungOrder& promotable() const { return promotable_; }
  const Fronts& fronts() const { return fronts_; }  // of merits, by arrival

  const std::vector<RungEntry>& best() const { return best_; }  // heaps, for saving
  const std::vector<RungEntry>& others() const { return others_; }
  // Takes the entries of best() and others(). Until wait_again(), none waits. False, and nothing
  // changes, when they cannot be a rung's. Opened before if it was when they were saved.
  bool restore(std::vector<RungEntry> best, std::vector<RungEntry> others, Fronts fronts = {});

 private:
  bool has_merits() const { return fronts_.size() > 0; }
  bool are_heaps() const;
  std::vector<RungEntry>::const_iterator among_best(const RungEntry& entry) const;
  bool arrivals_fit() const;
  std::size_t wanted_places() const;
  void take_into_best(const RungEntry& entry);
  void put_out_the_worst();
  void fill_places();
  void rank_anew();

  double milestone_;
  CutOffPosition position_;
  std::size_t min_size_;
  bool is_open_ = false;
  std::vector<RungEntry> best_;    // a heap with its worst on top
  std::vector<RungEntry> others_;  // a heap with its best on top
  std::vector<bool> waits_;        // by arrival
  Fronts fronts_;                  // of merits: then best_ and others_ are not heaps
  RungOrder promotable_;           // of best_, those that wait
  RankedValues ranked_;            // of both
};

}  // namespace tune
