// Sweeps that keep their checkpoints in an object store.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "core/refusal.h"
#include "process/far_machines.h"
#include "s3_stand.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::S3Stand;

const std::string kInStore = "storage: s3://checkpoints/a prefix\n";

void use_store(Sandbox& box, const S3Stand& stand) {
  for (const auto& [name, value] : stand.environment()) box.set(name, value);
  box.set("AWS_CONFIG_FILE", "/dev/null");
  box.set("AWS_SHARED_CREDENTIALS_FILE", (box.path() / "credentials").string());
}

std::string table_without_store(const std::string& text) {
  Sandbox calm;
  calm.write("sweep.yaml", text);
  CHECK(calm.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"}).code == 0);
  return lasting_table(calm, "results/s");
}

// Every trial's newest checkpoint is in the store, complete; no checkpoint is in the folder, and
// nothing half there in either.
void check_in_store(const Sandbox& box, const S3Stand& stand, std::size_t trials) {
  CHECK(stand.keys("checkpoint_000008").size() == 2 * trials);  // a piece and a manifest
  CHECK(stand.keys("manifest.json").size() * 2 == stand.keys().size());
  CHECK(stand.keys(".proof").empty());
  for (const fs::path& trial : box.of_trials("results/s", "result.json")) {
    // A machine that is killed takes with it what it has not carried of its first attempts' output.
    CHECK_HAS(box.read(trial.parent_path() / "stdout"), "--- attempt ");
    for (const auto& entry : fs::directory_iterator(box.path() / trial.parent_path())) {
      const std::string name = entry.path().filename();
      CHECK_MESSAGE(!name.starts_with("."), entry.path());
      CHECK_MESSAGE(!name.starts_with("checkpoint"), entry.path());
    }
  }
}

TEST_CASE("checkpoints are in the store alone, and the best one is fetched when it is asked for") {
  S3Stand stand;
  Sandbox box;
  use_store(box, stand);
  const std::string text = joinable_sweep(4);
  box.write("sweep.yaml", text + kInStore);
  const Finished run = box.tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  check_complete(box, "results/s", 4, 8);
  check_in_store(box, stand, 4);
  for (const std::string& key : stand.keys()) CHECK(key.starts_with("a prefix/s-"));
  CHECK(lasting_table(box, "results/s") == table_without_store(text));
  CHECK_FALSE(testing::has(box.read("results/s/experiment.json"), stand.credentials.secret));

  // Another machine has the folder alone.
  fs::create_directories(box.path() / "moved");
  fs::rename(box.path() / "results/s", box.path() / "moved/s");
  const Finished best = box.tune({"best", "moved/s", "--checkpoint"});
  INFO(best.err);
  REQUIRE(best.code == 0);
  const fs::path folder = box.path() / lines_of(best.out).at(0);
  CHECK(fs::is_directory(folder));
  CHECK_FALSE(fs::is_empty(folder));
  stand.refuse(403, "ExpiredToken");
  CHECK(box.tune({"best", "moved/s"}).code == 0);
  fs::remove_all(folder);
  const Finished denied = box.tune({"best", "moved/s", "--checkpoint"});
  CHECK(denied.code == 3);
  CHECK_HAS(denied.err, "ExpiredToken");
  check_nothing_left(box, "moved/s");
}

TEST_CASE("a store that cannot be used is one clear error before there is a trial") {
  S3Stand stand;
  Sandbox box;
  use_store(box, stand);
  box.write("sweep.yaml", joinable_sweep(2) + kInStore);
  const auto refused = [&](const std::vector<std::string>& parts) {
    const Finished run = box.tune({"run", "sweep.yaml", "--name", "s"});
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    for (const std::string& part : parts) CHECK_HAS(run.err, part);
    CHECK_FALSE(testing::has(run.err, stand.credentials.secret));
    CHECK_FALSE(fs::exists(box.path() / "results/s"));
    CHECK(box.is_quiet());
  };
  stand.refuse(403, "ExpiredToken");
  refused({"keeping checkpoints in s3://checkpoints/a prefix/s-", "403 ExpiredToken",
           "~/.aws/credentials"});
  stand.refuse(0);
  box.write("sweep.yaml", joinable_sweep(2) + "storage: s3://no-such-bucket/x\n");
  refused({"404 NoSuchBucket"});
  box.write("sweep.yaml", joinable_sweep(2) + kInStore);
  box.set("AWS_ACCESS_KEY_ID", "");
  refused({"there are no credentials", "AWS_ACCESS_KEY_ID"});
  box.set("AWS_ACCESS_KEY_ID", stand.credentials.key_id);
  box.set("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
  refused({"at http://127.0.0.1:1"});
  for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
           {"storage: s3://b\n", "storage: 's3://b' names a bucket of 1 letters"},
           {"checkpoint_storage: /a/folder\n", "does not begin with s3://"},
           {"storage: s3://bucket\ncheckpoint_storage: s3://other\n", "names an object store"}}) {
    box.write("sweep.yaml", joinable_sweep(2) + line);
    const Finished wrong = box.tune({"validate", "sweep.yaml"});
    CHECK(wrong.code == 2);
    CHECK_HAS(wrong.err, why);
  }
}

