// Population based training (Jaderberg et al., arXiv 1711.09846), as users of Ray Tune know it: all
// trials train at the same time; at every perturbation_interval of its own time, one that is among
// the worst goes on from the checkpoint of one of the best, with that one's configuration mutated
// (tune/search/pbt/mutation.h). The result is a schedule of values rather than one configuration:
// `tune schedule` prints it, tune::pbt_replay plays it again.
//
// One trial is judged when its result reaches its time; its newest judged value then stands for it.
// Of n such trials that are not over the ceil(n * quantile_fraction) worst are replaced, and as
// many best are donors, never more than half. One of the best is told to save then; it is a donor
// while it has the checkpoint of its last judged result. With more trials than places each trains
// for an interval in turn. With `synch` all trials wait for each other at each interval.
//
// Where ours differs from Ray Tune's, by intention:
//  - A trial keeps its own count of iterations and its own files; there the donor's counters go on.
//  - Replacements are part of the experiment's journal: a resumed sweep knows each trial's values
//    and its state (there mutations are lost when a sweep is restored), and the donor's checkpoint
//    stays on disk as long as a trial would restart from it.
//  - With `synch`, trials that fail or end are not waited for (there the sweep stands still).
//  - A trial is replaced only by a better one, and only a finite value makes a donor; NaN is the
//    worst value (there it is never replaced).
//  - Mutations come from streams of (seed, trial, iteration): no other event changes them.
//  - All mutated parameters are parameters of the configuration; there missing ones are made up.
//  - time_attr is training_iteration and not time_total_s: wall time decides nothing by default.
//  - A judged result without the metric is passed over, and the next one judged; with require_attrs
//    its trial is stopped. There the whole sweep fails by default.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/scheduler_spec.h"
#include "tune/search/search_space.h"

namespace tune {

struct PbtOptions {
  double perturbation_interval = 10;      // in units of time_attr; > 0
  SearchSpace hyperparam_mutations = {};  // domains, or lists of values; names one at least
  double quantile_fraction = 0.25;        // in [0, 0.5]
  double resample_probability = 0.25;     // in [0, 1]
  std::vector<double> perturbation_factors = {1.2, 0.8};  // each above 0
  double burn_in_period = 0;                              // no trial is judged before; >= 0
  // Called with the mutated configuration, gives the one to go on with. A scheduler with it is the
  // program's own: no YAML describes it.
  std::function<Config(const Config&)> custom_explore = {};
  bool require_attrs = false;
  bool synch = false;
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec pbt(PbtOptions options);
SchedulerSpec pbt_from_config(const Config& parameters);

}  // namespace tune
