// Trials of two ranks that are stopped, paused, killed and resumed while they train one model.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cluster/hosts.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sandbox.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

using Hashes = std::map<int, std::string>;  // by iteration

struct Weights {
  Hashes hashes;
  std::vector<int> loads;  // of which iterations
};

std::vector<std::string> command(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {TUNE_TWINS, "--quiet"});
  return more;
}

// The notes of a trial's ranks. All notes of one iteration must be the same, on both ranks, in
// every attempt, after a step and after a load.
Weights weights_of(const Sandbox& box, const fs::path& trial, std::size_t ranks = 2) {
  Weights weights;
  std::vector<std::vector<int>> loads(ranks);
  std::vector<std::set<int>> steps(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::string file = "hashes-" + std::to_string(rank);
    for (const std::string& line :
         lines_of(box.read("results/s/" + trial.filename().string() + "/" + file))) {
      std::istringstream in(line);
      std::string what, hash;
      int iteration = 0;
      in >> what >> iteration >> hash;
      const auto [known, is_new] = weights.hashes.emplace(iteration, hash);
      CAPTURE(file);
      CAPTURE(line);
      CHECK(known->second == hash);
      if (what == "load") loads[rank].push_back(iteration);
      if (what == "step") steps[rank].insert(iteration);
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(loads[rank] == loads[0]);
    REQUIRE(!steps[rank].empty());
    CHECK(*steps[rank].rbegin() == *steps[0].rbegin());
  }
  weights.loads = loads[0];
  return weights;
}

std::vector<Weights> weights_of_all(const Sandbox& box) {
  std::vector<Weights> all;
  for (const fs::path& trial : trial_folders(box, "results/s")) {
    all.push_back(weights_of(box, trial));
  }
  return all;
}

// Two trials that nothing disturbs.
const std::vector<Weights>& undisturbed() {
  static const std::vector<Weights> weights = [] {
    Sandbox box;
    const Finished run = box.run(command());
    INFO(run.err);
    REQUIRE(run.code == 0);
    return weights_of_all(box);
  }();
  return weights;
}

void check_as_undisturbed(const Sandbox& box) {
  const std::vector<Weights> all = weights_of_all(box);
  REQUIRE(all.size() == undisturbed().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i].hashes == undisturbed()[i].hashes);
  }
}

bool some_were_loaded(const Sandbox& box) {
  return std::ranges::any_of(weights_of_all(box),
                             [](const Weights& one) { return !one.loads.empty(); });
}

std::set<std::string> different(const Hashes& hashes) {
  std::set<std::string> values;
  for (const auto& [iteration, hash] : hashes) values.insert(hash);
  return values;
}

TEST_CASE("two ranks have the same weights after every step, and learn") {
  REQUIRE(undisturbed().size() == 2);
  for (const Weights& weights : undisturbed()) {
    CHECK(weights.hashes.size() == 8);
    CHECK(different(weights.hashes).size() == 8);
    CHECK(weights.loads.empty());
  }
  CHECK(undisturbed()[0].hashes != undisturbed()[1].hashes);
}

TEST_CASE("asha stops groups: both ranks end at the same step with the same weights") {
  Sandbox box;
  const Finished run =
      box.run(command({"--set", "config/lr={grid_search: [0.02, 0.01, 0.001, 0.0001]}", "--set",
                       "scheduler/asha/max_t=8", "--set", "scheduler/asha/grace_period=2", "--set",
                       "scheduler/asha/reduction_factor=2"}));
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::vector<Weights> all = weights_of_all(box);
  REQUIRE(all.size() == 4);
  std::size_t stopped = 0;
  for (const Weights& weights : all) {
    if (weights.hashes.size() < 8) ++stopped;
  }
  CHECK(stopped >= 1);
  CHECK(stopped <= 3);
  CHECK(box.is_quiet());
}

TEST_CASE("groups that a scheduler pauses go on with the weights they had") {
  Sandbox box;
  box.set("TWINS_TAKE_TURNS", "1");
  const Finished run = box.run(command({"--cpus", "2"}));
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_as_undisturbed(box);
  for (const Weights& weights : weights_of_all(box)) {
    CHECK(weights.loads == std::vector<int>{2, 4, 6});
  }
}

