// Groups of ranks over machines that do not see the experiment's folder, or keep checkpoints in an
// object store.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>

#include "core/refusal.h"
#include "process/far_machines.h"
#include "s3_stand.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::S3Stand;
using Names = std::set<std::string>;

const Names kAllShards = {"same", "shards/rank-0", "shards/rank-1", "shards/rank-2",
                          "shards/rank-3"};

// One trial of 8 steps with 4 ranks, which goes on from the files of all of them alone.
std::string sharded_sweep(const std::string& config, const std::string& rest = "") {
  return yaml({.trainable = "sharded",
               .config = config,
               .num_samples = 1,
               .rest = "stop: {training_iteration: 8}\ncheckpoint: {frequency: 1, keep: 2}\n"
                       "resources_per_trial: {cpu: 4, ranks: 4}\nlease_s: 3\n" +
                       rest,
               .metric = "count",
               .plugin = TUNE_UNEVEN_GROUP_PLUGIN});
}

struct FarGroup {
  explicit FarGroup(const std::string& text, const std::string& cpus = "1",
                    const S3Stand* stand = nullptr) {
    if (stand != nullptr) {
      for (const auto& [name, value] : stand->environment()) box.set(name, value);
      box.set("AWS_CONFIG_FILE", "/dev/null");
      box.set("AWS_SHARED_CREDENTIALS_FILE", (box.path() / "credentials").string());
    }
    box.write("sweep.yaml", text);
    run.reset(new Running(
        box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", cpus, "--listen", "lo"})));
    REQUIRE(Sandbox::eventually([&] { return fs::exists(box.path() / "results/s/nodes/join"); }));
    box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
  }
  Finished finish() {
    Finished finished = run->wait(seconds(100));
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_FALSE(testing::has(finished.err, "ERROR"));
    return finished;
  }
  fs::path trial() const {
    return (box.path() / box.of_trials("results/s", "result.json").at(0)).parent_path();
  }
  std::string events() const { return box.read("results/s/events.jsonl"); }

  Sandbox box;
  std::unique_ptr<Running> run;
};

Names shards_in(const fs::path& folder) {
  Names found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.insert(entry.path().lexically_relative(folder).string());
  }
  return found;
}

// The trial's folder has whole checkpoints, with the files of all ranks, their output, and nothing
// else that the ranks of far machines have written.
void check_folder(const FarGroup& group) {
  std::size_t whole = 0;
  for (const auto& entry : fs::directory_iterator(group.trial())) {
    const std::string name = entry.path().filename();
    CHECK_MESSAGE(!name.starts_with("."), entry.path());
    if (!name.starts_with("checkpoint_")) continue;
    ++whole;
    CHECK(shards_in(entry.path()) == kAllShards);
    CHECK(read_file(entry.path() / "shards/rank-3") == read_file(entry.path() / "shards/rank-0"));
  }
  CHECK(whole == 2);
  for (const char* name : {"stdout", "stdout.1", "stdout.2", "stdout.3"}) {
    CHECK_HAS(read_file(group.trial() / name), "begins at 0");
  }
}

TEST_CASE("a group over machines without the folder goes on from what a killed one has stored") {
  if (!has_mounts()) return;
  FarGroup group(sharded_sweep("{step_ms: 200}"));
  auto killed = far_agent(group.box, "a", 2);
  auto stays = far_agent(group.box, "b", 2);
  // On a busy machine a checkpoint may be overtaken by the next one on its way.
  const auto is_one_stored = [&] {
    for (const auto& entry : fs::directory_iterator(group.trial())) {
      if (entry.path().filename().string().starts_with("checkpoint_")) return true;
    }
    return false;
  };
  REQUIRE(Sandbox::eventually(
      [&] { return has_results(group.box, "results/s", 3) && is_one_stored(); }));
  killed->signal(SIGKILL);
  auto comes = far_agent(group.box, "c", 2);
  group.finish();
  killed->wait();
  CHECK(stays->wait(seconds(20)).code == 0);
  CHECK(comes->wait(seconds(20)).code == 0);
  check_complete(group.box, "results/s", 1, 8);
  check_folder(group);
  CHECK_HAS(group.events(), "is lost");
  CHECK_FALSE(testing::has(group.events(), "\"event\":\"failure\""));
  CHECK_FALSE(testing::has(read_file(group.trial() / "stdout"), "rank 0 begins at 8"));
  CHECK(lines_of(read_file(group.trial() / "stdout")).size() >= 3);  // it began again
  CHECK(fs::is_empty(group.box.path() / "b"));
  CHECK(fs::is_empty(group.box.path() / "c"));
  check_nothing_left(group.box, "results/s");
}

TEST_CASE("the driver's machine and one without its folder write one checkpoint") {
  if (!has_mounts()) return;
  FarGroup group(sharded_sweep("{step_ms: 20}"), "2");
  auto far = far_agent(group.box, "a", 2);
  group.finish();
  CHECK(far->wait(seconds(20)).code == 0);
  check_complete(group.box, "results/s", 1, 8);
  check_folder(group);
  check_nothing_left(group.box, "results/s");
}

TEST_CASE("machines that write one file differently are told so, by its name") {
  if (!has_mounts()) return;
  FarGroup group(sharded_sweep("{step_ms: 20, differs: true}"));
  auto first = far_agent(group.box, "a", 2);
  auto second = far_agent(group.box, "b", 2);
  const Finished finished = group.run->wait(seconds(100));
  CHECK(finished.code == 1);
  CHECK_HAS(finished.err, "has written another file model than a node before it");
  CHECK_HAS(finished.err, "let one rank write it");
  first->wait(seconds(20));
  second->wait(seconds(20));
  for (const auto& entry : fs::directory_iterator(group.trial())) {
    CHECK_FALSE(testing::has(entry.path().filename().string(), "checkpoint"));
  }
}

TEST_CASE("the last lines of a rank that fails on a far machine are told, whichever leads") {
  if (!has_mounts()) return;
  FarGroup group(sharded_sweep("{step_ms: 20, fails: 3}"));
  auto first = far_agent(group.box, "a", 2);
  auto second = far_agent(group.box, "b", 2);
  const Finished finished = group.run->wait(seconds(100));
  CHECK(finished.code == 1);
  CHECK_HAS(finished.err, "rank 3");
  CHECK_HAS(finished.err, "rank 3 has no data");
  CHECK_HAS(read_file(group.trial() / "error.txt"), "rank 3 has no data");
  CHECK(Sandbox::eventually(
      [&] { return testing::has(read_file(group.trial() / "stderr.3"), "rank 3 has no data"); }));
  first->wait(seconds(20));
  second->wait(seconds(20));
}

TEST_CASE("from an object store a group goes on, on one machine alone as well") {
  if (!has_mounts()) return;
  S3Stand stand;
  FarGroup group(sharded_sweep("{step_ms: 200}", "storage: s3://checkpoints/a prefix\n"), "1",
                 &stand);
  auto killed = far_agent(group.box, "a", 2);
  auto stays = far_agent(group.box, "b", 2);
  REQUIRE(Sandbox::eventually([&] {
    return !stand.keys("manifest.json").empty() && has_results(group.box, "results/s", 3);
  }));
  CHECK_FALSE(stand.keys("part-1.json").empty());
  killed->signal(SIGKILL);
  auto large = far_agent(group.box, "c", 4);
  group.finish();
  killed->wait();
  CHECK(stays->wait(seconds(20)).code == 0);
  CHECK(large->wait(seconds(20)).code == 0);
  check_complete(group.box, "results/s", 1, 8);
  CHECK_FALSE(testing::has(group.events(), "\"event\":\"failure\""));
  CHECK(stand.keys("manifest.json").size() == 2);
  for (const std::string& key : stand.keys()) {  // of whole checkpoints alone
    const std::string folder = key.substr(0, key.rfind('/'));
    CHECK(stand.keys(folder + "/manifest.json").size() == 1);
  }
  const Finished best = group.box.tune({"best", "results/s", "--checkpoint"});
  INFO(best.err);
  REQUIRE(best.code == 0);
  CHECK(shards_in(group.box.path() / lines_of(best.out).at(0)) == kAllShards);
}

TEST_CASE("groups over machines keep sharded checkpoints in an object store") {
  if (!has_mounts()) return;
  S3Stand stand;
  FarGroup group(sharded_sweep("{step_ms: 30}", "storage: s3://checkpoints/x\n"), "2", &stand);
  auto far = far_agent(group.box, "a", 2);
  group.finish();
  CHECK(far->wait(seconds(20)).code == 0);
  check_complete(group.box, "results/s", 1, 8);
  const Finished best = group.box.tune({"best", "results/s", "--checkpoint"});
  INFO(best.err);
  REQUIRE(best.code == 0);
  CHECK(shards_in(group.box.path() / lines_of(best.out).at(0)) == kAllShards);
  check_nothing_left(group.box, "results/s");
}

}  // namespace
}  // namespace tune
