#include "tune/control/placement.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"

using namespace tune;

namespace {

constexpr std::int64_t kGiB = 1LL << 30;

NodeResources node(double cpus, int gpus = 0, std::int64_t memory_bytes = 64 * kGiB) {
  NodeResources resources;
  resources.cpu_units = to_units(cpus);
  resources.memory_bytes = memory_bytes;
  for (int i = 0; i < gpus; ++i) resources.gpus.push_back({std::to_string(i), "", 0});
  return resources;
}

Placer placer_of(const std::vector<NodeResources>& nodes) {
  Placer placer;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    placer.add_node({i}, nodes[i]);
    placer.open_node({i});
  }
  return placer;
}

ResourceRequest request(double cpu, double gpu = 0, int ranks = 1, std::int64_t memory_bytes = 0) {
  return to_request({.cpu = cpu, .gpu = gpu, .memory = memory_bytes, .ranks = ranks});
}

using Placed = std::pair<std::uint32_t, std::vector<std::uint32_t>>;

// (agent, GPUs) of where it was placed.
std::optional<Placed> put(Placer& placer, const ResourceRequest& wanted) {
  const std::optional<Placement> placement = placer.place(wanted);
  if (!placement) return std::nullopt;
  return Placed{placement->agent.value, placement->gpus};
}

// Whether the action ends the process, as a failed TUNE_CHECK does.
template <class F>
bool ends_the_process(F action) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);  // not the test runner's
    action();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("CPUs and memory are given until they are used up, and again after a release") {
  Placer placer = placer_of({node(2, 0, 8 * kGiB)});
  const ResourceRequest one = request(1, 0, 1, 3 * kGiB);
  const auto first = placer.place(one);
  REQUIRE(first.has_value());
  CHECK(put(placer, one) == Placed{0, {}});
  CHECK_FALSE(placer.place(one).has_value());  // no CPU
  CHECK(placer.cpu_units_used() == 2 * kUnit);
  CHECK(placer.cpu_units_total() == 2 * kUnit);
  placer.release(*first, one);
  CHECK(placer.cpu_units_used() == kUnit);
  CHECK_FALSE(placer.place(request(1, 0, 1, 6 * kGiB)).has_value());  // 5 GiB are left
  CHECK(placer.place(request(1, 0, 1, 5 * kGiB)).has_value());
}

TEST_CASE("fractions add up without loss: three shares of 0.3333 fit on one GPU") {
  Placer placer = placer_of({node(8, 1)});
  for (int i = 0; i < 3; ++i) CHECK(put(placer, request(1, 0.3333)) == Placed{0, {0}});
  CHECK_FALSE(placer.place(request(1, 0.3333)).has_value());
  CHECK(placer.gpu_units_used() == 9999);
  CHECK(put(placer, request(1, 0.0001)) == Placed{0, {0}});
  CHECK(placer.gpu_units_used() == placer.gpu_units_total());

  Placer cpus = placer_of({node(1)});
  for (int i = 0; i < 10; ++i) CHECK(put(cpus, request(0.1)).has_value());
  CHECK_FALSE(cpus.place(request(0.1)).has_value());
}

TEST_CASE("a share goes to the GPU with the least room that still holds it") {
  Placer placer = placer_of({node(16, 3)});
  CHECK(put(placer, request(1, 0.5)) == Placed{0, {0}});   // free: 0.5 1 1
  CHECK(put(placer, request(1, 0.75)) == Placed{0, {1}});  // free: 0.5 0.25 1
  CHECK(put(placer, request(1, 0.25)) == Placed{0, {1}});  // free: 0.5 0 1
  CHECK(put(placer, request(1, 0.5)) == Placed{0, {0}});   // free: 0 0 1
  CHECK(put(placer, request(1, 1)) == Placed{0, {2}});
  CHECK_FALSE(placer.place(request(1, 0.0001)).has_value());
}