TEST_CASE("groups that an interrupt pauses go on with the weights they had") {
  Sandbox box;
  const std::vector<std::string> slow{"--set", "config/step_ms=50"};
  Running run = box.start(command(slow));
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 6); }));
  run.signal(SIGINT);
  CHECK(run.wait().code == 128 + SIGINT);
  CHECK_HAS(box.read("results/s/results.csv"), "PAUSED");
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  check_as_undisturbed(box);
  CHECK(some_were_loaded(box));
}

TEST_CASE("a group one of whose ranks was killed goes on from its last checkpoint") {
  for (const char* rank : {"0", "1"}) {
    CAPTURE(rank);
    Sandbox box;
    const Finished run = box.run(command({"--set", std::string("config/kill_rank=") + rank, "--set",
                                          "checkpoint/frequency=2", "--set", "max_failures=1"}));
    INFO(run.err);
    REQUIRE(run.code == 0);
    check_as_undisturbed(box);
    for (const Weights& weights : weights_of_all(box)) CHECK(weights.loads == std::vector<int>{2});
  }
}

TEST_CASE("groups whose driver was killed go on from their last checkpoints") {
  Sandbox box;
  {
    Running run =
        box.start(command({"--set", "config/step_ms=50", "--set", "checkpoint/frequency=2"}));
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 10); }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  const Finished resumed = box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  REQUIRE(resumed.code == 0);
  check_as_undisturbed(box);
  CHECK(some_were_loaded(box));
}

TEST_CASE("a group over two nodes has the weights of one on one node, also when it lost a node") {
  Sandbox box;
  // Neither this node nor the one that joins holds both ranks.
  Running run = box.start(command({"--cpus", "1", "--set", "listen=lo", "--set", "lease_s=3", "--set",
                                   "config/step_ms=100", "--set", "checkpoint/frequency=2"}));
  const fs::path token = box.path() / "results/s/nodes/join";
  REQUIRE(Sandbox::eventually([&] { return fs::exists(token); }));
  box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
  Running lost = box.start_tune({"agent", "--cpus", "1"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 4); }));
  lost.signal(SIGKILL);
  Running second = box.start_tune({"agent", "--cpus", "1"});
  const Finished finished = run.wait(std::chrono::seconds(100));
  INFO(finished.err);
  CHECK(finished.code == 0);
  lost.wait();
  second.wait(std::chrono::seconds(20));
  check_as_undisturbed(box);
  CHECK(some_were_loaded(box));
  CHECK_FALSE(testing::has(box.read("results/s/results.csv"), "ERROR"));
}

