// `tune export --mlflow` and its logger, against a server in memory. tests/export has MLflow
// itself.
#include "tune/export/mlflow.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "platform/one_answer.h"
#include "skip.h"
#include "tune/cli/shell.h"
#include "tune/export/fake_mlflow.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::add_trial;
using testing::append_text;
using testing::event;
using testing::FakeMlflow;
using testing::trial_name;
using testing::write_text;
using Texts = std::vector<std::string>;

constexpr const char* kBegun = "{\"time\":99.5,\"event\":\"driver_started\",\"epoch\":1}\n";
constexpr const char* kEnded =
    "{\"time\":300,\"event\":\"experiment_ended\",\"how\":\"finished\"}\n";

std::string metric_line(int iteration, const std::string& rest, int time = 0) {
  return R"({)" + rest + R"(,"training_iteration":)" + std::to_string(iteration) +
         R"(,"done":false,"timestamp":)" + std::to_string(1'795'000'000 + iteration + time) +
         R"(,"pid":7})" + "\n";
}

struct ToldServer {
  testing::TemporaryFolder place;
  fs::path folder = place.path() / "s";
  FakeMlflow server;

  ToldServer() {
    testing::begin_experiment(folder);
    write_text(folder / "events.jsonl", kBegun);
  }
  void events(const std::string& more) const { append_text(folder / "events.jsonl", more); }
  MlflowExport exporter(MlflowOptions options = {}) {
    options.first_pause = std::chrono::milliseconds(0);
    return {folder,
            MlflowServer({.uri = "http://h"},
                         [this](const HttpRequest& r) { return server.answer(r); }),
            options};
  }
  Texts export_all(const MlflowOptions& options = {}) {
    MlflowExport out = exporter(options);
    out.write_news([] { return false; });
    out.finish();
    return out.take_problems();
  }
  // Two trials that have ended, the second one by the scheduler.
  void two_trials() {
    add_trial(folder, 0, R"({"lr":0.1,"net":{"act":"relu"}})",
              metric_line(1, R"("loss":3,"deep":{"a":1})") + metric_line(2, R"("loss":2)"));
    add_trial(folder, 1, R"({"lr":0.2})", metric_line(1, R"("loss":null,"x":"inf")"));
    events(event("attempt_started", 0) + event("attempt_started", 1) +
           event("rung", 1, R"(,"milestone":1)") +
           event("verdict", 1, R"(,"verdict":"stop","reason":"rank 2 of 2")") +
           event("attempt_ended", 1, R"(,"outcome":"stopped")") +
           event("trial_ended", 0, R"(,"status":"TERMINATED")") +
           event("trial_ended", 1, R"(,"status":"TERMINATED")"));
  }
};

TEST_CASE("mlflow gets a run for the experiment, and below it one for each trial") {
  ToldServer told;
  told.two_trials();
  told.events(kEnded);
  CHECK(told.export_all() == Texts{});
  CHECK(told.server.experiments.contains("s"));
  REQUIRE(told.server.runs.size() == 3);
  const FakeMlflow::Run* parent = told.server.named("s");
  REQUIRE(parent != nullptr);
  CHECK(parent->status == "FINISHED");
  CHECK(parent->end_time == 300'000);
  CHECK(parent->tags.at("tune.best_trial") == trial_name(0));
  CHECK(parent->values("best/loss") == Texts{"2:2.0"});
  const FakeMlflow::Run& first = *told.server.named(trial_name(0));
  CHECK(first.tags.at("mlflow.parentRunId") == "run1");
  CHECK(first.tags.at("tune.trial_id") == trial_name(0));
  CHECK(first.status == "FINISHED");
  CHECK(first.params == std::map<std::string, std::string>{{"lr", "0.1"}, {"net/act", "relu"}});
  CHECK(first.values("loss") == Texts{"1:3.0", "2:2.0"});
  CHECK(first.values("deep/a") == Texts{"1:1.0"});
  CHECK(first.metrics.contains({"loss", 1, 1'795'000'001'000, "3.0"}));
  const FakeMlflow::Run& second = *told.server.named(trial_name(1));
  CHECK(second.values("loss") == Texts{"1:NaN"});
  CHECK(second.values("x") == Texts{"1:Infinity"});
  CHECK(second.tags.at("tune.reason") == "rank 2 of 2");
  CHECK(second.tags.at("tune.rung") == "1");
}

TEST_CASE("an export to mlflow that is run again finds its runs and sends what is new") {
  ToldServer told;
  told.two_trials();
  CHECK(told.export_all() == Texts{});
  CHECK(told.server.named("s")->status == "KILLED");  // no driver has written an end
  const auto before = told.server.runs;
  told.server.calls.clear();
  CHECK(told.export_all() == Texts{});
  CHECK(told.server.count("mlflow/runs/create") == 0);
  CHECK(told.server.runs.size() == before.size());
  CHECK(told.server.named(trial_name(0))->metrics == before.at("run2").metrics);
  add_trial(told.folder, 2, R"({"lr":0.3})", metric_line(1, R"("loss":1)"));
  append_text(told.folder / trial_name(0) / "result.json", metric_line(3, R"("loss":1.5)"));
  told.events(event("attempt_started", 2) + event("trial_ended", 2, R"(,"status":"ERROR")"));
  CHECK(told.export_all() == Texts{});
  CHECK(told.server.runs.size() == 4);
  CHECK(told.server.named(trial_name(0))->values("loss") == Texts{"1:3.0", "2:2.0", "3:1.5"});
  CHECK(told.server.named(trial_name(2))->status == "FAILED");
}

TEST_CASE("an answer that is lost makes no run twice, whichever it is") {
  std::size_t calls = 0;
  {
    ToldServer whole;
    whole.two_trials();
    whole.export_all();
    calls = whole.server.calls.size();
  }
  REQUIRE(calls > 8);
  for (std::size_t lost = 1; lost <= calls; ++lost) {
    CAPTURE(lost);
    ToldServer told;
    told.two_trials();
    told.server.lost = {lost};
    try {
      told.export_all();
    } catch (const Error&) {
      told.export_all();  // a later one catches up
    }
    CHECK(told.server.runs.size() == 3);
    CHECK(told.server.named(trial_name(0))->values("loss") == Texts{"1:3.0", "2:2.0"});
    CHECK(told.server.named(trial_name(1))->tags.at("tune.reason") == "rank 2 of 2");
    CHECK(told.server.named(trial_name(0))->status == "FINISHED");
  }
}

TEST_CASE("a server that is down is one notice, and all is there when it is back") {
  ToldServer told;
  told.two_trials();
  MlflowExport out = told.exporter();
  told.server.refuses = 503;
  for (int i = 0; i < 3; ++i) out.write_news([] { return false; });
  const Texts problems = out.take_problems();
  REQUIRE(problems.size() == 1);
  CHECK_HAS(problems[0], "asking the MLflow server at http://h: it answers");
  CHECK_HAS(problems[0], "status 503; it is asked again until the end");
  CHECK_THROWS_WITH_AS(out.finish(), doctest::Contains("status 503"), Error);
  told.server.refuses = 0;
  out.write_news([] { return false; });
  out.finish();
  CHECK(out.take_problems().empty());
  CHECK(told.server.runs.size() == 3);
}

TEST_CASE("a server that lets nobody in is told of with the variables that would") {
  ToldServer told;
  told.server.refuses = 401;
  MlflowExport out = told.exporter();
  CHECK_THROWS_WITH_AS(out.finish(), doctest::Contains("MLFLOW_TRACKING_TOKEN"), Error);
}

TEST_CASE("a metric that mlflow refuses costs its trial alone") {
  ToldServer told;
  told.two_trials();
  told.server.refused_metric = "x";
  const Texts problems = told.export_all();
  REQUIRE(problems.size() == 1);
  CHECK_HAS(problems[0], "MLflow refuses what belongs to its run run3: Invalid metric name");
  CHECK(told.server.named(trial_name(0))->values("loss").size() == 2);
}

TEST_CASE("a step that was done again after a restore is sent with its later value") {
  ToldServer told;
  const auto lines = [](int time, const char* last) {
    return metric_line(1, R"("loss":3)") + metric_line(2, R"("loss":)" + std::string(last), time) +
           (time > 0 ? metric_line(3, R"("loss":1)", time) : "");
  };
  add_trial(told.folder, 0, R"({"lr":0.1})", lines(0, "2"));
  told.events(event("attempt_started", 0));
  told.export_all();
  add_trial(told.folder, 0, R"({"lr":0.1})", lines(60, "2.5"));
  told.export_all();
  CHECK(told.server.named(trial_name(0))->values("loss") ==
        Texts{"1:3.0", "2:2.0", "2:2.5", "3:1.0"});
}

TEST_CASE("requests keep within the limits of mlflow, and odd names fit") {
  ToldServer told;
  std::string config, many;
  for (int i = 0; i < 250; ++i) config += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":1";
  for (int i = 0; i < 2500; ++i) many += "\"k" + std::to_string(i) + "\":1,";
  add_trial(told.folder, 0, "{" + config + "}",
            metric_line(1, many + R"("a \"b\"":1,"a 'b'":2,"..":3,"Größe":4)"));
  told.events(event("attempt_started", 0));
  CHECK(told.export_all() == Texts{});
  const FakeMlflow::Run& run = *told.server.named(trial_name(0));
  CHECK(run.params.size() == 250);
  CHECK(run.metrics.size() == 2504);
  CHECK(run.values("Größe") == Texts{"1:4.0"});
  CHECK(mlflow_name("a \"b\"") != mlflow_name("a 'b'"));
  CHECK(mlflow_name("..").starts_with("__-"));
  CHECK(mlflow_name("a//b").starts_with("a__b-"));
  CHECK(mlflow_name(std::string(300, 'x')).size() == 250);
  CHECK(mlflow_name("loss/train.top-1") == "loss/train.top-1");
}

TEST_CASE("the best trial's checkpoint and files are sent once, and become a version") {
  ToldServer told;
  told.two_trials();
  told.events(kEnded);
  write_text(told.folder / trial_name(0) / "checkpoint_000002" / "data" / "a b.bin", "weights");
  write_text(told.folder / trial_name(0) / "results" / "model.pt", "model");
  CHECK(told.export_all({.registered_model = "mine"}) == Texts{});
  const std::string place = "1/run2/artifacts/";
  CHECK(told.server.artifacts.at(place + "checkpoint/data/a%20b.bin") == "weights");
  CHECK(told.server.artifacts.at(place + "results/model.pt") == "model");
  REQUIRE(told.server.versions.size() == 1);
  CHECK(told.server.versions[0].get<std::string>("source") ==
        "mlflow-artifacts:/1/run2/artifacts/results");
  told.server.calls.clear();
  CHECK(told.export_all({.registered_model = "mine"}) == Texts{});
  CHECK(told.server.versions.size() == 1);
  CHECK(told.server.count("mlflow-artifacts/artifacts/" + place + "results/model.pt") == 0);
}

TEST_CASE("where the server keeps no artifacts itself a notice says so") {
  ToldServer told;
  told.two_trials();
  told.events(kEnded);
  write_text(told.folder / trial_name(0) / "results" / "model.pt", "model");
  told.server.keeps_artifacts = false;
  const Texts problems = told.export_all();
  REQUIRE(problems.size() == 1);
  CHECK_HAS(problems[0], "this server keeps none itself");
  CHECK(told.server.named("s")->status == "FINISHED");
}

TEST_CASE("an experiment that runs stays open there, and a second teller is refused") {
  ToldServer told;
  told.two_trials();
  MlflowExport running = told.exporter();
  running.write_news([] { return false; });
  CHECK(told.server.named("s")->status == "RUNNING");
  MlflowExport other = told.exporter();
  other.write_news([] { return false; });
  CHECK(told.server.runs.size() == 3);
  CHECK_THROWS_WITH_AS(other.finish(), doctest::Contains("another process does"), Error);
}

TEST_CASE("an experiment that has not begun is refused, and no server asked") {
  ToldServer told;
  fs::remove(told.folder / "events.jsonl");
  MlflowExport out = told.exporter();
  CHECK_THROWS_WITH_AS(out.finish(), doctest::Contains("it has not begun"), Error);
  CHECK(told.server.calls.empty());
}

// ---- By HTTP ------------------------------------------------------------------------------------

struct Variables {
  std::vector<std::string> names;
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    names.push_back(name);
  }
  ~Variables() {
    for (const std::string& name : names) unsetenv(name.c_str());
  }
};

bool is_stored(const fs::path& folder, const std::string& text) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && testing::read_text(entry.path()).find(text) != text.npos) {
      return true;
    }
  }
  return false;
}