TEST_CASE("whole GPUs are entirely free ones") {
  Placer placer = placer_of({node(16, 4)});
  CHECK(put(placer, request(1, 0.25)) == Placed{0, {0}});
  CHECK(put(placer, request(1, 2)) == Placed{0, {1, 2}});
  CHECK_FALSE(placer.place(request(1, 2)).has_value());  // 0.75 and 1 are free
  CHECK(put(placer, request(1, 1)) == Placed{0, {3}});
}

TEST_CASE("all ranks of a trial are placed together on one node, rank by rank") {
  Placer two_nodes = placer_of({node(4, 2), node(4, 2)});
  CHECK(put(two_nodes, request(2, 2, 2)) == Placed{0, {0, 1}});  // one GPU a rank
  CHECK(put(two_nodes, request(2, 1, 1)) == Placed{1, {0}});
  CHECK_FALSE(two_nodes.place(request(2, 2, 2)).has_value());  // a GPU is free, not two

  Placer shares = placer_of({node(8, 2)});
  CHECK(put(shares, request(3, 1.5, 3)) == Placed{0, {0, 0, 1}});  // 0.5 a rank, each on one GPU
  Placer big = placer_of({node(8, 8)});
  CHECK(put(big, request(2, 6, 2)) == Placed{0, {0, 1, 2, 3, 4, 5}});  // three GPUs a rank
  Placer none = placer_of({node(4)});
  CHECK(put(none, request(4, 0, 4)) == Placed{0, {}});
}

TEST_CASE("a request takes the node it fills best, and leaves free GPUs to those who need them") {
  // The one GPU of node 1 holds the second share; node 0 keeps its GPUs whole.
  Placer shares = placer_of({node(8, 4), node(8, 1)});
  CHECK(put(shares, request(1, 0.5)) == Placed{1, {0}});
  CHECK(put(shares, request(1, 0.5)) == Placed{1, {0}});
  CHECK(put(shares, request(1, 0.5)) == Placed{0, {0}});
  CHECK(put(shares, request(1, 3)) == Placed{0, {1, 2, 3}});

  Placer cpus = placer_of({node(8, 4), node(8), node(4)});
  CHECK(put(cpus, request(2)) == Placed{2, {}});  // no GPU, fewest free CPUs
  CHECK(put(cpus, request(2)) == Placed{2, {}});
  CHECK(put(cpus, request(8)) == Placed{1, {}});
  CHECK(put(cpus, request(8)) == Placed{0, {}});
  CHECK_FALSE(cpus.place(request(1)).has_value());

  Placer equals = placer_of({node(8, 1), node(8, 1)});
  CHECK(put(equals, request(1, 1)) == Placed{0, {0}});  // the first of equals
}

TEST_CASE("a removed node takes what it was promised with it") {
  Placer placer = placer_of({node(4, 1), node(4, 2)});
  CHECK(put(placer, request(1, 1)) == Placed{0, {0}});
  CHECK(put(placer, request(1, 1)) == Placed{1, {0}});
  placer.remove_node({0});
  CHECK(placer.cpu_units_total() == 4 * kUnit);
  CHECK(placer.cpu_units_used() == kUnit);
  CHECK(placer.gpu_units_total() == 2 * kUnit);
  CHECK(placer.gpu_units_used() == kUnit);
  placer.add_node({0}, node(4, 1));  // back, and empty
  placer.open_node({0});
  CHECK(put(placer, request(1, 1)) == Placed{1, {1}});
  CHECK(put(placer, request(1, 1)) == Placed{0, {0}});
}

