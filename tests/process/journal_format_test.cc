// Sweeps that another version of tune has begun: one of an older version is resumed with every
// result, one of a newer version is left alone.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/journal_format.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/platform/redis_store.h"
#include "core/refusal.h"
#include "platform/redis_servers.h"
#include "process/outcome.h"
#include "process/sweep.h"
#include "tune/results/experiment_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// tests/data/journals/README.md says how they were made.
void unpack_sweep(const Sandbox& box, const std::string& name) {
  fs::create_directory(box.path() / "results");
  const Finished unpacked =
      box.run({"tar", "xzf", TUNE_SOURCE_DIR "/tests/data/journals/" + name + ".tgz", "-C",
               (box.path() / "results").string()});
  REQUIRE(unpacked.code == 0);
  const std::string file = "results/" + name + "/experiment.json";
  std::string spec = box.read(file);
  const std::string moved = "/tmp/old-sweeps/libteller.so";
  const std::size_t plugin = spec.find(moved);
  REQUIRE(plugin != std::string::npos);
  box.write(file, spec.replace(plugin, moved.size(), TUNE_TELLER_PLUGIN));
  // They name a driver of another machine, for whose sign of life a resume waits.
  for (const char* lock : {"/lock", "/store/lock"}) {
    fs::remove(box.path() / ("results/" + name + lock));
  }
}

// The results in a trial's folder: by iteration, what the trainable counted.
std::map<std::size_t, std::size_t> results_in(const Sandbox& box, const fs::path& trial) {
  std::map<std::size_t, std::size_t> results;
  const std::string file = fs::relative(trial / "result.json", box.path());
  for (const std::string& line : lines_of(box.read(file))) {
    const Value result = parse_json(line, file);
    const auto iteration = result.get<std::size_t>("training_iteration");
    CHECK_MESSAGE(!results.contains(iteration), file << " has result " << iteration << " twice");
    results[iteration] = result.get<std::size_t>("count");
  }
  return results;
}

using Resume = std::function<Finished(const Sandbox&, const std::string& folder)>;

Finished resume_quietly(const Sandbox& box, const std::string& folder) {
  return box.tune({"resume", folder, "--quiet"});
}

void check_resumes(const Sandbox& box, const std::string& name, std::size_t trials,
                   std::size_t lines, const Resume& resume = resume_quietly) {
  unpack_sweep(box, name);
  const std::string folder = "results/" + name;
  std::map<fs::path, std::map<std::size_t, std::size_t>> before;
  std::size_t found = 0;
  for (const fs::path& trial : trial_folders(box, folder)) {
    found += (before[trial] = results_in(box, trial)).size();
  }
  CHECK(found == lines);  // the test's own data
  const Finished resumed = resume(box, folder);
  INFO(resumed.err);
  CHECK(resumed.code == 1);  // trials that failed, and no other error
  CHECK(trial_folders(box, folder).size() == trials);
  for (const auto& [trial, results] : before) {
    CAPTURE(trial);
    const auto after = results_in(box, trial);
    for (const auto& [iteration, count] : results) {
      CHECK(count == iteration);
      CHECK_MESSAGE(after.contains(iteration), "result " << iteration << " is gone");
    }
    for (const auto& [iteration, count] : after) CHECK(count == iteration);
    CHECK((after.empty() || after.rbegin()->first == after.size()));
  }
  const std::string table = box.read(folder + "/results.csv");
  CHECK_FALSE(testing::has(table, "RUNNING"));
  CHECK_FALSE(testing::has(table, "PENDING"));
  CHECK_FALSE(testing::has(table, "PAUSED"));
  check_nothing_left(box, folder);
}

TEST_CASE(
    "a killed sweep of groups and failures that format 3 of the journal holds loses nothing") {
  check_resumes(Sandbox(), "groups", 12, 76);
}

TEST_CASE("a killed sweep of which format 3 of the journal has a snapshot loses nothing") {
  check_resumes(Sandbox(), "snapshot", 12, 380);
}