TEST_CASE("tune export --mlflow obeys the variables of mlflow's client and stores none of them") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  FakeMlflow fake;
  const testing::ServedMlflow served(fake);
  Shell shell;
  ToldServer told;
  told.two_trials();
  told.events(kEnded);
  write_text(told.folder / trial_name(0) / "results" / "model.pt", "model");
  Variables variables;
  Ended ended = shell.tune({"export", "--mlflow", told.folder.c_str()});
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "MLFLOW_TRACKING_URI is not set");
  variables.set("MLFLOW_TRACKING_URI", "file:///tmp/x");
  ended = shell.tune({"export", "--mlflow", told.folder.c_str()});
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "is not an address of a server");
  variables.set("MLFLOW_TRACKING_URI", served.url() + "/");
  variables.set("MLFLOW_TRACKING_USERNAME", "me");
  variables.set("MLFLOW_TRACKING_PASSWORD", "hidden-word");
  variables.set("MLFLOW_EXPERIMENT_NAME", "mine");
  ended = shell.tune({"export", "--mlflow", told.folder.c_str(), "--register", "m"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_HAS(ended.err, "it is the run run1 of the experiment 1");
  const Ended told_again = shell.tune({"export", "--mlflow", "--json", told.folder.c_str()});
  CHECK(told_again.out == R"({"tool":"mlflow","run":"run1","experiment":"1","warnings":[]})"
                          "\n");
  CHECK(told_again.err.empty());
  CHECK(fake.experiments.contains("mine"));
  CHECK(fake.runs.size() == 3);
  CHECK(fake.artifacts.at("1/run2/artifacts/results/model.pt") == "model");
  CHECK_HAS(fake.headers.at(0), "Authorization: Basic bWU6aGlkZGVuLXdvcmQ=");
  CHECK_FALSE(is_stored(told.folder, "hidden-word"));
  CHECK_FALSE(is_stored(told.folder, served.url()));
  variables.set("MLFLOW_TRACKING_USERNAME", "");
  variables.set("MLFLOW_TRACKING_TOKEN", "a-token");
  CHECK(shell.tune({"export", "--mlflow", told.folder.c_str()}).code == 0);
  CHECK_HAS(fake.headers.at(0), "Authorization: Bearer a-token");
  CHECK(shell.tune({"export", told.folder.c_str(), "--register", "m"}).code == 2);
}

TEST_CASE("tune export --mlflow without a server there fails with its address") {
  if (!testing::has_libcurl()) return testing::skip("there is no libcurl here");
  Shell shell;
  ToldServer told;
  told.two_trials();
  Variables variables;
  variables.set("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:1/path");
  const Ended ended = shell.tune({"export", "--mlflow", told.folder.c_str()});
  CHECK(ended.code == 3);
  CHECK_HAS(ended.err, "asking the MLflow server at http://127.0.0.1:1: ");
  CHECK(ended.err.find("secret") == ended.err.npos);
}

}  // namespace
}  // namespace tune