TEST_CASE("what no node could ever hold is refused with numbers") {
  struct Row {
    std::vector<NodeResources> nodes;
    ResourceRequest wanted;
    std::string why;
  };
  const Row table[] = {
      {{node(2)}, request(2), ""},
      {{node(2)}, request(8), "a trial needs 8 CPUs, the node has 2"},
      {{node(2), node(6)}, request(8), "a trial needs 8 CPUs, the largest node has 6"},
      {{node(2)}, request(2.5), "a trial needs 2.5 CPUs, the node has 2"},
      {{node(0.5)}, request(1), "a trial needs 1 CPU, the node has 0.5"},
      {{node(2), node(2)}, request(1, 4), "a trial needs 4 GPUs, the largest node has 0"},
      {{node(2)}, request(1, 1), "a trial needs 1 GPU, the node has 0"},
      {{node(2)}, request(1, 0.5), "a trial needs 0.5 GPUs, the node has 0"},
      {{node(8, 2), node(8, 3)}, request(1, 4), "a trial needs 4 GPUs, the largest node has 3"},
      {{node(8, 2)},
       request(3, 1.8, 3),
       "3 ranks need 0.6 GPUs each, of which a GPU holds 1, the node has 2"},
      {{node(8, 2)}, request(4, 2, 4), ""},
      {{node(8), node(8, 2)}, request(4, 4, 4), "4 ranks need 4 GPUs, the largest node has 2"},
      {{node(2)}, request(4, 0, 4), "4 ranks need 4 CPUs, the node has 2"},
      {{node(8, 0, 100)},
       request(1, 0, 1, 101),
       "a trial needs 101 bytes of memory, the node has 100 bytes"},
      {{node(8, 0, 3LL << 29)},
       request(1, 0, 1, 64LL << 30),
       "a trial needs 64 GiB of memory, the node has 1.5 GiB"},
      {{node(8), node(1, 4)},
       request(4, 2),
       "a trial needs 4 CPUs, 2 GPUs and 0 bytes of memory on one node, and none has all of them"},
      {{}, request(1), "a trial needs a node, and there is none"},
  };
  for (const auto& [nodes, wanted, why] : table) {
    Placer placer = placer_of(nodes);
    CHECK(placer.why_never(wanted) == why);
    CHECK(placer.place(wanted).has_value() == why.empty());
    // Present use does not change what could be held.
    if (why.empty()) CHECK(placer.why_never(wanted).empty());
  }
}

TEST_CASE("the remedy for what a node cannot hold fits what it lacks") {
  const std::string less = ": ask for less";
  const std::string said = less + ", or say what the node has with ";
  CHECK(why_never_on(node(2), request(2)).empty());
  CHECK(why_never_on(node(2), request(8)).ends_with("has 2" + said + "--cpus"));
  CHECK(why_never_on(node(2), request(1, 1)).ends_with("has 0" + said + "--gpus"));
  CHECK(why_never_on(node(2, 2), request(3, 1.8, 3)).ends_with("has 2" + said + "--cpus"));
  CHECK(why_never_on(node(8, 2), request(3, 1.8, 3)).ends_with("has 2" + said + "--gpus"));
  CHECK(why_never_on(node(2), request(8, 1)).ends_with("has 0" + said + "--gpus"));
  CHECK(why_never_on(node(8, 0, 100), request(1, 0, 1, 101)).ends_with("100 bytes" + less));
}

TEST_CASE("releasing what is not held, and adding a node twice, are programmer's errors") {
  const ResourceRequest gpu = request(1, 1);
  const auto after = [&](auto action) {
    return ends_the_process([&] {
      Placer placer = placer_of({node(4, 2)});
      const Placement held = *placer.place(gpu);
      action(placer, held);
    });
  };
  CHECK_FALSE(after([&](Placer& placer, Placement held) { placer.release(held, gpu); }));
  CHECK(after([&](Placer& placer, Placement held) {
    placer.release(held, gpu);
    placer.release(held, gpu);
  }));
  CHECK(after([&](Placer& placer, Placement) { placer.release({{0}, {1}}, gpu); }));
  CHECK(after([&](Placer& placer, Placement) { placer.release({{0}, {7}}, gpu); }));
  CHECK(after([&](Placer& placer, Placement) { placer.release({{9}, {0}}, gpu); }));
  CHECK(after([&](Placer& placer, Placement) { placer.release({{0}, {}}, gpu); }));
  CHECK(after([&](Placer& placer, Placement held) { placer.release(held, request(2, 1)); }));
  CHECK(after([&](Placer& placer, Placement) { placer.add_node({0}, node(1)); }));
}

