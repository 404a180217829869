#include "tune/results/experiment_status.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/platform/node.h"
#include "tune/control/controller.h"
#include "tune/control/pool_room.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/when.h"

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
  const Nodes& nodes = controller.nodes();
  for (const std::string& place : controller.device_health().set_aside()) {
    status.set_aside.push_back(nodes.place_in_words(place));
  }
  for (const AgentNumber agent : nodes.all()) {
    const AgentHello& hello = nodes.hello(agent);
    status.nodes.emplace(agent, hello.hostname);
    const auto [host, is_new] = status.hosts.try_emplace(hello.ip, hello.hostname);
    if (!is_new && host->second != hello.hostname) host->second.clear();
  }
  status.joined = who_has_joined(nodes, now);
  status.running_for = now;
  status.waits = why_trials_wait(spec, controller, now);
  status.held = {controller.held().begin(), controller.held().end()};
  status.waits_for_user = controller.waits_for_user();
  return status;
}

std::string who_has_joined(const Nodes& nodes, ExperimentTime now) {
  std::size_t count = 0;
  std::optional<AgentNumber> first;  // that leaves
  const auto end_of = [&](AgentNumber agent) {
    return nodes.joined_at(agent) + nodes.hello(agent).lasts;
  };
  for (const AgentNumber agent : nodes.all()) {
    const AgentHello& hello = nodes.hello(agent);
    if (!hello.joined || hello.own || nodes.is_away(agent)) continue;
    ++count;
    if (hello.lasts > Duration{} && (!first || end_of(agent) < end_of(*first))) first = agent;
  }
  if (count == 0) return {};
  std::string text = fmt::format("Machines that have joined: {}", count);
  if (!first) return text;
  return text + fmt::format(" ({} leaves {}in {})", nodes.hello(*first).hostname,
                            count > 1 ? "first, " : "",
                            in_words(std::max(end_of(*first) - now, Duration{})));
}

std::string why_trials_wait(const ExperimentSpec& spec, const Controller& controller,
                            ExperimentTime now) {
  const PoolOptions& pool = spec.options.pool;
  if (!pool.is_given() || spec.request.ranks == 1) {
    return why_trials_wait(controller.pool(), controller.wanted(), now);
  }
  const PoolScene scene = pool_scene(controller, spec.request);
  NodeShare share = share_of_trials(node_of(pool, spec.request), spec.request);
  for (const PoolScene::Node& node : scene.nodes) {  // which may be smaller than what was asked for
    const int each = node.share().nodes_each();
    if (node.allocation > 0 && each > share.nodes_each()) share = node.share();
  }
  WaitingGroups groups{.nodes = static_cast<std::uint64_t>(share.nodes_each())};
  groups.idle = PoolRoom(scene, {}, share).waiting().size();
  const std::uint64_t max = controller.pool().max().value_or(
      static_cast<std::uint32_t>(most_agents(pool, pool.hosts.size())));
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