// Trial 4 ran on under a second driver, whose checkpoint has the name that the first one's would
// have.
TEST_CASE("a sweep whose checkpoints do not say the attempt, as of format 4, goes on from them") {
  Sandbox box;
  check_resumes(box, "attempts", 8, 114);
  const std::string trial = "results/attempts/4ce4f_00004/";
  CHECK_FALSE(fs::exists(box.path() / trial / "checkpoint_000018"));  // one is kept
  CHECK(fs::exists(box.path() / trial / "checkpoint_000024-a3"));
  std::vector<std::size_t> begun_after;
  for (const std::string& line : lines_of(box.read("results/attempts/events.jsonl"))) {
    const Value event = parse_json(line, "events.jsonl");
    if (event.get<std::string>("event") != "attempt_started") continue;
    if (event.get<std::string>("trial") != "4ce4f_00004") continue;
    begun_after.push_back(event.get<std::size_t>("after_iteration"));
  }
  CHECK(begun_after == std::vector<std::size_t>{0, 6, 18});
}

TEST_CASE(
    "a sweep of machines that ended with their driver, as of format 7, waits for none of them") {
  Sandbox box;
  check_resumes(box, "joined", 8, 70);
  const std::string events = box.read("results/joined/events.jsonl");
  const std::size_t second = events.find("\"epoch\":2}");
  REQUIRE(second != std::string::npos);
  CHECK_FALSE(testing::has(events, "\"keeps\""));
  std::size_t left = 0;
  for (std::size_t at = second; (at = events.find("node_left", at)) != events.npos; ++at) ++left;
  CHECK(left == 3);  // two that had joined, and the driver's own
}

TEST_CASE("orders that format 9 of the journal holds are still obeyed") {
  Sandbox box;
  check_resumes(box, "orders", 13, 69, [](const Sandbox& box, const std::string& folder) {
    Running driver = box.start_tune({"resume", folder});
    const std::string paused = folder + "/f4ed4_00000/result.json";
    const std::string before = box.read(paused);
    // All others end, and the sweep waits for the one that its user has paused.
    const auto all_others_end = [&] {
      const std::string events = box.read(folder + "/events.jsonl");
      const std::size_t second = events.find("\"epoch\":2");
      return second != events.npos && events.find("a user has paused: 0", second) != events.npos;
    };
    REQUIRE(Sandbox::eventually(all_others_end, std::chrono::seconds(60)));
    CHECK(box.read(paused) == before);
    const auto unpaused = [&] { return box.tune({"unpause", folder, "0"}).code == 0; };
    CHECK(Sandbox::eventually(unpaused, std::chrono::seconds(60)));  // a busy disk: again later
    return driver.wait();
  });
  const std::string folder = "results/orders/";
  const Value stopped =
      parse_json(lines_of(box.read(folder + "f4ed4_00002/result.json")).back(), "result.json");
  CHECK(stopped.get<std::size_t>("training_iteration") < 24);
  const Value added = parse_json(box.read(folder + "f4ed4_00005/params.json"), "params.json");
  CHECK(added.get<std::size_t>("bytes") == 30);
  CHECK_HAS(box.tune({"results", folder}).out, "f4ed4_00012");
}

TEST_CASE(
    "a killed sweep of groups over machines that format 10 of the journal holds loses nothing") {
  check_resumes(Sandbox(), "nodes", 8, 60, [](const Sandbox& box, const std::string& folder) {
    const std::string join_file = folder + "/nodes/join";
    fs::remove(box.path() / join_file);
    Running driver = box.start_tune({"resume", folder});
    REQUIRE(Sandbox::eventually([&] { return fs::exists(box.path() / join_file); },
                                std::chrono::seconds(60)));
    const Running agent = box.start_tune({"agent", "--join-file", join_file, "--cpus", "1"});
    return driver.wait();
  });
}

TEST_CASE("proposals that format 11 of the journal holds stand, and questions are asked again") {
  Sandbox box;
  check_resumes(box, "asked", 24, 130);
  // What was proposed before is trained, and no trial is proposed twice.
  std::map<std::string, std::size_t> proposed;
  for (const std::string& line : lines_of(box.read("results/asked/events.jsonl"))) {
    const Value event = parse_json(line, "events.jsonl");
    if (event.get<std::string>("event") == "proposed") ++proposed[event.get<std::string>("trial")];
  }
  CHECK(proposed.size() >= 16);
  for (const auto& [trial, times] : proposed) {
    CAPTURE(trial);
    CHECK(times == 1);
  }
}

