#include "tune/results/experiment_status.h"

#include "core/platform/node.h"
#include "tune/control/controller.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller,
                                   ExperimentTime now) {
  ExperimentStatus status{.options = spec.options,
                          .trainable = spec.trainable,
                          .experiment_id = experiment_id_of(spec),
                          .trials = controller.trials()};
  status.total_trials = controller.total_trials();
  status.counts = controller.counts();
  status.best = controller.best_trial();
  status.pareto = controller.pareto();
  status.scheduler_lines = controller.scheduler_lines();
  const Placer& placer = controller.placer();
  status.cpu_units_used = placer.cpu_units_used();
  status.cpu_units_total = placer.cpu_units_total();
  status.gpu_units_used = placer.gpu_units_used();
  status.gpu_units_total = placer.gpu_units_total();
  for (const std::string& place : controller.device_health().set_aside()) {
    status.set_aside.push_back(place);
  }
  const Nodes& nodes = controller.nodes();
  for (const AgentNumber agent : nodes.all()) {
    status.nodes.emplace(agent, nodes.hello(agent).hostname);
  }
  status.running_for = now;
  status.waits = why_trials_wait(controller.pool(), controller.wanted(), now);
  status.held = {controller.held().begin(), controller.held().end()};
  status.waits_for_user = controller.waits_for_user();
  return status;
}

void add_own_node(const NodeResources& node, ExperimentStatus& status) {
  const MemoryUse memory = memory_use();
  status.memory_used_bytes = memory.used_bytes;
  status.memory_total_bytes = memory.total_bytes;
  if (status.cpu_units_total > 0 || status.gpu_units_total > 0) return;
  status.cpu_units_total = node.cpu_units;
  status.gpu_units_total = static_cast<std::int64_t>(node.gpus.size()) * kUnit;
}

}  // namespace tune
