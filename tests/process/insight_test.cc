// Whole sweeps that are asked why: replayed, explained, learnt from, and gone on with.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

const char* const kLearning =
    "searcher: {gp: {start_up: 4, random_share: 0}}\n"
    "scheduler: {asha: {max_t: 4, grace_period: 1, reduction_factor: 2}}\n";

// The content of a folder: sizes and times of its files.
std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files_in(
    const fs::path& folder) {
  std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path()] = {entry.file_size(), entry.last_write_time()};
  }
  return files;
}

Value json_of(const Finished& finished) {
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return parse_json(finished.out, "what it printed");
}

// The first proposal's line of events.jsonl.
Value first_proposal(const Sandbox& box, const std::string& experiment) {
  for (const std::string& line : lines_of(box.read(experiment + "/events.jsonl"))) {
    Value event = parse_json(line, "a line of events.jsonl");
    if (event.get<std::string>("event") == "proposed") return event;
  }
  FAIL("nothing was proposed");
  return {};
}

TEST_CASE("a sweep of a searcher that learns is replayed, explained, and tells what matters") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 22, .rest = kLearning}));
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"}).code == 0);
  const auto before = files_in(box.path() / "results/s");

  const Finished replay = box.tune({"replay", "results/s"});
  INFO(replay.out << replay.err);
  CHECK(replay.code == 0);
  CHECK_HAS(replay.out, "the journal leads to the same decisions");
  const Value told = json_of(box.tune({"replay", "results/s", "--json"}));
  CHECK(told.get<bool>("same"));
  CHECK(told.at("from").is_null());
  CHECK(told.get<int>("launches") == 22);
  CHECK(told.get<int>("proposals") == 22);
  CHECK(told.get<int>("configurations") == 22);
  CHECK(told.get<int>("verdicts") >= 22);
  CHECK(told.get<int>("other_numbers") == 0);

  const Value why = json_of(box.tune({"explain", "results/s", "21", "--json"}));
  CHECK(why.get<std::string>("proposed/origin") == "model");
  CHECK(why.get<int>("proposed/results_known") >= 4);
  CHECK(why.contains("proposed/mean"));
  CHECK(why.at("neighbours").list().size() >= 3);
  const Value& first_step = why.at("steps").list().front();
  CHECK(first_step.get<int>("iteration") == 1);
  CHECK(first_step.get<int>("of") >= first_step.get<int>("rank"));
  CHECK_FALSE(why.get<std::string>("end").empty());
  CHECK_HAS(box.tune({"explain", "results/s", "0"}).out, "proposed: drawn by gp");

  const Finished importance = box.tune({"importance", "results/s"});
  INFO(importance.err);
  CHECK(importance.code == 0);
  CHECK_HAS(importance.out, "of 22 trials apart from all\n  lr  ");
  CHECK(files_in(box.path() / "results/s") == before);  // nothing was written

  // A verdict that the journal does not lead to.
  std::string events = box.read("results/s/events.jsonl");
  const std::size_t at = events.find("\"rank\":");
  REQUIRE(at != events.npos);
  events.insert(at + 7, "9");
  box.write("results/s/events.jsonl", events);
  const Finished other = box.tune({"replay", "results/s"});
  CHECK(other.code == 1);
  CHECK_HAS(other.out, "first difference: event ");
  CHECK_HAS(other.out, "events.jsonl, rung of trial ");
}

TEST_CASE("a sweep that runs, one that was killed and one that was resumed are replayed") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 200}",
                                .num_samples = 12,
                                .rest = kLearning}));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually(
        [&] { return box.read("results/s/events.jsonl").find("\"rung\"") != std::string::npos; }));
    CHECK(json_of(box.tune({"replay", "results/s", "--json"})).get<bool>("same"));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  CHECK(json_of(box.tune({"replay", "results/s", "--json"})).get<bool>("same"));
  REQUIRE(box.tune({"resume", "results/s", "--quiet"}).code == 0);
  const Value told = json_of(box.tune({"replay", "results/s", "--json"}));
  CHECK(told.get<bool>("same"));
  CHECK(told.get<std::string>("through").starts_with("2-"));
  CHECK(told.get<int>("configurations") == 12);
}

TEST_CASE("a look right after a resume waits until the driver has told of its store") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}",
                                .rest = "stop: {training_iteration: 10000}\n"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
  const std::string record = box.read("results/s/run.json");
  const std::string store = parse_json(record, "run.json").get<std::string>("store");
  std::string before = record;
  before.replace(before.find(store), store.size(), store + "-of-the-driver-before");
  box.write("results/s/run.json", before);
  Running nodes = box.start_tune({"nodes", "results/s"});
  CHECK_FALSE(nodes.ends_within(std::chrono::milliseconds(1500)));
  box.write("results/s/run.json", record);
  const Finished seen = nodes.wait();
  INFO(seen.err);
  CHECK(seen.code == 0);
  CHECK_HAS(seen.out, "the driver's own");
  run.signal(SIGKILL);
  run.wait();
}

