// Scenario: everything about one simulated experiment that is settled before it begins, drawn from
// the seed: cluster, options of the sweep, rates of failure, accidents and the end of each driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/journal_format.h"
#include "core/resources.h"
#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "simulator/event_queue.h"
#include "simulator/simulated_disk.h"
#include "tune/control/controller.h"
#include "tune/search/pbt/pbt.h"

namespace tune::simulator {

struct Limits {  // of what is drawn
  int agents = 6;
  int trials = 14;
  int iterations = 14;
};

enum class Judge : std::uint8_t { kFifo, kAsha, kPausing, kMedian, kHyperBand, kPbt };

struct AccidentPlan {
  enum class Kind : std::uint8_t {
    kAgentDies,
    kAgentHangs,      // for a while, or until it is found dead
    kAgentToldToEnd,  // by a signal, alone
    kZygoteDies,
    kZygoteHangs,  // until its agent finds that it owes a worker for too long
    kWorkerDies,   // killed from outside
    kConnectionLost,
    kAgentJoins,
    kNodeDrains,   // by order of its driver
    kAgentCutOff,  // by a network that carries nothing for shorter or longer than its lease
    kLinkBreaks,   // between two agents of a group
  };
  Kind kind;
  Time at;
  bool at_link = false;  // befalls an agent that is linked to another of its group, as soon as one is
};

// A user's order at some moment, about any of the trials that are there then.
struct OrderPlan {
  OrderKind kind;
  Time at;
};

// On a bad place every attempt fails in its set-up, until it is mended: a GPU, or a node for trials
// without GPUs.
struct BadPlace {
  std::size_t node = 0;
  std::optional<std::uint32_t> gpu;
  Time mended_at = Time::max();
};

enum class StoreCall : std::uint8_t { kAny, kTrim, kRead };

// The life of one driver, counted in its steps: a turn is several, so that any two effects have a
// moment between them.
struct DriverLife {
  enum class End : std::uint8_t { kNone, kKilled, kStalled, kStoreLost };
  End end = End::kNone;
  int end_at = 0;  // steps
  StoreCall lost_in = StoreCall::kAny;
  std::optional<Time> lost_for;       // nothing: for good
  std::optional<int> interrupt_at;    // steps
  bool agents_are_told_to_end = false;  // by the same signal
  bool agents_die_at_once = false;    // when it ends; else they end in order
  std::optional<int> failing_zygote;  // of its nodes' first ones, the one that cannot load
  int zygote_restarts_failing = 0;    // of each node, so many
  bool zygotes_fail() const { return failing_zygote || zygote_restarts_failing > 0; }
  bool retry_errored = false;  // of the driver that comes next
  int more_samples = 0;
};

struct Rates {  // of one in a million
  std::uint32_t attempt_fails = 0;
  std::uint32_t term_ignored = 0;
  std::uint32_t frame_doubled = 0;
  std::uint32_t frame_slow = 0;
  std::uint32_t append_doubted = 0;  // the store's connection is lost in it
  std::uint32_t store_slow = 0;      // a call, before or after its effect
  std::uint32_t store_goes_back = 0;  // before a write: the connection is lost, and some writes
  std::uint32_t store_silent = 0;     // a call, for a while
  std::uint32_t snapshot = 0;        // after a turn
  std::uint32_t promotion_fails = 0;
  std::uint32_t fork_fails = 0;
  std::uint32_t files_slow = 0;  // an operation of an agent's beside its loop
  std::uint32_t no_room = 0;  // for what a driver writes beside its loop, when it reads its input
  std::uint32_t agent_dies = 0;    // when it has just told something
  std::uint32_t agent_silent = 0;  // from its start, for a while or until it is found dead
};

struct Scenario {
  std::uint64_t seed = 0;

  std::vector<NodeResources> nodes;
  ResourceRequest request;
  std::size_t credit_scale = 1;  // bytes that a byte in flight stands for

  Judge judge = Judge::kFifo;
  AshaOptions asha;
  MedianStoppingOptions median;
  HyperBandOptions hyperband;
  PbtOptions pbt;
  int pause_every = 2;
  bool resumed_first = false;
  int num_samples = 4;
  int grid_cells = 1;
  bool asks = false;              // a searcher whose proposals take time
  Time proposal_time{};           // of an answer, about
  std::uint64_t iterations = 10;  // the stop rule
  bool some_end_early = false;    // by "done"
  bool some_miss_metric = false;
  bool several = false;  // objectives, and a constraint
  CheckpointPolicy checkpoint;
  bool can_save = true;
  std::uint32_t max_failures = 0;
  std::uint32_t max_concurrent_trials = 0;
  bool fail_fast = false;
  Duration time_budget{};
  Duration max_trial_time{};
  Duration hang_timeout{};

  Time step{};           // of one iteration, about
  Time network_delay{};  // about
  Time store_delay{};    // of a slow call, about
  Time file_delay{};     // of a slow file, about
  std::size_t snapshot_part = 0;  // bytes
  Time store_patience{};
  Time store_silence{};  // of one that is not planned, about
  Rates rates;
  std::optional<BadPlace> bad_place;
  Time probe_after{};
  std::vector<AccidentPlan> accidents;
  std::vector<OrderPlan> orders;
  std::vector<DriverLife> lives;  // later ones are undisturbed

  // Agents join by a token: only what they say tells of their end, and each leaves the driver a
  // lease of silence.
  bool joined = false;
  bool owns_first = false;  // of these: that of the first node is its driver's own
  bool relays = false;  // of these: none sees the experiment's folder
  bool first_sees_folder = false;  // but the first, as the driver's own
  bool objects = false;  // of these: checkpoints are in an object store
  // So many of the smaller nodes hold a group together; 0: each node holds one alone.
  int nodes_of_group = 0;
  Time lease{};

  // Its driver sees its process end, and ends it when it is silent; the next driver finds it.
  bool is_own(std::size_t node) const { return owns_first && node == 0; }

  // The time of a rank's work alone, or of a slow save. Other ranks would be ended for so long a
  // silence; this one is not.
  Time lone_work() const { return hang_timeout * 13 / 20; }
  const DriverLife& life(std::size_t number) const;
  bool owns_folder(std::size_t node) const { return relays && (node > 0 || !first_sees_folder); }
  bool carries(std::size_t node) const { return objects || owns_folder(node); }
  // Each agent has a folder of its own there.
  Where where(std::size_t node, std::uint32_t agent) const {
    return owns_folder(node) ? agent : kExperimentFolder;
  }
  // Whether trials may be ended though they could go on.
  bool may_be_cut_short() const { return fail_fast || time_budget > Duration{}; }
  std::string describe() const;
};

Scenario draw_scenario(std::uint64_t seed, const Limits& limits = {});

SearchSpace search_space(const Scenario& scenario);
// The setup of a driver of this scenario.
ControllerSetup controller_setup(const Scenario& scenario);

inline constexpr int kPatience = 4;  // of an agent without a driver, in leases
inline constexpr const char* kSecondMetric = "cost";
inline constexpr const char* kTrainable = "LearningCurve";
inline constexpr const char* kMetric = "m";

}  // namespace tune::simulator
