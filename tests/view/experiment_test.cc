#include "tune/view/experiment.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "core/json.h"
#include "core/platform/process.h"
#include "core/refusal.h"
#include "tune/view/api.h"
#include "tune/view/experiment_blobs.h"
#include "tune/view/experiment_json.h"
#include "tune/view/prometheus.h"
#include "tune/view/rungs_blob.h"
#include "view/viewed.h"

namespace tune::view {
namespace {

using testing::add_trial;
using testing::append_text;
using testing::begin_experiment;
using testing::event;
using testing::trial_name;
using testing::write_text;

namespace fs = std::filesystem;

TEST_CASE("an experiment is what its files tell") {
  Viewed viewed;
  add_trial(viewed.path, 0, R"({"lr":0.1,"act":"a"})",
            "{\"loss\":3}\n{\"loss\":1}\n{\"loss\":2}\n");
  add_trial(viewed.path, 1, R"({"lr":0.2,"act":{"n":4}})", "{\"loss\":0.5}\n");
  add_trial(viewed.path, 2, R"({"lr":0.3,"act":"a"})", "");
  write_text(viewed.path / "events.jsonl",
             event("attempt_started", 0) + event("trial_ended", 0, R"(,"status":"TERMINATED")") +
                 event("attempt_started", 1) + event("trial_ended", 1, R"(,"status":"ERROR")"));
  const Experiment& experiment = viewed.load();
  CHECK(experiment.trials().size() == 3);
  CHECK(experiment.head().searcher == "tpe");
  CHECK(experiment.head().log_paths == std::set<std::string>{"act/n", "lr"});
  CHECK(experiment.trials().row(0).status == TrialStatus::kTerminated);
  CHECK(experiment.trials().row(1).status == TrialStatus::kError);
  CHECK(experiment.trials().row(2).status == TrialStatus::kPending);
  CHECK(experiment.best_row(Experiment::By::kBest) == 1u);
  const Value meta = meta_of(experiment, "boot");
  CHECK(meta.at("state").string() == "finished");
  CHECK(meta.at("counts/TERMINATED").integer() == 1);
  CHECK(meta.at("results").integer() == 4);
  CHECK(meta.at("best/config/yaml").string() == "lr: 0.2\nact:\n  \"n\": 4\n");
  CHECK(meta.at("problems").list().empty());
}

TEST_CASE("a sweep that reports more than can be read at once is read in looks of some megabytes") {
  Viewed viewed("running");
  const std::string line = "{\"loss\":1,\"note\":\"" + std::string(1000, 'x') + "\"}\n";
  constexpr std::size_t kLines = 12000;
  for (std::uint32_t number : {0u, 1u}) add_trial(viewed.path, number, "{}", "");
  write_text(viewed.path / "events.jsonl",
             event("attempt_started", 0) + event("attempt_started", 1));
  Experiment& experiment = viewed.load();
  std::string many;
  for (std::size_t i = 0; i < kLines; ++i) many += line;
  many += "{\"loss\":-1}\n";
  for (std::uint32_t number : {0u, 1u})
    append_text(viewed.path / trial_name(number) / "result.json", many);
  // Their end, long before the last of their results is read.
  append_text(viewed.path / "events.jsonl", event("trial_ended", 0, R"(,"status":"TERMINATED")") +
                                                event("trial_ended", 1, R"(,"status":"ERROR")"));
  CHECK(viewed.poll());
  CHECK(experiment.is_behind());
  CHECK(experiment.trials().results() < kLines);
  int looks = 1;
  for (; experiment.is_behind() && looks < 20; ++looks) CHECK(viewed.poll());
  CHECK(looks >= 3);  // 24 MB
  CHECK(looks <= 5);
  CHECK(experiment.trials().results() == 2 * (kLines + 1));
  for (std::size_t row : {0u, 1u}) CHECK(experiment.value_of(row, Experiment::By::kLast) == -1);
  CHECK_FALSE(viewed.poll());
}

TEST_CASE("columns hold what was asked for, and after a change the rows that it touched") {
  Viewed viewed("running");
  add_trial(viewed.path, 0, R"({"lr":0.1,"act":"a"})", "{\"loss\":3}\n");
  add_trial(viewed.path, 1, R"({"lr":0.2,"act":"b"})", "{\"loss\":5}\n");
  write_text(viewed.path / "events.jsonl",
             event("attempt_started", 0) + event("attempt_started", 1));
  const Experiment& experiment = viewed.load();
  const std::string all = columns_blob(experiment, "number,p0,p1,m0l,m0n,nonsense,p99,m7x,m,p,", 0);
  CHECK(header_in(all).at("columns").list().size() == 5);
  CHECK(column<double>(all, "p0") == std::vector<double>{0.1, 0.2});
  CHECK(column<std::uint32_t>(all, "p1") == std::vector<std::uint32_t>{0, 1});
  const auto since = header_in(all).get<std::uint64_t>("change");

  CHECK_FALSE(viewed.poll());
  append_text(viewed.path / trial_name(1) / "result.json", "{\"loss\":4}\n{\"loss\":9");
  CHECK(viewed.poll());
  const std::string changed = columns_blob(experiment, "number,m0l,m0n", since);
  CHECK(column<std::uint32_t>(changed, "rows") == std::vector<std::uint32_t>{1});
  CHECK(column<double>(changed, "m0l") == std::vector<double>{4});
  CHECK(column<std::uint32_t>(columns_blob(experiment, "number", experiment.change()), "rows")
            .empty());
}

TEST_CASE("trials that come later are seen by their event, or by their folder") {
  Viewed viewed("running");
  CHECK(state_of(viewed.path) == "killed");  // no process holds the lock
  const FileDescriptor lock(
      open((viewed.path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(flock(lock.get(), LOCK_EX) == 0);  // as its driver does
  write_text(viewed.path / "events.jsonl", "");
  const Experiment& experiment = viewed.load();
  CHECK(experiment.is_live());
  add_trial(viewed.path, 0, R"({"lr":0.1})", "");
  CHECK(viewed.poll());
  CHECK(experiment.trials().size() == 1);
  add_trial(viewed.path, 7, R"({"lr":0.2})", "{\"loss\":4}\n");
  append_text(viewed.path / "events.jsonl", event("attempt_started", 7));
  CHECK(viewed.poll());
  REQUIRE(experiment.trials().size() == 2);
  CHECK(experiment.trials().row(1).number == 7);
  CHECK(experiment.trials().row(1).status == TrialStatus::kRunning);
  CHECK(experiment.value_of(1, Experiment::By::kLast) == 4);
  CHECK_FALSE(viewed.poll());
}

TEST_CASE("a resume cuts files and goes on: what was cut counts no more") {
  Viewed viewed;
  add_trial(viewed.path, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":1}\n");
  write_text(viewed.path / "events.jsonl", event("attempt_started", 0) + event("attempt_ended", 0));
  const Experiment& experiment = viewed.load();
  CHECK(experiment.best_row(Experiment::By::kBest) == 0u);
  write_text(viewed.path / trial_name(0) / "result.json",
             "{\"loss\":3}\n{\"loss\":7}\n{\"loss\":8}\n");
  write_text(viewed.path / "events.jsonl",
             event("driver_started", 0) + event("attempt_started", 0));
  CHECK(viewed.poll());
  CHECK(experiment.trials().row(0).status == TrialStatus::kRunning);
  CHECK(experiment.value_of(0, Experiment::By::kBest) == 3);
  CHECK(experiment.trials().row(0).iterations == 3);
}

TEST_CASE("files cut in the middle: what is whole counts, what is broken is told") {
  Viewed viewed;
  add_trial(viewed.path, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":1,\"a");
  add_trial(viewed.path, 1, R"({"lr":0.)", "{\"loss\":2}\n");
  add_trial(viewed.path, 2, R"({"lr":0.2})", "{\"loss\":2}\n{\"lo\n{\"loss\":1}\n");
  write_text(viewed.path / "events.jsonl", event("attempt_started", 0) + "{\"time\":1,\"ev\n" +
                                               event("attempt_started", 1) + "{\"event\":");
  const Experiment& experiment = viewed.load();
  CHECK(experiment.trials().row(0).iterations == 1);
  CHECK(experiment.trials().row(1).iterations == 1);
  CHECK(experiment.trials().row(2).iterations == 1);  // up to the broken line
  CHECK(experiment.trials().row(1).status == TrialStatus::kRunning);
  std::string problems;
  for (const std::string& one : experiment.problems()) problems += one + "\n";
  CHECK_HAS(problems, "params.json");
  CHECK_HAS(problems, "result.json of 2f1e0_00002");
  CHECK_HAS(problems, "events.jsonl");
}

TEST_CASE("a trial whose files cannot be read is told, and read when they can be") {
  for (const std::string state : {"running", "finished"}) {
    CAPTURE(state);
    Viewed viewed(state);
    add_trial(viewed.path, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":1}\n");
    add_trial(viewed.path, 1, R"({"lr":0.2})", "{\"loss\":5}\n");
    write_text(viewed.path / "events.jsonl",
               event("attempt_started", 0) + event("trial_ended", 0, R"(,"status":"TERMINATED")"));
    const fs::path folder = viewed.path / trial_name(0);
    for (const char* name : {"params.json", "result.json"}) {
      fs::rename(folder / name, folder / ("aside_" + std::string(name)));
      fs::create_symlink(name, folder / name);  // to itself: opening it fails
    }
    const Experiment& experiment = viewed.load();
    CHECK(experiment.trials().row(0).iterations == 0);
    CHECK(experiment.trials().row(1).iterations == 1);
    CHECK(experiment.problems().size() == 2);
    viewed.poll();  // in vain
    for (const char* name : {"params.json", "result.json"}) {
      fs::rename(folder / ("aside_" + std::string(name)), folder / name);
    }
    viewed.now += std::chrono::minutes(5);
    CHECK(viewed.poll());
    CHECK(experiment.trials().row(0).iterations == 2);
    CHECK(column<double>(columns_blob(experiment, "p0", 0), "p0") == std::vector<double>{0.1, 0.2});
    CHECK(experiment.problems().size() == 2);
    append_text(folder / "result.json", "{\"loss\":0.5}\n");
    CHECK_FALSE(viewed.poll());  // what is over is not looked at any more
  }
}

TEST_CASE("no trials, no results, no metric, values that are not finite") {
  Viewed viewed;
  Experiment& empty = viewed.load();
  CHECK(meta_of(empty, "b").at("best").is_null());
  for (const std::string& blob :
       {columns_blob(empty, "number,status", 0), attempts_blob(empty), rungs_blob(empty),
        curves_blob(empty, {.metric = 0, .best = 5, .sample = 5})}) {
    CHECK(header_in(blob).at("trials").integer() == 0);
  }
  add_trial(viewed.path, 0, "{}", "{\"loss\":null}\n{\"loss\":\"inf\"}\n{\"loss\":\"-inf\"}\n");
  add_trial(viewed.path, 1, "{\"lr\":null}", "");
  Experiment& experiment = viewed.load();
  CHECK(experiment.best_row(Experiment::By::kBest) == std::nullopt);
  const std::string columns = columns_blob(experiment, "m0l,m0n,p0", 0);
  CHECK(column<double>(columns, "m0l")[0] == -HUGE_VAL);
  CHECK(std::isnan(column<double>(columns, "m0n")[0]));
  const std::string results = results_blob(experiment, 0);
  CHECK(column<double>(results, "v0")[1] == HUGE_VAL);
  CHECK(column<std::uint32_t>(results_blob(experiment, 1), "iteration").empty());
}

TEST_CASE("curves: the best first, of metrics that are not held as well") {
  Viewed viewed;
  for (int i = 0; i < 4; ++i) {
    const std::string loss = std::to_string(5 - i);
    add_trial(viewed.path, i, "{}", "{\"loss\":9,\"acc\":" + loss + "}\n{\"loss\":" + loss + "}\n");
  }
  const Experiment& experiment = viewed.load();
  const std::string held = curves_blob(experiment, {.metric = 0, .best = 2, .sample = 0});
  CHECK(column<std::uint32_t>(held, "row") == std::vector<std::uint32_t>{3, 2});
  CHECK(column<std::uint32_t>(held, "end") == std::vector<std::uint32_t>{2, 4});
  CHECK(column<float>(held, "value") == std::vector<float>{9, 2, 9, 3});
  const std::string read = curves_blob(experiment, {.metric = 1, .best = 1, .sample = 2});
  CHECK(column<std::uint32_t>(read, "row") == std::vector<std::uint32_t>{3, 0, 2});
  CHECK(column<float>(read, "value") == std::vector<float>{2, 5, 3});
}

TEST_CASE("curves of several objectives: the best first by the one that is asked for") {
  Viewed viewed;
  std::string spec = testing::spec_text();
  const std::string metric = R"("mode": "min", "metric": "loss",)";
  spec.replace(spec.find(metric), metric.size(),
               R"("objectives": [{"metric": "loss", "mode": "min"}, {"metric": "acc"}],)");
  write_text(viewed.path / "experiment.json", spec);
  for (int i = 0; i < 4; ++i) {
    const std::string loss = std::to_string(5 - i);
    add_trial(viewed.path, i, "{}", "{\"loss\":" + loss + ",\"acc\":" + loss + "}\n");
  }
  const Experiment& experiment = viewed.load();
  const auto rows = [&](std::size_t asked) {
    return column<std::uint32_t>(curves_blob(experiment, {.metric = asked, .best = 2, .sample = 0}),
                                 "row");
  };
  CHECK(rows(0) == std::vector<std::uint32_t>{3, 2});  // the least loss
  CHECK(rows(1) == std::vector<std::uint32_t>{0, 1});  // the greatest acc
}

TEST_CASE("one trial: its reasons, checkpoints, output and error") {
  Viewed viewed;
  add_trial(viewed.path, 0, R"({"lr":0.1})", "{\"loss\":3}\n");
  write_text(viewed.path / "events.jsonl", event("attempt_started", 0) +
                                               event("attempt_started", 1) +
                                               event("verdict", 0, R"(,"reason":"worse <b>")"));
  fs::create_directories(viewed.path / trial_name(0) / "checkpoint_000001");
  write_text(viewed.path / trial_name(0) / "error.txt", "--- attempt 1\nboom\n");
  write_text(viewed.path / trial_name(0) / "stdout", "0123456789");
  write_text(viewed.path / trial_name(0) / "stdout.1", std::string("rank \xff one"));
  const Experiment& experiment = viewed.load();
  const Value trial = trial_of(experiment, 0);
  CHECK(trial.at("events").list().size() == 2);
  CHECK(trial.at("events").list()[1].at("reason").string() == "worse <b>");
  CHECK(trial.at("checkpoints").list().size() == 1);
  CHECK_HAS(trial.at("error").string(), "boom");
  CHECK(trial.at("ranks").integer() == 2);
  CHECK(log_of(experiment, 0, {}).at("text").string() == "0123456789");
  CHECK(log_of(experiment, 0, {.from = 8}).at("text").string() == "89");
  CHECK(log_of(experiment, 0, {.from = 10}).at("text").string().empty());
  CHECK(log_of(experiment, 0, {.from = 99}).at("text").string() == "0123456789");  // begun anew
  CHECK_HAS(to_json(log_of(experiment, 0, {.rank = 1})), "rank \xef\xbf\xbd one");
  CHECK_FALSE(log_of(experiment, 0, {.is_stderr = true}).at("is_there").boolean());
}

TEST_CASE("a log that is a link to another file is not followed") {
  Viewed viewed;
  add_trial(viewed.path, 0, "{}", "");
  write_text(viewed.folder.path() / "secret", "s3cret");
  fs::create_symlink(viewed.folder.path() / "secret", viewed.path / trial_name(0) / "stdout");
  CHECK_FALSE(log_of(viewed.load(), 0, {}).at("is_there").boolean());
}

TEST_CASE("a storage lists its experiments, and tells what it cannot read") {
  testing::TemporaryFolder folder;
  begin_experiment(folder.path() / "good");
  begin_experiment(folder.path() / "newer");
  write_text(folder.path() / "newer" / "experiment.json", testing::spec_text("loss", 99));
  write_text(folder.path() / "broken" / "experiment.json", "{\"version\": 1, \"na");
  write_text(folder.path() / "other" / "notes.txt", "no experiment");
  fs::create_directory_symlink("good", folder.path() / "latest");
  Storage storage(folder.path());
  Api api(storage, "boot");
  const std::string list = api.answer("/api/experiments", "").body;
  const Value all = parse_json(list, "list");
  CHECK(all.at("experiments").list().size() == 3);
  CHECK_HAS(list, "a newer tune made it");
  std::string key;
  for (const Value& one : all.at("experiments").list()) {
    const std::string path = "/api/x/" + one.at("key").string() + "/meta";
    const bool is_good = one.at("folder").string() == "good";
    CHECK(api.answer(path, "").status == (is_good ? 200 : 404));
    CHECK(one.at("problem").string().empty() == is_good);
    if (is_good) key = one.at("key").string();
  }
  CHECK(api.answer("/api/x/" + key + "/columns?c=number", "").status == 202);  // not read yet
  CHECK_FALSE(storage.load(kForever));
  const Answer columns = api.answer("/api/x/" + key + "/columns?c=number", "");
  CHECK(columns.status == 200);
  CHECK(api.answer("/api/x/" + key + "/columns?c=number", columns.etag).status == 304);
  for (const char* what :
       {"trial?n=0", "trial", "log?n=99999999999999999999", "results?n=-1", "nothing", ""}) {
    CHECK(api.answer("/api/x/" + key + "/" + what, "").status == 404);
  }
  CHECK(api.answer("/api/x/good/meta", "").status == 404);  // a key, never a folder
}

TEST_CASE("an experiment that nobody has asked for in an hour is let go, and read again") {
  testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "s";
  begin_experiment(path);
  add_trial(path, 0, R"({"lr":0.1})", "{\"loss\":3}\n");
  Storage storage(folder.path());
  Api api(storage, "boot");
  const std::string columns =
      "/api/x/" + storage.list(Storage::Clock::now()).front().key + "/columns?c=number,m0l&since=";
  CHECK(api.answer(columns + "0", "").status == 202);
  CHECK_FALSE(storage.load(kForever));
  const Answer before = api.answer(columns + "0", "");
  const auto seen = header_in(before.body).get<std::uint64_t>("change");
  CHECK(storage.opened().size() == 1);
  storage.poll(Storage::Clock::now() + std::chrono::hours(1));
  CHECK(storage.opened().empty());
  add_trial(path, 1, R"({"lr":0.2})", "{\"loss\":2}\n");
  // The browser wakes, with what it knew an hour ago.
  CHECK(api.answer(columns + std::to_string(seen), before.etag).status == 202);
  CHECK_FALSE(storage.load(kForever));
  const Answer after = api.answer(columns + std::to_string(seen), before.etag);
  REQUIRE(after.status == 200);
  CHECK(column<std::uint32_t>(after.body, "rows") == std::vector<std::uint32_t>{0, 1});
  CHECK(column<double>(after.body, "m0l") == std::vector<double>{3, 2});
}

TEST_CASE("folders that hold no experiment, and an experiment of a newer tune, are refused") {
  testing::TemporaryFolder folder;
  CHECK_HAS(testing::refusal([&] { Storage(folder.path() / "missing"); }),
            "/missing: No such file");
  CHECK_HAS(testing::refusal([&] { Storage{folder.path()}; }),
            "is not an experiment, and no folder in it is one");
  write_text(folder.path() / "file", "x");
  CHECK_HAS(testing::refusal([&] { Storage(folder.path() / "file"); }), "is not an experiment");
  write_text(folder.path() / "experiment.json", testing::spec_text("loss", 99));
  CHECK_HAS(testing::refusal([&] { Storage{folder.path()}; }), "a newer tune made it");
}

TEST_CASE("Prometheus's text: no trial is a label, and names cannot leave their quotes") {
  testing::TemporaryFolder folder;
  const fs::path path = folder.path() / "a\"b\\c";
  begin_experiment(path);
  add_trial(path, 0, "{}", "{\"loss\":3}\n{\"loss\":2}\n");
  Storage storage(folder.path());
  storage.open(storage.list(Storage::Clock::now()).front().key, Storage::Clock::now());
  storage.load(kForever);
  const std::string text = prometheus_text(storage);
  CHECK_HAS(text, "tune_reports_total{experiment=\"a\\\"b\\\\c\"} 2\n");
  CHECK_HAS(text, "tune_best{experiment=\"a\\\"b\\\\c\",metric=\"loss\"} 2\n");
  CHECK_HAS(text, "state=\"TERMINATED\"");
  CHECK(text.find(trial_name(0)) == std::string::npos);
}

}  // namespace
}  // namespace tune::view
