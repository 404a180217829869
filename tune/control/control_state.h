// ControlState: all that the controller knows, with its snapshot. It decides nothing: the parts
// that change it (trial_moves.h, launcher.h ...) share it. Pure.
//
// The simpler way is that each part keeps what it changes. It fails where an event of one part is
// the business of another: a launch ends the wait for a user, a report answers for what the driver
// before this one may not have told. And a snapshot is one list, in the order in which builds have
// added to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent_contract.h"
#include "core/journal_format.h"
#include "core/resources.h"
#include "core/trial.h"
#include "schedulers/trial_scheduler.h"
#include "tune/control/asking.h"
#include "tune/control/course.h"
#include "tune/control/device_health.h"
#include "tune/control/nodes.h"
#include "tune/control/numbered_searcher.h"
#include "tune/control/outbox.h"
#include "tune/control/pool_book.h"
#include "tune/control/trial_book.h"
#include "tune/control/verdicts.h"
#include "tune/search/searcher.h"

namespace tune {

struct ControllerSetup {
  SetupExperiment experiment;     // sent to each agent
  std::string allocation_prefix;  // of the names of its pool's allocations
  std::string plugin;             // the plugin with its trainable; empty: a program's own
  ResourceRequest request;        // of one trial
  Objective objective;            // empty metric: none
  std::uint64_t seed = 0;
  bool fail_fast = false;
  Duration probe_after = DeviceHealth::kProbeAfter;
  std::unique_ptr<TrialScheduler> scheduler;  // configured
  std::unique_ptr<Searcher> searcher;         // configured
  SearcherSetup space = {};                   // of it: configurations that a user adds are to fit
};

// How an attempt has ended whose ranks on other nodes are still to be reaped.
struct EndedAttempt {
  AttemptEnded ended;
  bool is_lost = false;  // the node that led it is
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.ended, s.is_lost);
  }
};

struct ControlState {
  explicit ControlState(ControllerSetup given);
  ControlState(const ControlState&) = delete;
  ControlState& operator=(const ControlState&) = delete;

  bool is_budget_spent() const {
    return driver.time_budget > Duration{} && now >= driver.time_budget;
  }

  // That an engine has started it in; 0: none of this pool's.
  PoolBook::Number allocation_of(const AgentHello& hello) const {
    return allocation_number(hello.allocation, setup.allocation_prefix);
  }

  // MessagePack, see Controller::save.
  std::string save() const;
  void restore(std::string_view bytes);

  ControllerSetup setup;  // once, and without scheduler and searcher, which stand below

  // What the newest driver said; 3: of those that did not say so. Of `retry_errored` and
  // `keeps_joined`, which matter when it starts, a snapshot knows nothing.
  DriverStarted driver = {.agent_contract = 3,
                          .spreads_groups = false,
                          .gathers_parts = false,
                          .asks_for_few = false,
                          .forgets_held = false,
                          .keeps_origins = false};
  ExperimentTime now{};  // of the newest event
  Outbox out;
  Course course;
  Nodes nodes;
  TrialBook book;
  Verdicts verdicts;
  NumberedSearcher searcher;
  DeviceHealth health;
  Asking asking;
  PoolBook pool;

  std::int64_t num_samples = 1;  // a user may have changed the driver's
  bool can_save = false;         // the trainable
  bool save_notice_given = false;
  bool exhausted = false;            // the searcher has no more
  bool metric_was_reported = false;  // by any trial
  bool waits_for_user = false;       // and has said so
  // Attempts of machines that were lost, and may still run behind a broken network; or of one that
  // came back with them, until they have ended.
  std::map<AgentNumber, std::vector<LiveAttempt>> abandoned;
  // Those that run on under another driver than the one that heard them last, which may not have
  // told them its verdict.
  std::set<TrialNumber> unanswered;
  std::map<TrialNumber, EndedAttempt> ended;
};

}  // namespace tune
