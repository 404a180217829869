// RunOptions: all options of tune::run, with their defaults. Designated initialisers need the
// fields in this order; new ones go to the end. Values only: copy freely.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/resources.h"
#include "core/value.h"
#include "schedulers/asha.h"
#include "schedulers/scheduler_spec.h"
#include "tune/search/search_space.h"
#include "tune/search/searcher.h"
#include "tune/spec/pool_options.h"

namespace tune {

class Callback;
class ProgressReporter;

// {"accuracy", 0.99} stops at or above; {"loss", tune::at_most(0.1)} at or below.
struct AtMost {
  double bound;
};
inline AtMost at_most(double bound) { return {bound}; }
struct StopBound {
  StopBound(double bound) : bound(bound) {}                          // NOLINT
  StopBound(AtMost bound) : bound(bound.bound), at_most(true) {}     // NOLINT
  double bound;
  bool at_most = false;
};
using StopCriteria = std::map<std::string, StopBound>;

struct CheckpointOptions {
  int frequency = 0;    // save after every so many steps; 0: never
  bool at_end = true;   // save when a trial ends without an error
  int keep = 1;  // newest ones of a trial that stay; the one with the best metric always does
};

struct ReporterOptions {
  std::vector<std::string> metrics = {};     // columns; empty: the metric and usual ones
  std::vector<std::string> parameters = {};  // columns; empty: the searched ones
  int max_rows = 20;
  double every_s = 0;                        // 0: redraw as needed on a terminal, 30 s elsewhere
  std::shared_ptr<ProgressReporter> own = {};  // replaces the console reporter
};

// Things to do when a run is over, however it ended. Never stored: a resume does what it is given
// itself.
struct OnEnd {
  std::vector<std::string> command = {};  // a program and its arguments; no shell reads them
  std::string webhook = {};               // an address, http or https, that gets a POST of JSON
  bool terminal = false;                  // ring the bell, and show a note where the terminal can
};

enum class IfExists { kRefuse, kResume, kFresh };

struct RunOptions {
  std::string name = {};
  SearchSpace config = {};
  std::int64_t num_samples = 1;              // -1: no end
  std::string metric = {};
  std::optional<Mode> mode = {};             // max
  SchedulerSpec scheduler = {};              // FIFO
  StopCriteria stop = {};
  Resources resources_per_trial = {};
  std::optional<std::uint64_t> seed = {};    // drawn, printed and stored
  std::string storage = "results";           // or "s3://bucket/prefix": checkpoint_storage
  CheckpointOptions checkpoint = {};
  int max_failures = 0;
  int max_concurrent_trials = 0;             // 0: as many as fit
  double time_budget_s = 0;                  // 0: none
  double max_trial_time_s = 0;               // looked at with each result; 0: none
  double hang_timeout_s = 0;                 // of a step without a result; 0: none
  std::vector<Config> points_to_evaluate = {};
  SearcherSpec searcher = {};
  std::string store = {};  // empty: private; redis://[:password@]host:port/db, unix://
  std::map<std::string, std::string> env = {};
  ReporterOptions reporter = {};
  bool raise_on_failed_trial = true;
  bool fail_fast = false;
  IfExists if_exists = IfExists::kRefuse;
  bool quiet = false;
  bool store_unsafe = false;                 // accept a store that may lose or evict entries
  std::optional<double> cpus = {};           // logical resources instead of the node's own
  std::optional<double> gpus = {};
  // The time that the ranks of a trial wait for each other: in a collective, and for a rank that
  // has not finished the setup, load, step, save or end that another rank has finished, or whose
  // function returned while others go on. A phase that no rank has finished may take any time.
  double group_timeout_s = 60;
  GpuVisibility gpu_visibility = GpuVisibility::kTrial;
  // When other sweeps of this user hold the GPUs of this node: wait until they are free.
  bool wait_gpus = false;
  // The time that the ranks of a trial wait for a rank that saves, or works in context().alone():
  // this or group_timeout_s, whichever is longer. 0: any time.
  double alone_timeout_s = 600;
  // The time that a run waits for a silent or lost store before it ends, to be resumed. 0: any
  // time.
  double store_patience_s = 300;
  // The time that running trials have to save when all ends early, by a signal or a budget. 0: any
  // time.
  double save_grace_s = 30;
  // Comparisons of parameters that every configuration keeps: {"x < y", "layers * model/width <=
  // 4096"} (tune/search/where.h).
  std::vector<std::string> where = {};
  // Folders of earlier experiments, from whose trials a searcher that learns knows more from the
  // start. Values are read once: a resume does not need the folders.
  std::vector<std::string> warm_start = {};
  // Where other machines may join by a token, as ADDRESS[:PORT]: an interface, an address of this
  // machine, or 0.0.0.0 for all. Empty: nowhere.
  std::string listen = {};
  // A machine that joined and has said nothing for so long is lost: its trials start elsewhere.
  double lease_s = 60;
  // An agent that hears no driver lets its trials train to their next verdict; after so long it
  // saves and ends them. Not given: 1800 where machines may join, and the driver's own agent ends
  // with its driver elsewhere.
  std::optional<double> patience_s = {};
  // Several metrics in place of `metric` and `mode`: {{"loss", tune::Mode::kMin}, {"accuracy"}}.
  // Schedulers then rank by fronts, as NSGA-II does, and within one by an epsilon net in place of
  // crowding distance (Salinas et al., "A Multi-objective Perspective on Jointly Tuning Hardware
  // and Hyperparameters", 2021).
  std::vector<Goal> objectives = {};
  // Bounds that a trial's metrics have to keep: {{.metric = "latency_ms", .max = 20}}.
  std::vector<Constraint> constraints = {};
  // An engine that starts agents on other machines, as many as trials need.
  PoolOptions pool = {};
  // Other tools that are told while it runs, from the experiment's folder: "tensorboard", "mlflow"
  // (tune/export/README.md).
  std::vector<std::string> loggers = {};
  OnEnd on_end = {};
  // Told what happens, by a thread beside the run (tune/results/callback.h).
  std::vector<std::shared_ptr<Callback>> callbacks = {};
  // An object store that keeps the checkpoints, "s3://bucket/prefix"; all else stays in `storage`.
  // Empty: they are there, too.
  std::string checkpoint_storage = {};
};

}  // namespace tune
