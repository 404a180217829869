// VirtualSweep: a sweep in virtual time. The controller, scheduler and searcher that run sweeps are
// told of results as by workers, which are a queue of events here; their steps take the time that a
// Task says. No process, file or journal; the same spec and task give the same run. Pure.
//
// The simulator of tests/ is another thing: it runs driver, agents and workers with their links,
// store and disks, to break them, and takes a hundred times as long for an event. Here nothing is
// lost and nobody dies, so that there is no link between the controller and a worker's step, and
// thousands of sweeps can be compared.
//
// Proposals of a searcher that takes time for them are made at once, and take no virtual time.
//
// A step is known when its worker reports it, without the metrics that it did not report. Values of
// steps that break the sweep's constraints do not count. The best of the others counts from the
// next moment at which the worker waits for a verdict or ends: until then a user would have to stop
// the training to get it. Of several objectives no value of a trial is the best, and those of its
// last step that reported all of them count, as in Analysis::pareto.
// Pausing and saving take no time; each launch may cost some steps' time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "tune/simulate/task.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

struct VirtualOptions {
  std::uint32_t workers = 4;  // at least 1
  double start_cost = 0;      // of each launch, in steps of its trial
  // To measure what the controller's decisions cost; null: not measured.
  std::function<Duration()> cpu_time = {};
};

struct VirtualRun {
  struct Best {
    double seconds;        // since when
    std::uint64_t trials;  // that had ended by then
    double value;
  };
  std::vector<Best> best;  // each better than the one before; of several objectives: empty
  struct Point {
    double seconds;        // since when
    std::uint64_t trials;  // that had ended by then
    TrialNumber trial;
    std::vector<double> values;  // of the objectives; empty: none of the trial counts
  };
  std::vector<Point> points;   // of several objectives, in the order of time
  std::uint64_t trials = 0;    // that were begun
  std::uint64_t launches = 0;  // a paused trial has several
  std::uint64_t steps = 0;
  std::map<std::uint64_t, std::uint64_t> last_steps;  // how many trials came so far and no farther
  std::uint64_t ends_of_record = 0;  // trials that would have gone on, but were recorded no farther
  double seconds = 0;                // virtual, to the end of the sweep
  Duration deciding{};               // CPU time, without that of the curves

  // The best value at that time; nothing: there was none yet.
  std::optional<double> best_at(double at_seconds) const;
  // Under several objectives the last values of each trial that count at that time.
  std::vector<std::vector<double>> points_at(double at_seconds) const;
};

// Plays the sweep to its end. Its seed and metric or objectives are set; its resources are not
// looked at: each trial has a worker. Throws Error (kBadInput) when the task has not its metrics or
// fewer trials than it asks for, and what the controller says when it cannot go on.
VirtualRun play(const ExperimentSpec& spec, const Task& task, const VirtualOptions& options);

}  // namespace tune
