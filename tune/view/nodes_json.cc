#include "tune/view/nodes_json.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/spawn.h"
#include "tune/results/result_lines.h"

namespace tune::view {

namespace {

constexpr std::size_t kMostMeasured = 512;  // trials that run

struct Load {
  double cpus_held = 0, gpus_held = 0;
  std::optional<double> cpus_used, memory_used;
};

double resource_of(const ExperimentHead& head, const char* name) {
  const Value* found = head.spec.find(std::string("resources_per_trial/") + name);
  return found != nullptr && found->is_number() ? found->number() : 0;
}

void measure(const std::filesystem::path& folder, std::uint32_t attempt, Load& load) try {
  const auto line = last_line(folder / kUsageFile);
  if (!line) return;
  const Value usage = parse_json(*line, kUsageFile);
  if (usage.get_or("attempt", 0.0) != attempt) return;  // of the one before
  load.cpus_used = load.cpus_used.value_or(0) + usage.get_or("cpus", 0.0);
  load.memory_used = load.memory_used.value_or(0) + usage.get_or("memory_bytes", 0.0);
} catch (const Error&) {  // a damaged line
}

std::vector<Load> loads_of(const Experiment& experiment) {
  const History& history = experiment.history();
  std::vector<Load> loads(history.nodes().size());
  const double cpus = resource_of(experiment.head(), "cpu");
  const double gpus = resource_of(experiment.head(), "gpu");
  std::size_t measured = 0;
  for (const auto& [trial, at] : history.open_attempts()) {
    const Attempt& attempt = history.attempts()[at];
    Load& load = loads[attempt.node];
    load.cpus_held += cpus;
    load.gpus_held += gpus;
    const auto row = experiment.trials().find(trial);
    if (!row || ++measured > kMostMeasured) continue;
    measure(experiment.trial_directory(*row), attempt.attempt, load);
  }
  return loads;
}

Value or_null(const std::optional<double>& number) {
  return number ? Value(*number) : Value(nullptr);
}

Value allocations_of(const History& history) {
  Value::List all;
  for (const auto& [number, one] : history.allocations()) {
    all.push_back(Value{{"number", number},
                        {"state", one.state},
                        {"id", one.id},
                        {"host", one.host},
                        {"reason", one.reason},
                        {"asked", one.asked},
                        {"since", one.since}});
  }
  return Value::make_list(std::move(all));
}

}  // namespace

Value nodes_of(const Experiment& experiment) {
  const History& history = experiment.history();
  const std::vector<Load> loads = loads_of(experiment);
  Value::List nodes;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const NodeView& node = history.nodes()[i];
    nodes.push_back(Value{{"name", node.name},
                          {"ip", node.ip},
                          {"cpus", node.cpus},
                          {"gpus", node.gpus},
                          {"memory_bytes", node.memory_bytes},
                          {"joined", node.joined},
                          {"left", node.left},
                          {"cause", node.cause},
                          {"running", node.running},
                          {"cpus_held", loads[i].cpus_held},
                          {"gpus_held", loads[i].gpus_held},
                          {"cpus_used", or_null(loads[i].cpus_used)},
                          {"memory_used", or_null(loads[i].memory_used)}});
  }
  std::uint64_t waiting = 0;
  const TrialTable& trials = experiment.trials();
  for (std::size_t row = 0; row < trials.size(); ++row) {
    waiting += trials.row(row).status == TrialStatus::kPending;
  }
  const Value* engine = experiment.head().spec.find("pool/engine");
  return Value{{"nodes", Value::make_list(std::move(nodes))},
               {"waiting", waiting},
               {"allocations", allocations_of(history)},
               {"pool", engine != nullptr && engine->is_string() ? engine->string() : ""},
               {"why_paused", history.why_paused()}};
}

}  // namespace tune::view