namespace {

// All promises, counted independently: fails as soon as something is promised twice.
struct Ledger {
  std::map<std::uint32_t, NodeResources> nodes;
  std::vector<std::pair<Placement, ResourceRequest>> held;

  void check() const {
    std::map<std::uint32_t, std::int64_t> cpus;
    std::map<std::uint32_t, std::int64_t> memory;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> gpus;
    for (const auto& [placement, wanted] : held) {
      const std::uint32_t agent = placement.agent.value;
      cpus[agent] += wanted.cpu_units;
      memory[agent] += wanted.memory_bytes;
      // The units of the whole request, spread over the GPUs named.
      for (std::uint32_t gpu : placement.gpus) {
        gpus[{agent, gpu}] += wanted.gpu_units / std::ssize(placement.gpus);
      }
    }
    for (const auto& [agent, units] : cpus) REQUIRE(units <= nodes.at(agent).cpu_units);
    for (const auto& [agent, bytes] : memory) REQUIRE(bytes <= nodes.at(agent).memory_bytes);
    for (const auto& [gpu, units] : gpus) {
      REQUIRE(gpu.second < nodes.at(gpu.first).gpus.size());
      REQUIRE(units <= kUnit);
    }
  }

  void check_whole_gpus_are_alone() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> users;
    for (const auto& [placement, wanted] : held) {
      for (std::uint32_t gpu : placement.gpus) ++users[{placement.agent.value, gpu}];
    }
    for (const auto& [placement, wanted] : held) {
      if (wanted.gpu_units < kUnit * wanted.ranks) continue;
      for (std::uint32_t gpu : placement.gpus) {
        const int others = users[{placement.agent.value, gpu}] - 1;
        REQUIRE(others == 0);
      }
    }
  }
};

}  // namespace

TEST_CASE("no sequence of requests and releases ever promises anything twice") {
  const ResourceRequest wishes[] = {request(1),
                                    request(0.1),
                                    request(3, 0, 2),
                                    request(1, 0.3333),
                                    request(1, 0.25),
                                    request(2, 0.7),
                                    request(1, 1),
                                    request(2, 2),
                                    request(4, 4, 2),
                                    request(2, 1.5, 3),
                                    request(2, 0.8, 2),
                                    request(8, 8, 8),
                                    request(1, 0, 1, kGiB),
                                    request(1, 1, 1, 30 * kGiB)};
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "placement_test", 0);
    Ledger ledger;
    Placer placer;
    Placer twin;
    for (std::uint32_t agent = 0; agent < static_cast<std::uint32_t>(random.integer(1, 5));
         ++agent) {
      ledger.nodes[agent] = node(static_cast<double>(random.integer(1, 17)),
                                 static_cast<int>(random.integer(0, 9)), 32 * kGiB);
    }
    for (const auto& [agent, resources] : ledger.nodes) {
      for (Placer* each : {&placer, &twin}) {
        each->add_node({agent}, resources);
        each->open_node({agent});
      }
    }
    for (int i = 0; i < 400; ++i) {
      if (!ledger.held.empty() && random.uniform() < 0.45) {
        const auto index = random.integer(0, std::ssize(ledger.held));
        const auto [placement, wanted] = ledger.held[static_cast<std::size_t>(index)];
        placer.release(placement, wanted);
        twin.release(placement, wanted);
        ledger.held.erase(ledger.held.begin() + index);
      } else {
        const ResourceRequest& wanted = wishes[random.integer(0, std::ssize(wishes))];
        const auto placement = placer.place(wanted);
        const auto again = twin.place(wanted);
        REQUIRE(placement.has_value() == again.has_value());  // the same calls, the same answers
        if (!placement) continue;
        REQUIRE(placement->agent == again->agent);
        REQUIRE(placement->gpus == again->gpus);
        ledger.held.emplace_back(*placement, wanted);
      }
      ledger.check();
      ledger.check_whole_gpus_are_alone();
    }
    for (const auto& [placement, wanted] : ledger.held) placer.release(placement, wanted);
    CHECK(placer.cpu_units_used() == 0);
    CHECK(placer.gpu_units_used() == 0);
  }
}
