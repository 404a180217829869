// The experiment whose journal the target `journal` reads, and that wrote its corpus.
#pragma once

#include "schedulers/asha.h"
#include "schedulers/scheduler_spec.h"
#include "tune/control/controller.h"
#include "tune/search/searcher.h"

namespace tune::fuzz {

inline ControllerSetup journal_experiment() {
  ControllerSetup setup;
  setup.experiment.trainable = "T";
  setup.experiment.checkpoint.frequency = 1;
  setup.request = to_request({});
  setup.seed = 7;
  setup.objective = {"m", Mode::kMax, 7};
  setup.scheduler = asha({.max_t = 4, .grace_period = 1, .reduction_factor = 2}).make();
  setup.scheduler->configure(setup.objective);
  setup.searcher = basic_variant().make();
  setup.searcher->configure({{{"x", uniform(0, 1)}}, 4, {}, setup.objective});
  return setup;
}

}  // namespace tune::fuzz
