// Values that stand in more than one of the three contracts: core/worker_contract.h (worker and
// agent), core/agent_contract.h (agent and driver), core/journal_format.h (a driver and all later
// ones). Plain structs, see core/wire.h.
//
// The journal keeps them as they came: fields are only ever added, at the end and by `f.added`, and
// no field changes its meaning. Enumerators and alternatives of a variant are only ever added at
// the end, and raise the version of each contract that has them.
//
// Times: `now` is experiment time, durations are nanoseconds. Iterations count from 1.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "core/wire.h"

namespace tune {

// One number for an attempt of a trial.
inline std::uint64_t attempt_key(TrialNumber trial, AttemptNumber attempt) {
  return std::uint64_t{trial.value} << 32 | attempt.value;
}

// The limit of a worker's unasked work: it waits at the first report whose time attribute (a key
// path of the result; training_iteration and time_total_s are always there) is >= value. A report
// without the attribute never waits. An empty attribute: never waits.
struct Milestone {
  std::string attribute;
  double value = 0;
  friend bool operator==(const Milestone&, const Milestone&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.attribute, s.value); }
};

// A trial stops at the first result in which the value at `path` is >= bound (or <= bound).
struct StopRule {
  std::string path;
  double bound = 0;
  bool at_most = false;
  friend bool operator==(const StopRule&, const StopRule&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.path, s.bound, s.at_most); }
};

struct CheckpointPolicy {
  std::uint32_t frequency = 0;  // every this many iterations; 0: never
  bool at_end = true;           // when the attempt ends without an error
  std::uint32_t keep = 1;       // the newest this many of a trial, and the one with the best metric
  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.frequency, s.at_end, s.keep); }
};

enum class Outcome : std::uint8_t {
  kCompleted,  // by a stop rule, `done`, max_trial_time, or the function returned
  kStopped,    // a stop verdict was carried out
  kPaused,     // saved after a pause verdict
  kException,  // setup, step, save, load or the function threw
  kSignal,     // a rank was ended by a signal
  kExit,       // a rank exited on its own
  kHung,       // no report within hang_timeout, or group_timeout passed; the agent killed it
  kLost,       // its agent, node or driver was lost; not counted as a failure
  kLast = kLost,
};
bool is_failure(Outcome outcome);  // counted by max_failures
const char* outcome_name(Outcome outcome);

enum class StopKind : std::uint8_t {
  kStop,   // the trial is over: save if at_end, end as kStopped
  kPause,  // save always, end as kPaused; what cannot save ends as kLost
  kLeave,  // the trial goes on from another state: save nothing, end as kStopped
  kLast = kLeave,
};

// A checkpoint of another trial, which a trial goes on from.
struct CheckpointOrigin {
  TrialNumber trial;
  std::uint64_t iteration = 0;  // of that trial, and
  AttemptNumber attempt;        // of that trial: both in the checkpoint's name
  friend auto operator<=>(const CheckpointOrigin&, const CheckpointOrigin&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.iteration, s.attempt);
  }
};

// ---- Said by the driver, passed on by the agent to the worker -----------------------------------

// The verdict on a waiting report: train on, up to the milestone.
struct Continue {
  TrialNumber trial;
  AttemptNumber attempt;
  Milestone until;
  bool save = false;  // first write the checkpoint of the step that was reported
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.until);
    f.added(s.save);
  }
};

// Ends the attempt at its next step boundary (at once when it waits). The agent kills it (SIGTERM,
// then SIGKILL) when it has not ended within `grace`; 0: no limit.
struct StopAttempt {
  TrialNumber trial;
  AttemptNumber attempt;
  StopKind kind = StopKind::kStop;
  Duration grace{};
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.trial, s.attempt, s.kind, s.grace); }
};

// ---- Said by the worker, passed on by the agent to the driver -----------------------------------

// One result of rank 0, as the user reported it.
struct Reported {
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint64_t iteration = 0;
  Duration time_this_iter{};
  Duration time_total{};           // of the trial, earlier attempts included
  Duration time_since_restore{};
  std::uint64_t iterations_since_restore = 0;
  std::optional<double> timesteps_total;
  bool waiting = false;            // the worker waits for a verdict
  bool final = false;              // a stop rule or `done` ended it; no verdict is awaited
  Packed result;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.trial, s.attempt, s.iteration, s.time_this_iter, s.time_total, s.time_since_restore,
      s.iterations_since_restore, s.timesteps_total, s.waiting, s.final, s.result);
  }
};

struct TrainableInfo {
  std::string name;
  bool can_save = false;
  bool is_function = false;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.name, s.can_save, s.is_function); }
};

// The zygote has loaded the trainable's library, or could not (then `error` says why).
struct ZygoteReady {
  std::string error;
  std::vector<TrainableInfo> trainables;
  std::string note;            // shown once as a warning when not empty
  std::uint32_t contract = 0;  // the zygote's kWorkerContract; 0: it is older than this field
  bool takes_memory = false;   // asks for the shared memory of a group's ranks
  bool relays = false;         // said by the agent: it does not see the experiment's folder
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.error, s.trainables, s.note);
    f.added(s.contract, s.takes_memory, s.relays);
  }
};

// Something the user should read once ("3 GPUs present but gpu is 0").
struct Warning {
  std::string text;
  template <class Self, class F>
  static void fields(Self& s, F& f) { f(s.text); }
};

}  // namespace tune