TEST_CASE("a key that expires in the middle costs nothing once it is renewed") {
  S3Stand stand;
  Sandbox box;
  use_store(box, stand);
  const std::string text = joinable_sweep(4, 60);
  box.write("sweep.yaml", text + kInStore);
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  stand.refuse(403, "ExpiredToken");
  CHECK(Sandbox::eventually(
      [&] { return testing::has(box.read("results/s/events.jsonl"), "ExpiredToken"); }));
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 12); }));
  stand.refuse(0);
  const Finished finished = run.wait(seconds(90));
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err, "checkpoints wait on this machine, and trials train on");
  CHECK_HAS(finished.err, "the object store answers again");
  check_complete(box, "results/s", 4, 8);
  check_in_store(box, stand, 4);
  CHECK(lasting_table(box, "results/s") == table_without_store(text));
}

TEST_CASE("trials whose last checkpoints wait for a store that is away keep no place from others") {
  S3Stand stand;
  Sandbox box;
  use_store(box, stand);
  box.write("sweep.yaml", joinable_sweep(4, 20) + kInStore);
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "1"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  stand.refuse(503, "SlowDown");
  // All of 4 trials with 8 steps each, one after the other.
  CHECK(Sandbox::eventually([&] { return has_results(box, "results/s", 32); }, seconds(60)));
  CHECK_FALSE(testing::has(box.read("results/s/events.jsonl"), "\"trial_ended\""));
  stand.refuse(0);
  const Finished finished = run.wait(seconds(90));
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 8);
  check_in_store(box, stand, 4);
}

