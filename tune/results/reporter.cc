#include "tune/results/reporter.h"

#include "tune/control/controller.h"

namespace tune {

ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller) {
  ExperimentStatus status{.spec = spec, .trials = controller.trials()};
  status.total_trials = controller.total_trials();
  status.counts = controller.counts();
  status.best = controller.best_trial();
  status.scheduler_lines = controller.scheduler_lines();
  const Placer& placer = controller.placer();
  status.cpu_units_used = placer.cpu_units_used();
  status.cpu_units_total = placer.cpu_units_total();
  status.gpu_units_used = placer.gpu_units_used();
  status.gpu_units_total = placer.gpu_units_total();
  return status;
}

}  // namespace tune
