// Analysis: read from folders as a run, a kill or a move left them.
#include "tune/results/analysis.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"
#include "numbers.h"
#include "tune/results/results_csv.h"
#include "tune/story.h"

namespace tune {
namespace {

using testing::kInfinity;
using testing::kNan;

namespace fs = std::filesystem;

using testing::refusal;

using Lists = std::vector<std::vector<double>>;

// One trial for each list of values of `acc`; the configuration says which.
struct Values : Story {
  explicit Values(const Lists& all, Mode mode = Mode::kMax) : Story(spec_of(mode)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Trial& trial = add({{"which", i}});
      for (double value : all[i]) report(trial, {{"acc", value}, {"extra", {{"x", i}}}});
      set_status(trial, TrialStatus::kTerminated);
    }
    flush();
    write_spec();
  }
  static ExperimentSpec spec_of(Mode mode) {
    ExperimentSpec spec = story_spec();
    spec.options.mode = mode;
    return spec;
  }
  Analysis load() const { return Analysis::load(path()); }
  int best(Scope scope) const { return load().best_config({}, {}, scope).get<int>("which"); }
};

TEST_CASE("the best trial by each scope") {
  // Trial 0 ends best, trial 1 had the best value, trial 2 is best on average, trial 3 over its
  // last five, trial 4 over its last ten.
  const Values story(Lists{{0.1, 0.9},
                           {0.99, 0.1},
                           {0.8, 0.8},
                           {0, 0, 0, 0, 0, 0, 0.84, 0.84, 0.84, 0.84, 0.84},
                           {0, 0.82, 0.82, 0.82, 0.82, 0.82, 0.82, 0.82, 0.82, 0.82, 0.82}});
  CHECK(story.best(Scope::kLast) == 0);
  CHECK(story.best(Scope::kAll) == 1);
  CHECK(story.best(Scope::kAvg) == 2);
  CHECK(story.best(Scope::kLast5Avg) == 3);
  CHECK(story.best(Scope::kLast10Avg) == 4);
}

TEST_CASE("names of scopes") {
  for (const char* name : {"last", "all", "avg", "last-5-avg", "last-10-avg"}) {
    REQUIRE(scope_from_name(name));
    CHECK(std::string(scope_name(*scope_from_name(name))) == name);
  }
  CHECK_FALSE(scope_from_name("best"));
}

TEST_CASE("mode min, another metric, another mode") {
  const Values story(Lists{{0.5}, {0.25}, {0.75}}, Mode::kMin);
  CHECK(story.best(Scope::kLast) == 1);
  CHECK(story.load().best_config({}, Mode::kMax).get<int>("which") == 2);
  CHECK(story.load().best_config("extra/x", Mode::kMax).get<int>("which") == 2);
  CHECK(story.load().best_config("time_total_s").get<int>("which") == 0);
}

TEST_CASE("a metric that is not a number is told as what it is") {
  for (const auto& [value, what] :
       {std::pair(Value("high"), "it is the text 'high'"), std::pair(Value(true), "it is true")}) {
    Values story(Lists{});
    Trial& trial = story.add({{"which", 0}});
    story.report(trial, {{"acc", value}});
    story.flush();
    const std::string message = refusal([&] { story.load().best_trial(); });
    CHECK_HAS(message, std::string(what) + " in trial ");
    CHECK_HAS(message, "expected a number");
  }
}

TEST_CASE("the first trial wins ties, values that are not finite never win") {
  CHECK(Values(Lists{{0.5}, {0.5}}).best(Scope::kLast) == 0);
  CHECK(Values(Lists{{kNan}, {0.1}, {kInfinity}}).best(Scope::kLast) == 1);
  CHECK(Values(Lists{{kNan}, {0.1}, {-kInfinity}}, Mode::kMin).best(Scope::kLast) == 1);
  CHECK(Values(Lists{{kInfinity, 0.2}, {0.1, 0.1}}).best(Scope::kAll) == 0);
  CHECK(Values(Lists{{kNan, 0.9}, {0.1, 0.1}}).best(Scope::kAvg) == 1);
}

TEST_CASE("a metric reported only now and then counts with its last value") {
  Values story(Lists{});
  Trial& trial = story.add({{"which", 0}});
  story.report(trial, {{"acc", 0.5}});
  story.report(trial, {{"other", 1}});
  story.flush();
  CHECK(story.best(Scope::kLast) == 0);
}

TEST_CASE("nothing eligible says so") {
  struct Case {
    Lists values;
    const char* metric;
    const char* says;
  };
  const Case cases[] = {
      {{}, "", "the experiment has no trials yet"},
      {{{}, {}}, "", "no trial has reported a result"},
      {{{kNan}, {kInfinity}}, "", "none is eligible, all 2 values are NaN or infinite"},
      {{{1}},
       "exra/x",
       "it is in no result (did you mean 'extra/x'?); results have: acc, extra/x, "
       "training_iteration"},
  };
  for (const Case& c : cases) {
    const Values story(c.values);
    const std::string message = refusal([&] { story.load().best_trial(c.metric); });
    CHECK_HAS(message, c.says);
    CHECK_HAS(message, story.path().string());
  }
  ExperimentSpec spec = story_spec();
  spec.options.metric = "";
  Story story(spec);
  story.write_spec();
  CHECK_HAS(refusal([&] { Analysis::load(story.path()).best_trial(); }), "has no metric");
}

TEST_CASE("best_result is the last one, or with scope all the one that won") {
  const Values story(Lists{{0.5, 0.75, 0.25}});
  CHECK(story.load().best_result().get<double>("acc") == 0.25);
  const Result best = story.load().best_result({}, {}, Scope::kAll);
  CHECK(best.get<double>("acc") == 0.75);
  CHECK(best.get<int>("training_iteration") == 2);
  CHECK(best.get<std::string>("hostname") == "node");
}

TEST_CASE("rows of all results, in order") {
  const Values story(Lists{{}, {1, kNan}, {}, {3}, {}});
  const Analysis analysis = story.load();
  std::vector<std::pair<std::string, double>> rows;
  for (const ResultRow& row : analysis.results()) {
    rows.emplace_back(row.trial->id.substr(6), row.result.get<double>("acc"));
  }
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == std::pair<std::string, double>("00001", 1));
  CHECK(std::isnan(rows[1].second));
  CHECK(rows[2] == std::pair<std::string, double>("00003", 3));
  const Values none(Lists{});
  CHECK(none.load().results().begin() == none.load().results().end());
}