TEST_CASE("a driver that is killed goes on from the store, in a folder that was moved") {
  S3Stand stand;
  Sandbox box;
  use_store(box, stand);
  const std::string text = joinable_sweep(4, 60);
  box.write("sweep.yaml", text + kInStore);
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2"});
  REQUIRE(Sandbox::eventually([&] { return stand.keys("manifest.json").size() >= 2; }));
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 10); }));
  run.signal(SIGKILL);
  run.wait();
  REQUIRE(box.is_quiet());
  // Leftovers of an upload that was cut off.
  const std::string trial = stand.keys("manifest.json").at(0);
  const std::string cut = trial.substr(0, trial.find("/checkpoint_")) + "/checkpoint_000099/part";
  stand.put(cut, "x");
  fs::rename(box.path() / "results", box.path() / "elsewhere");
  fs::create_directories(box.path() / "results");
  fs::rename(box.path() / "elsewhere/s", box.path() / "results/s");
  const Finished resumed = box.tune({"resume", "results/s"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK_HAS(box.read("results/s/events.jsonl"), "\"after_iteration\":");
  CHECK(stand.keys(cut).empty());
  check_complete(box, "results/s", 4, 8);
  check_in_store(box, stand, 4);
  CHECK(lasting_table(box, "results/s") == table_without_store(text));
}

// ---- Machines that see nothing of each other's files --------------------------------------------

TEST_CASE("machines without the folder restore from the store what a killed one has stored") {
  if (!has_mounts()) return;
  S3Stand stand;
  const std::string text = joinable_sweep(8, 60, "lease_s: 3\n");
  FarMachines sweep(text + kInStore, "1", [&](Sandbox& box) { use_store(box, stand); });
  auto first = sweep.far("a");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*first); }));
  auto second = sweep.far("b");
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(*second); }));
  CHECK(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 20); }));
  first->signal(SIGKILL);
  const Finished finished = sweep.finish();
  INFO(finished.err);
  CHECK_FALSE(testing::has(finished.err, "ERROR"));
  CHECK(second->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 8, 8);
  check_in_store(sweep.box, stand, 8);
  CHECK(fs::is_empty(sweep.box.path() / "b"));  // what an agent has written goes with it
  CHECK(lasting_table(sweep.box, "results/s") == table_without_store(text));
}

// As stores do for requests that are more than 15 minutes off.
std::optional<S3Stand::Answer> refuse_other_times(const S3Stand::Asked& asked) {
  std::tm told{};
  const std::time_t now = std::time(nullptr);
  ::strptime(asked.headers.at("x-amz-date").c_str(), "%Y%m%dT%H%M%SZ", &told);
  if (std::abs(std::difftime(::timegm(&told), now)) < 900) return std::nullopt;
  char text[32] = {};
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &utc));
  return S3Stand::Answer{403,
                         "<Error><Code>RequestTimeTooSkewed</Code><Message>it is too "
                         "far off</Message><ServerTime>" +
                             std::string(text) + "</ServerTime></Error>"};
}

TEST_CASE("a machine whose clock the store refuses is out with both times, and the others go on") {
  S3Stand stand;
  stand.answer_by(refuse_other_times);
  Joinable sweep(joinable_sweep(4, 60) + kInStore, "1",
                 [&](Sandbox& box) { use_store(box, stand); });
  sweep.box.set("LD_PRELOAD", TUNE_BINARY_DIR "/tests/libother_clock.so");
  sweep.box.set("CLOCK_SHIFT_S", "25200");
  auto agent = sweep.agent();
  sweep.box.set("LD_PRELOAD", "");
  const Finished out = agent->wait(seconds(40));
  CHECK(out.code != 0);
  CHECK_HAS(out.err, "RequestTimeTooSkewed: it is too far off; this machine's clock says 2");
  CHECK_HAS(out.err, " UTC: set the clock of this machine");
  CHECK_FALSE(testing::has(out.err, "credentials"));
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "set the clock of this machine");
  check_complete(sweep.box, "results/s", 4, 8);
  check_in_store(sweep.box, stand, 4);
}

TEST_CASE("a machine whose key is refused is out with a notice, and the others go on") {
  S3Stand stand;
  Joinable sweep(joinable_sweep(4, 60) + kInStore, "1",
                 [&](Sandbox& box) { use_store(box, stand); });
  sweep.box.set("AWS_ACCESS_KEY_ID", "AKIDOTHER");
  auto agent = sweep.agent();
  const Finished out = agent->wait(seconds(40));
  CHECK(out.code != 0);
  CHECK_HAS(out.err, "it cannot use the experiment's object store");
  const Finished finished = sweep.finish();
  CHECK_HAS(finished.err, "InvalidAccessKeyId");
  check_complete(sweep.box, "results/s", 4, 8);
  check_in_store(sweep.box, stand, 4);
}

}  // namespace
}  // namespace tune
