#include "tune/results/experiment_status.h"

#include "core/platform/node.h"
#include "tune/control/controller.h"
#include "tune/control/pool_room.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"

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
  status.waits = why_trials_wait(spec, controller, now);
  status.held = {controller.held().begin(), controller.held().end()};
  status.waits_for_user = controller.waits_for_user();
  return status;
}

std::string why_trials_wait(const ExperimentSpec& spec, const Controller& controller,
                            ExperimentTime now) {
  const PoolOptions& pool = spec.options.pool;
  if (!pool.is_given() || spec.request.ranks == 1) {
    return why_trials_wait(controller.pool(), controller.wanted(), now);
  }
  const PoolScene scene = pool_scene(controller, spec.request, "");
  NodeShare share = share_of_trials(node_of(pool, spec.request), spec.request);
  for (const PoolScene::Node& node : scene.nodes) {  // which may be smaller than what was asked for
    const int each = node.share().nodes_each();
    if (node.allocation > 0 && each > share.nodes_each()) share = node.share();
  }
  WaitingGroups groups{.nodes = static_cast<std::uint64_t>(share.nodes_each())};
  groups.idle = PoolRoom(scene, {}, share).waiting().size();
  const std::uint64_t max = controller.pool().max().value_or(static_cast<std::uint32_t>(pool.max));
  if (max < groups.nodes) groups.most = max;
  return why_trials_wait(controller.pool(), controller.wanted(), now, groups);
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