TEST_CASE("the best checkpoint is the best trial's saved one with the best value") {
  Values story(Lists{{0.1}, {0.5, 0.9, 0.7, 0.9, 0.6}});
  const auto save = [&](std::uint64_t iteration, std::uint32_t attempt = 1) {
    fs::create_directory(story.directory(story.trials()[1]) /
                         checkpoint_name(iteration, AttemptNumber{attempt}));
  };
  CHECK_HAS(refusal([&] { story.load().best_checkpoint(); }), "set checkpoint frequency or at_end");
  fs::create_directory(story.directory(story.trials()[1]) / ".checkpoint_000002.tmp-1");
  save(5);
  BestCheckpoint best = story.load().best_checkpoint();
  CHECK(best.iteration == 5);
  CHECK(best.value == 0.6);
  CHECK(best.path == story.directory(story.trials()[1]) / "checkpoint_000005");
  save(4);
  save(2);
  save(1);
  best = story.load().best_checkpoint();
  CHECK(best.iteration == 2);  // the older of equals
  CHECK(best.value == 0.9);
  // The second attempt saved it too: that is the one which a record has.
  save(2, 2);
  save(2, 10);
  fs::create_directory(story.directory(story.trials()[1]) / "checkpoint_000002-copy");
  best = story.load().best_checkpoint();
  CHECK(best.iteration == 2);
  CHECK(best.path.filename() == "checkpoint_000002-a10");
}

