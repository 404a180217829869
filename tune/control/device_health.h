// DeviceHealth: which GPUs and nodes are to blame for trials that fail at once. Pure.
//
// A place is a GPU, or the node of trials without GPUs, by its name ("GPU 1 of node-3"), which
// outlives agents and drivers.
//
// A GPU on which every trial fails in its first seconds is free again at once, and so attracts the
// whole queue. The simpler ways fail: counting failures by place also puts aside the place on which
// a broken configuration, or a grid of them, happens to run; retrying anywhere sends the trial back
// to the same free GPU. So a failure before an attempt's first report is tried once on another
// place, if there is one. A report there blames the first place, and the failure does not count; a
// failure there clears it, and counts for the trial. Three blames without a first report between
// them put the place aside; after kProbeAfter one trial is placed there again, and its first report
// takes the place back. A place with as many second tries still open is in doubt: no further trial
// goes there until one of them has shown something, so that it cannot eat up a queue meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire.h"

namespace tune {

class DeviceHealth {
 public:
  using Places = std::vector<std::string>;  // of one attempt
  using Names = std::set<std::string>;

  static constexpr std::uint32_t kBlamesToSetAside = 3;
  static constexpr Duration kProbeAfter = std::chrono::minutes(10);
  explicit DeviceHealth(Duration probe_after = kProbeAfter) : probe_after_(probe_after) {}

  // ---- Events

  void attempt_began(const Places& places);

  struct Findings {
    std::vector<std::string> set_aside;
    std::vector<std::string> taken_back;
  };
  // The first report of an attempt, or its end as completed.
  Findings attempt_reported(TrialNumber trial, const Places& places, ExperimentTime now);
  // The attempt failed before that. True: the failure does not count, and the trial is to be tried
  // elsewhere. `there_is_another`: a place, neither of these nor put aside, could hold the trial.
  bool attempt_failed(TrialNumber trial, const Places& places, bool there_is_another,
                      ExperimentTime now);
  // The attempt ended in another way before its first report, and so shows nothing.
  void attempt_ended(const Places& places);
  // No other place is left to try it, a user keeps it back, or the trial is over.
  void forget(TrialNumber trial);

  // ---- Consequences

  // For each trial that is to be tried elsewhere, or is just being tried, the places of its first
  // failure.
  const std::map<TrialNumber, Places>& second_tries() const { return second_tries_; }
  Names set_aside() const;
  Names closed() const;  // to trials in general: put aside, or in doubt
  Names due_probes(ExperimentTime now) const;
  // The time of the next probe after `now`.
  std::optional<ExperimentTime> next_probe(ExperimentTime now) const;
  bool is_fine() const { return places_.empty(); }  // none of the above but second_tries

  void clear();
  void save(PackWriter& out) const;
  void restore(PackReader& in);

 private:
  struct Place {  // of which something is known
    std::uint32_t blames = 0;
    std::uint32_t doubts = 0;  // second tries of trials that failed here
    bool is_set_aside = false;
    bool is_probed = false;
    ExperimentTime probe_at{};
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.blames, s.doubts, s.is_set_aside, s.is_probed, s.probe_at);
    }
  };
  struct SecondTry {
    TrialNumber trial;
    Places places;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.trial, s.places);
    }
  };
  void drop_if_fine(const std::string& name);

  Duration probe_after_;
  std::map<std::string, Place> places_;
  std::map<TrialNumber, Places> second_tries_;
};

}  // namespace tune