TEST_CASE("a warm start counts from the first proposal on, and outlives the earlier folder") {
  Sandbox box;
  box.write("first.yaml", yaml({.num_samples = 8, .rest = "stop: {training_iteration: 2}\n"}));
  REQUIRE(box.tune({"run", "first.yaml", "--name", "a", "--cpus", "2", "--quiet"}).code == 0);
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}",
                                .num_samples = 6,
                                .rest = kLearning}));
  const Finished checked =
      box.tune({"validate", "sweep.yaml", "--set", "warm_start=results/a", "--configs", "1"});
  INFO(checked.err);
  CHECK(checked.code == 0);
  CHECK_HAS(checked.err, "warm start: gp knows 8 trials of results/a");
  {
    Running run = box.start_tune(
        {"run", "sweep.yaml", "--name", "b", "--cpus", "2", "--warm-start", "results/a"});
    REQUIRE(Sandbox::eventually(
        [&] { return box.read("results/b/events.jsonl").find("\"rung\"") != std::string::npos; }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK_HAS(box.read("results/b/events.jsonl"), "warm start: gp knows 8 trials of results/a");
  CHECK(first_proposal(box, "results/b").get<std::string>("origin") == "model");
  CHECK(first_proposal(box, "results/b").get<int>("results_known") == 8);
  CHECK(box.is_quiet());
  fs::remove_all(box.path() / "results/a");
  const Finished resumed = box.tune({"resume", "results/b", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(box.of_trials("results/b", "params.json").size() == 6);
  CHECK(json_of(box.tune({"replay", "results/b", "--json"})).get<bool>("same"));
  const Finished gone = box.tune({"run", "sweep.yaml", "--name", "c", "--warm-start", "results/a"});
  CHECK(gone.code == 2);
  CHECK_HAS(gone.err, "--warm-start: warm_start/0: results/a holds no experiment");
  CHECK_FALSE(fs::exists(box.path() / "results/c"));
}

TEST_CASE("a sweep that is over goes on with more samples, and its searcher with what it knows") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.num_samples = 6, .rest = kLearning}));
  REQUIRE(box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"}).code == 0);
  const Finished fewer = box.tune({"resume", "results/s", "--num-samples", "6"});
  CHECK(fewer.code == 2);
  CHECK_HAS(fewer.err, "--num-samples 6: the experiment has num_samples 6 already: give more");
  const Finished endless = box.tune({"resume", "results/s", "--num-samples", "-1"});
  CHECK(endless.code == 2);
  CHECK_HAS(endless.err, "nothing would end it");
  const Finished more = box.tune({"resume", "results/s", "--num-samples", "9", "--quiet"});
  INFO(more.err);
  CHECK(more.code == 0);
  CHECK(box.of_trials("results/s", "params.json").size() == 9);
  const Value why = json_of(box.tune({"explain", "results/s", "8", "--json"}));
  CHECK(why.get<std::string>("proposed/origin") == "model");
  CHECK(why.get<int>("proposed/results_known") >= 6);
  CHECK(json_of(box.tune({"replay", "results/s", "--json"})).get<bool>("same"));
  // The given values count from now on.
  CHECK_HAS(box.tune({"resume", "results/s"}).err, "is finished, nothing to resume");
}

TEST_CASE("sweeps of older versions are replayed, with the lines of events that they have") {
  for (const char* name : {"attempts", "groups", "snapshot"}) {
    CAPTURE(name);
    Sandbox box;
    const std::string archive =
        std::string(TUNE_SOURCE_DIR "/tests/data/journals/") + name + ".tgz";
    REQUIRE(box.run({"tar", "xzf", archive}).code == 0);
    const Value told = json_of(box.tune({"replay", name, "--json"}));
    CHECK(told.get<bool>("same"));
    CHECK(told.get<int>("launches") > 0);
    CHECK(told.get<int>("waits") > 0);
    const bool is_cut = std::string(name) == "snapshot";
    CHECK(told.at("from").is_null() == !is_cut);
    CHECK(told.contains("remark") == is_cut);  // where its events were at the snapshot
    CHECK((told.get<int>("lines") > 0) == (std::string(name) == "attempts"));
  }
}

TEST_CASE("replay refuses folders that it cannot understand") {
  Sandbox box;
  CHECK(box.tune({"replay", "nowhere"}).code == 2);
  fs::create_directories(box.path() / "empty");
  CHECK(box.tune({"replay", "empty"}).code == 2);
}

}  // namespace
}  // namespace tune