TEST_CASE("a checkpoint without a value is taken when there is no other") {
  Values story(Lists{});
  Trial& trial = story.add({{"which", 0}});
  story.report(trial, {{"other", 1}});
  story.report(trial, {{"acc", 0.5}});
  story.flush();
  fs::create_directory(story.directory(trial) / "checkpoint_000001");
  const BestCheckpoint best = story.load().best_checkpoint();
  CHECK(best.iteration == 1);
  CHECK_FALSE(best.value);
}

TEST_CASE("a folder that was moved, and one reached through a link") {
  const Values story(Lists{{0.5}, {0.75}});
  fs::rename(story.path(), story.path().parent_path() / "elsewhere");
  const fs::path moved = story.path().parent_path() / "elsewhere";
  fs::create_directory_symlink("elsewhere", story.path().parent_path() / "latest");
  for (const fs::path& path : {moved, story.path().parent_path() / "latest"}) {
    const Analysis analysis = Analysis::load(path);
    CHECK(analysis.name() == "story");
    CHECK(analysis.metric() == "acc");
    CHECK(analysis.trials().size() == 2);
    CHECK(analysis.best_config().get<int>("which") == 1);
    CHECK(analysis.best_trial().directory.parent_path() == path);
  }
}

TEST_CASE("without results.csv the files say how trials stand") {
  Story story;
  story.report(story.add(), {{"acc", 1}}, true);
  story.report(story.add(), {{"acc", 1}});
  story.add();
  story.fail(story.add(), "no luck", true);
  Trial& failed = story.add();
  story.report(failed, {{"acc", 1}});
  story.fail(failed, "no luck", true);
  story.fail(failed, "no luck", false);
  story.flush();
  story.write_spec();
  AppendFile(story.directory(story.trials()[1]) / "result.json", false).write("{\"acc\":0.9,");
  const TrialStatus expected[] = {TrialStatus::kTerminated, TrialStatus::kRunning,
                                  TrialStatus::kPending, TrialStatus::kPending,
                                  TrialStatus::kError};
  const Analysis analysis = Analysis::load(story.path());
  REQUIRE(analysis.trials().size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(analysis.trials()[i].status == expected[i]);
  }
  CHECK(analysis.trials()[1].results().size() == 1);  // the half line does not count
}

TEST_CASE("while a driver runs the events say which trials are paused") {
  Story story;
  for (int i = 0; i < 3; ++i) story.report(story.add(), {{"acc", 1}});
  story.flush();
  story.write_spec();
  write_file_atomically(story.path() / "run.json", R"({"state": "running"})");
  const auto event = [&](const std::string& kind, std::size_t trial, const std::string& rest) {
    AppendFile(story.path() / "events.jsonl", false)
        .write(R"({"time":1,"event":")" + kind + R"(","trial":")" +
               story.directory(story.trials()[trial]).filename().string() + R"(","attempt":1)" +
               rest + "}\n");
  };
  const auto statuses = [&] {
    std::vector<TrialStatus> all;
    for (const TrialSummary& trial : Analysis::load(story.path()).trials())
      all.push_back(trial.status);
    return all;
  };
  using enum TrialStatus;
  for (std::size_t i = 0; i < 3; ++i) event("attempt_started", i, "");
  event("order", 0, R"(,"order":"pause","user":"me")");
  CHECK(statuses() == std::vector{kRunning, kRunning, kRunning});  // it is saved yet
  event("attempt_ended", 0, R"(,"outcome":"paused")");
  event("attempt_ended", 1, R"(,"outcome":"paused")");
  event("attempt_started", 1, "");
  CHECK(statuses() == std::vector{kPaused, kRunning, kRunning});
  AppendFile(story.path() / "events.jsonl", false).write("{\"event\":\"order\",oops\n");
  CHECK(statuses() == std::vector{kRunning, kRunning, kRunning});
}