// One trial of four ranks, on hosts of two CPUs each that see one folder.
struct FourRanks {
  static std::vector<std::string> four(std::vector<std::string> more) {
    const std::vector<std::string> all = {"--num-samples", "1",
                                          "--set", "config/lr=0.01",
                                          "--set", "resources_per_trial={cpu: 4, ranks: 4}",
                                          "--set", "checkpoint/frequency=2",
                                          "--set", "config/step_ms=100",
                                          "--set", "lease_s=3"};
    more.insert(more.begin(), all.begin(), all.end());
    return command(more);
  }
  FourRanks() : run(box.start(hosts.on(0, four({"--cpus", "2", "--set", "listen=eth0"})))) {
    const fs::path token = box.path() / "results/s/nodes/join";
    REQUIRE(Sandbox::eventually([&] { return fs::exists(token); }));
    box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
  }
  Running agent(int host) const {
    return box.start(hosts.on(host, {TUNE_BINARY_DIR "/bin/tune", "agent", "--cpus", "2"}));
  }
  void finish() {
    const Finished finished = run.wait(std::chrono::seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_FALSE(testing::has(box.read("results/s/events.jsonl"), "\"event\":\"failure\""));
  }
  fs::path trial() const { return trial_folders(box, "results/s").at(0); }
  int newest_checkpoint() const {  // its iteration
    const std::string before = "checkpoint_";
    int newest = 0;
    for (const auto& entry : fs::directory_iterator(trial())) {
      const std::string name = entry.path().filename();
      if (name.starts_with(before)) newest = std::max(newest, std::stoi(name.substr(before.size())));
    }
    return newest;
  }

  Hosts hosts{3};
  Sandbox box;
  Running run;
};

TEST_CASE("four ranks on two hosts have the weights of four on one") {
  if (Hosts::are_missing()) return;
  Sandbox one;
  one.set("TUNE_GROUP_SPEAKS", "gloo");  // whose sums of four are in an order of its own
  const Finished calm = one.run(FourRanks::four({}));
  INFO(calm.err);
  REQUIRE(calm.code == 0);
  FourRanks two;
  Running agent = two.agent(1);
  two.finish();
  CHECK(agent.wait(std::chrono::seconds(30)).code == 0);
  const Weights weights = weights_of(two.box, two.trial(), 4);
  CHECK(weights.hashes.size() == 8);
  CHECK(weights.hashes == weights_of(one, trial_folders(one, "results/s").at(0), 4).hashes);
}

TEST_CASE("a killed host ends its group on the other within five seconds, and it goes on elsewhere") {
  if (Hosts::are_missing()) return;
  FourRanks two;
  Running killed = two.agent(1);
  REQUIRE(Sandbox::eventually([&] { return has_results(two.box, "results/s", 4); }));
  const auto notes = [&](const char* file) { return two.box.read(two.trial() / file); };
  for (const char* rank : {"pid-0", "pid-1"}) REQUIRE(::kill(std::stoi(notes(rank)), 0) == 0);
  killed.signal(SIGKILL);
  CHECK(Sandbox::eventually(
      [&] {
        return ::kill(std::stoi(notes("pid-0")), 0) != 0 &&
               ::kill(std::stoi(notes("pid-1")), 0) != 0;
      },
      std::chrono::seconds(5)));
  const int stored = two.newest_checkpoint();
  Running other = two.agent(2);
  two.finish();
  killed.wait();
  CHECK(other.wait(std::chrono::seconds(30)).code == 0);
  // DDP's first step after a load sums in another order by Gloo: only ranks can be compared.
  CHECK_HAS(notes("hashes-0"), "load " + std::to_string(stored) + ' ');
  CHECK_HAS(notes("hashes-0"), "step 8 ");
  for (const char* file : {"hashes-1", "hashes-2", "hashes-3"}) {
    const std::string own = notes(file), first = notes("hashes-0");
    CHECK(own.substr(own.find("load ")) == first.substr(first.find("load ")));
  }
}

TEST_CASE("a rank that is alone before it forms the group is waited for beyond group_timeout_s") {
  for (const char* rank : {"0", "1"}) {
    CAPTURE(rank);
    Sandbox box;
    const Finished run = box.run(
        command({"--set", std::string("config/alone_rank=") + rank, "--set", "config/alone_ms=4000",
                 "--set", "config/lr=0.01", "--set", "group_timeout_s=1"}));
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(weights_of_all(box).size() == 1);
  }
}

TEST_CASE("a rank that is alone too long before it forms the group ends the trial and is named") {
  Sandbox box;
  const Finished run = box.run(
      command({"--set", "config/alone_rank=0", "--set", "config/alone_ms=60000", "--set",
               "config/lr=0.01", "--set", "group_timeout_s=1", "--set", "alone_timeout_s=2"}));
  CHECK(run.code != 0);
  CHECK(box.is_quiet());
  const auto trials = trial_folders(box, "results/s");
  REQUIRE(trials.size() == 1);
  CHECK_HAS(box.read("results/s/" + trials[0].filename().string() + "/error.txt"),
            "worked alone in setup for 2 s (alone_timeout_s), killed");
}

// The error of the only trial, in which rank 1 makes this mistake.
std::string error_of(const std::string& mistake) {
  Sandbox box;
  const Finished run =
      box.run(command({"--set", "config/lr=0.01", "--set", "config/mistake=" + mistake, "--set",
                       "group_timeout_s=1"}));
  CHECK(run.code != 0);
  CHECK(box.is_quiet());
  const auto trials = trial_folders(box, "results/s");
  REQUIRE(trials.size() == 1);
  return box.read("results/s/" + trials[0].filename().string() + "/error.txt");
}

TEST_CASE("models that differ between ranks end the trial with the parameter's name") {
  const std::string error = error_of("wider");
  CAPTURE(error);
  CHECK_HAS(error, "parameter 0.weight is Float [16, 8] on rank 0, Float [17, 8] on rank 1");
}

TEST_CASE("a rank that skips a collective ends the trial within group_timeout_s and is named") {
  const std::string error = error_of("skips");
  CAPTURE(error);
  CHECK_HAS(error, "all ranks must call the same collectives in the same order");
  CHECK_HAS(error, "; rank 1 waits for nothing");
  const std::string mark = "failed after ";
  REQUIRE(testing::has(error, mark));
  const double waited = std::stod(error.substr(error.find(mark) + mark.size()));
  CHECK(waited >= 0.9);
  CHECK(waited < 20);  // the time itself is 1 s, the default 60 s
}

}  // namespace
}  // namespace tune
