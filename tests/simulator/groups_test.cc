#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "simulator/simulation.h"

namespace tune::simulator {
namespace {

using std::chrono::seconds;

struct Cluster {
  int nodes;
  std::int64_t cpus;  // of each
  std::size_t gpus;
};

NodeResources node_of(const Cluster& cluster) {
  NodeResources node;
  node.cpu_units = cluster.cpus * kUnit;
  for (std::size_t gpu = 0; gpu < cluster.gpus; ++gpu) {
    node.gpus.push_back({std::to_string(gpu), "GPU", 0});
  }
  return node;
}

// More groups than there is room for. The other values that the seed draws stay.
Scenario full_of_groups(std::uint64_t seed, const Cluster& cluster, const Resources& wanted) {
  Scenario scenario = draw_scenario(seed);
  scenario.nodes.assign(static_cast<std::size_t>(cluster.nodes), node_of(cluster));
  scenario.request = to_request(wanted);
  scenario.num_samples = 12;
  scenario.grid_cells = 1;
  scenario.max_concurrent_trials = 0;
  scenario.time_budget = {};
  scenario.bad_place.reset();
  scenario.nodes_of_group = 0;
  return scenario;
}

std::string told(const Violation& violation) {
  return violation.invariant + ": " + violation.what;
}

void disturb_nothing(Scenario& scenario) {
  scenario.rates = {};
  scenario.accidents.clear();
  scenario.lives.clear();
  scenario.orders.clear();
  scenario.judge = Judge::kFifo;
  scenario.some_end_early = false;
  scenario.hang_timeout = seconds(20);
  scenario.max_trial_time = {};
}

// The room left on a node beside the groups that fit is always half of a group, so that two halves
// on two nodes would make a whole.
const struct {
  Cluster cluster;
  Resources wanted;
} kRows[] = {
    {{.nodes = 4, .cpus = 6, .gpus = 0}, {.cpu = 4, .gpu = 0, .ranks = 4}},
    {{.nodes = 3, .cpus = 3, .gpus = 3}, {.cpu = 2, .gpu = 2, .ranks = 2}},
    {{.nodes = 2, .cpus = 8, .gpus = 3}, {.cpu = 4, .gpu = 2, .ranks = 4}},
};

TEST_CASE("groups that fill a cluster never wait for each other's half") {
  for (const auto& row : kRows) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      Scenario scenario = full_of_groups(seed, row.cluster, row.wanted);
      disturb_nothing(scenario);
      const std::uint64_t results = 12 * scenario.iterations;
      const Verdict verdict = Simulation(std::move(scenario), false).run();
      CAPTURE(seed);
      CAPTURE(row.wanted.ranks);
      if (verdict.violation) FAIL(told(*verdict.violation));
      // Every group was started once and ran through: none was given up to make room for another.
      CHECK(verdict.tally.launches == 12);
      CHECK(verdict.tally.failures == 0);
      CHECK(verdict.tally.results == results);
    }
  }
}

TEST_CASE("nor do they when processes, nodes and drivers fail beside them") {
  for (const auto& row : kRows) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
      const Verdict verdict =
          Simulation(full_of_groups(seed, row.cluster, row.wanted), false).run();
      CAPTURE(seed);
      CAPTURE(row.wanted.ranks);
      if (verdict.violation) FAIL(told(*verdict.violation));
    }
  }
}

}  // namespace
}  // namespace tune::simulator