TEST_CASE(
    "results.csv tells the statuses, but after a resume only those that cannot have changed") {
  Story story;
  story.set_status(story.add(), TrialStatus::kPaused);
  story.report(story.trials()[0], {{"acc", 1}});
  story.report(story.add(), {{"acc", 1}});
  story.set_status(story.trials()[1], TrialStatus::kTerminated);  // stopped: no result says so
  story.flush();
  story.write_spec();
  write_results_csv(story.path() / "results.csv", story.spec(), story.trials(), story.last_results());
  const auto statuses = [&] {
    std::vector<TrialStatus> all;
    for (const TrialSummary& trial : Analysis::load(story.path()).trials())
      all.push_back(trial.status);
    return all;
  };
  using enum TrialStatus;
  CHECK(statuses() == std::vector{kPaused, kTerminated});
  write_file_atomically(story.path() / "run.json", R"({"state": "running"})");
  story.add();
  story.flush();
  CHECK(statuses() == std::vector{kRunning, kTerminated, kPending});
  write_file_atomically(story.path() / "run.json", R"({"state": "finished"})");
  CHECK(statuses() == std::vector{kPaused, kTerminated, kPending});
}

TEST_CASE("the trials and rows of a temporary can be gone through") {
  Story story;
  story.report(story.add(), {{"acc", 1}});
  story.report(story.add(), {{"acc", 2}});
  story.flush();
  story.write_spec();
  std::vector<std::string> ids;
  for (const TrialSummary& trial : Analysis::load(story.path()).trials()) ids.push_back(trial.id);
  std::vector<std::string> of_rows;
  for (const ResultRow& row : Analysis::load(story.path()).results()) {
    of_rows.push_back(row.trial->id);
  }
  CHECK(ids == of_rows);
  REQUIRE(ids.size() == 2);
  CHECK(ids[1].ends_with("_00001"));
}

TEST_CASE("configurations come back as they were") {
  Story story;
  const Config config{{"none", nullptr}, {"clip", kInfinity},          {"n", 3},
                      {"f", 3.0},        {"l", list({1, "a", false})}, {"deep", {{"er", "käse"}}}};
  story.add(config);
  story.flush();
  story.write_spec();
  CHECK(Analysis::load(story.path()).trials()[0].config() == config);
}

TEST_CASE("other files and folders in the experiment's folder are not trials") {
  const Values story(Lists{{0.5}});
  for (const char* name : {"store", "2f1e0_0000", "zzzzz_00001", "12345_0000x", "2f1e0_00007"}) {
    fs::create_directory(story.path() / name);
  }
  CHECK(story.load().trials().size() == 1);
}

TEST_CASE("trials are in order of their number, also beyond five digits") {
  const Values story(Lists{{0.5}});
  const fs::path first = story.load().trials()[0].directory;
  const std::string hash = first.filename().string().substr(0, 5);
  fs::copy(first, story.path() / (hash + "_100000"));
  fs::copy(first, story.path() / (hash + "_99999"));
  const Analysis analysis = story.load();
  REQUIRE(analysis.trials().size() == 3);
  CHECK(analysis.trials()[1].id == hash + "_99999");
  CHECK(analysis.trials()[2].id == hash + "_100000");
}

TEST_CASE("a folder that is not an experiment's, or damaged") {
  testing::TemporaryFolder folder;
  CHECK_HAS(refusal([&] { Analysis::load(folder.path()); }), "holds no experiment");
  CHECK_HAS(refusal([&] { Analysis::load(folder.path() / "none"); }), "holds no experiment");
  const Values story(Lists{{0.5}, {0.25}});
  const fs::path file = story.load().trials()[1].directory / "result.json";
  AppendFile(file, false).write("no json\n{\"acc\":0.5}\n");
  const std::string message = refusal([&] { story.load().best_trial({}, {}, Scope::kAll); });
  CHECK_HAS(message, file.string() + ":2");
}

TEST_CASE("TrialError holds the Analysis and says where to look") {
  Values story(Lists{{0.5}});
  for (int i = 0; i < 5; ++i) story.fail(story.add(), "no luck", false);
  story.flush();
  const TrialError error(story.load(), 5);
  CHECK(error.code() == ErrorCode::kTrialFailed);
  const std::string message = error.what();
  CHECK_HAS(message, "5 of 6 trials ended in ERROR: see " + story.path().string());
  CHECK_HAS(message, "_00003/error.txt, ...");
  CHECK(error.analysis().best_config().get<int>("which") == 0);
}

}  // namespace
}  // namespace tune