TEST_CASE("a trial that was stopped in format 12 of the journal is retried from its checkpoint") {
  Sandbox box;
  check_resumes(box, "stopped", 24, 141, [](const Sandbox& box, const std::string& folder) {
    Running driver = box.start_tune({"resume", folder});
    const auto obeyed = [&](const char* order, const char* trial) {
      return [&box, &folder, order, trial] {
        return box.tune({order, folder, trial}).code == 0;  // a busy disk: again later
      };
    };
    CHECK(Sandbox::eventually(obeyed("retry", "1"), std::chrono::seconds(60)));
    CHECK(Sandbox::eventually(obeyed("unpause", "2"), std::chrono::seconds(60)));
    return driver.wait();
  });
  std::size_t after = 0;
  for (const std::string& line : lines_of(box.read("results/stopped/events.jsonl"))) {
    const Value event = parse_json(line, "events.jsonl");
    if (event.get<std::string>("event") != "attempt_started") continue;
    if (event.get<std::string>("trial") != "85b81_00001") continue;
    after = event.get<std::size_t>("after_iteration");
  }
  CHECK(after == 7);
}

// Every file below a folder with its content.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "lock") {
      contents[entry.path()] = read_file(entry.path());
    }
  }
  return contents;
}

TEST_CASE("a sweep that a newer tune has gone on with is refused, and nothing of it is changed") {
  const testing::PlainServer server;
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 15}",
                  .rest = "stop: {training_iteration: 20}\nstore: '" + server.address() + "'\n"}));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 5); }));
    run.signal(SIGKILL);
    run.wait();
  }
  CHECK(box.is_quiet());
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = read_record(box.path() / "results/s").value().prefix;
  RedisStore store(options);
  PackWriter newer;  // of which only the place of its format is known
  newer.array(5), newer.integer(0), newer.text("later"), newer.map(0);
  newer.integer(kJournalFormat + 1), newer.boolean(true);
  store.append({2, 0}, newer.bytes());
  const auto before = contents_of(box.path() / "results/s");
  for (const char* command : {"resume", "status"}) {
    CAPTURE(command);
    const Finished refused = box.tune({command, "results/s"});
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK_HAS(refused.err, "journal entry 2-0");
    CHECK_HAS(refused.err, "format " + std::to_string(kJournalFormat + 1));
    CHECK_HAS(refused.err, "reads up to " + std::to_string(kJournalFormat));
    CHECK_HAS(refused.err, "go on with the newer tune");
    CHECK_FALSE(testing::has(refused.err, "resume it with"));  // not by this one
    CHECK(contents_of(box.path() / "results/s") == before);
    CHECK(store.last() == EntryId{2, 0});  // no epoch was taken
  }
  check_nothing_left(box, "results/s");
}

TEST_CASE(
    "a sweep of machines that a newer tune has gone on with is refused before any is touched") {
  Sandbox box;
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 15}",
                                .rest = "stop: {training_iteration: 20}\nlisten: lo\n"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 5); }));
  run.signal(SIGINT);
  REQUIRE(run.wait().code == 128 + SIGINT);
  const std::string said = "\"journal_format\": ";
  std::string record = box.read("results/s/run.json");
  REQUIRE(testing::has(record, said + std::to_string(kJournalFormat)));
  record.replace(record.find(said) + said.size(), std::to_string(kJournalFormat).size(),
                 std::to_string(kJournalFormat + 1));
  box.write("results/s/run.json", record);
  // The newer build's own plugin.
  fs::remove_all(box.path() / "results/s/plugin");
  box.write("results/s/plugin/newer/libsynthetic.so", "newer");
  box.write("results/s/experiment.json.tmp-1", "of a driver that was killed");

  const auto before = contents_of(box.path() / "results/s");
  const Finished refused = box.tune({"resume", "results/s"});
  INFO(refused.err);
  CHECK(refused.code == 3);
  CHECK_HAS(refused.err, "resuming results/s: it was written by a newer tune");
  CHECK_HAS(refused.err, "format " + std::to_string(kJournalFormat + 1));
  CHECK_FALSE(testing::has(refused.err, "resume it with"));
  CHECK(contents_of(box.path() / "results/s") == before);
  CHECK(box.is_quiet());
}

}  // namespace
}  // namespace tune
