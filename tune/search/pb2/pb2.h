// PB2 (Parker-Holder et al., NeurIPS 2020, arXiv 2002.02518): population based training whose new
// values come from a model instead of luck. When a trial goes on from a better one's checkpoint,
// the values are those with the largest upper bound on the gain that a Gaussian process expects
// next (tune/search/pb2/bandit.h), of all intervals that trials have trained so far. It does with
// few trials, 4 to 8. Everything else is as under tune::pbt (tune/search/pbt/pbt.h).
//
// Where ours differs from Ray Tune's pb2: values count on the scale of their domain (there a rate
// from 1e-5 to 1e-1 has hardly any small values), whole numbers stay whole, the model has noise,
// and the maximum is searched for by a stream of (seed, trial, iteration).
#pragma once

#include <optional>
#include <string>

#include "schedulers/scheduler_spec.h"
#include "tune/search/search_space.h"

namespace tune {

struct Pb2Options {
  double perturbation_interval = 10;  // in units of time_attr; > 0
  // Parameters with their ranges: uniform, loguniform and their like, randint and its like, or
  // {low, high} for uniform. No choices: they have no order.
  SearchSpace hyperparam_bounds = {};
  double quantile_fraction = 0.25;  // in [0, 0.5]
  double burn_in_period = 0;        // no trial is judged before; >= 0
  bool require_attrs = false;
  bool synch = false;
  std::string time_attr = "training_iteration";
  std::string metric = {};        // empty: the experiment's
  std::optional<Mode> mode = {};  // empty: the experiment's
};

// Throws Error (kBadInput) naming the parameter and its value when one is out of range.
SchedulerSpec pb2(Pb2Options options);
SchedulerSpec pb2_from_config(const Config& parameters);

}  // namespace tune
