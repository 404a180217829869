// Earlier experiments, as a new one reads and keeps them.
#include "tune/results/warm_start.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/refusal.h"
#include "numbers.h"
#include "tune/control/experiment_setup.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/recorded_folder.h"
#include "tune/search/model_searcher.h"

namespace tune {
namespace {

using testing::kNan;
using testing::refusal;

const SearchSpace kWarmSpace = {{"lr", loguniform(1e-3, 1)}, {"act", choice({"relu", "tanh"})}};

ExperimentSpec spec_of(std::vector<std::string> folders, const SearchSpace& space = kWarmSpace) {
  RunOptions options;
  options.name = "new";
  options.config = space;
  options.metric = "loss";
  options.mode = Mode::kMin;
  options.searcher = gp();
  options.seed = 3;
  options.num_samples = 9;
  options.stop = {{"training_iteration", 27}};
  options.warm_start = std::move(folders);
  std::vector<Complaint> complaints;
  ExperimentSpec spec = make_spec(options, "T", false, complaints);
  REQUIRE(complaints.empty());
  return spec;
}

Config config_at_x(double lr, const char* act) {
  return {{"lr", lr}, {"act", act}};
}

TEST_CASE("a folder that is named twice is read once") {
  const Shell shell;
  RecordedFolder one(shell, "one", kWarmSpace);
  one.add(config_at_x(0.1, "relu"), {0.5});
  const std::string folder = one.path().string();
  const std::string link = folder + ".latest";
  std::filesystem::create_directory_symlink(folder, link);
  ExperimentSpec spec = spec_of({folder, link, folder + "/../one"});
  CHECK_HAS(read_warm_start(spec), "knows 1 trials of ");
  CHECK(spec.earlier.size() == 1);
}

TEST_CASE("trials of earlier experiments are known to the searcher, and are none of its own") {
  const Shell shell;
  RecordedFolder one(shell, "one", kWarmSpace);
  one.add(config_at_x(0.1, "relu"), {0.5, 0.4, 0.3, 0.2});
  one.add(config_at_x(0.2, "tanh"), {0.9}, "stopped");
  one.add(config_at_x(0.3, "tanh"), {kNan});
  RecordedFolder two(shell, "two", kWarmSpace);
  two.add(config_at_x(0.4, "relu"), {0.6});
  ExperimentSpec spec = spec_of({one.path(), two.path()});
  const std::string told = read_warm_start(spec);
  CHECK(told ==
        "warm start: gp knows 4 trials of " + one.path().string() + ", " + two.path().string());
  REQUIRE(spec.earlier.size() == 4);
  CHECK(spec.earlier[0].values == std::vector<ValueAt>{{1, 0.5}, {3, 0.3}, {4, 0.2}});
  CHECK(spec.earlier[0].end == TrialEnd::kCompleted);
  CHECK(spec.earlier[1].end == TrialEnd::kStopped);
  CHECK(spec.earlier[2].name == "one/2f1e0_00002");
  CHECK(spec.earlier[3].name == "two/2f1e0_00000");
  CHECK(std::isnan(spec.earlier[2].values.front().value));

  ControllerSetup setup = controller_setup(spec, "/e");
  auto& searcher = dynamic_cast<ModelSearcher&>(*setup.searcher);
  CHECK(searcher.total() == 9u);
  const auto& known = searcher.history().trials();
  REQUIRE(known.size() == 4);
  CHECK_FALSE(known[0].number.has_value());
  CHECK(known[0].newest == ValueAt{4, -0.2});
  CHECK(known[0].rungs.size() == 2);
  CHECK(known[1].standing == Standing::kStopped);
  CHECK(known[2].newest->value == -std::numeric_limits<double>::infinity());
}

TEST_CASE("what lies outside the space or has no value is left out, counted and told") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kWarmSpace);
  folder.add(config_at_x(0.1, "relu"), {0.5});
  folder.add(config_at_x(5.0, "relu"), {0.5});
  folder.add(config_at_x(5.0, "tanh"), {0.5});
  folder.add(config_at_x(0.1, "gelu"), {0.5});
  folder.add({{"lr", 0.1}}, {0.5});
  folder.add(config_at_x(0.2, "relu"), {});
  ExperimentSpec spec = spec_of({folder.path()});
  const std::string told = read_warm_start(spec);
  CHECK_HAS(told, "gp knows 1 trials of ");
  CHECK_HAS(told,
            "; 4 lie outside the space, as 'lr' is 5.0, which {\"loguniform\":[0.001,1.0]} "
            "never draws; 1 have no loss");
  CHECK(spec.earlier.size() == 1);
  spec.options.mode = Mode::kMax;
  CHECK_HAS(read_warm_start(spec), "; " + folder.path().string() + " had the other mode for it");
}

TEST_CASE("what is not searched here may differ, and the line says so") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kWarmSpace);
  folder.add({{"lr", 0.1}, {"act", "relu"}, {"epochs", 3}}, {0.5});
  folder.add({{"lr", 0.2}, {"act", "relu"}, {"epochs", 3}}, {0.5});
  folder.add({{"lr", 0.3}, {"act", "relu"}, {"epochs", 30.0}}, {0.5});
  SearchSpace space = kWarmSpace;
  space.set("epochs", 30);
  space.set("half", sample_from([](const Config&) { return Value(1); }));
  ExperimentSpec spec = spec_of({folder.path()}, space);
  CHECK_HAS(read_warm_start(spec), "gp knows 3 trials of " + folder.path().string() +
                                       "; 2 of them differ in what is not searched, as 'epochs' "
                                       "is 3, not 30");
  ExperimentSpec without = spec_of({folder.path()});
  CHECK_HAS(read_warm_start(without),
            "; 3 of them differ in what is not searched, as 'epochs' is "
            "3, and no key here");
  space.set("seed", 5);
  ExperimentSpec more = spec_of({folder.path()}, space);
  CHECK_HAS(read_warm_start(more), "; 3 of them differ in what is not searched, as ");
}

TEST_CASE("what breaks a rule of this sweep's where lies outside, with the rule as the reason") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kWarmSpace);
  for (const double lr : {0.1, 0.3, 0.4}) folder.add(config_at_x(lr, "relu"), {0.5});
  ExperimentSpec spec = spec_of({folder.path()});
  spec.options.where = {"lr > 0.01", "lr < 0.2"};
  CHECK_HAS(read_warm_start(spec), "gp knows 1 trials of " + folder.path().string() +
                                       "; 2 lie outside the space, as they break 'lr < 0.2'");
  CHECK(spec.earlier.size() == 1);
  spec.options.where = {"lr > 0.5"};
  CHECK_HAS(refusal([&] { read_warm_start(spec); }, ErrorCode::kBadInput),
            "none of its 3 trials lies in the space of this sweep: they break 'lr > 0.5'");
}

TEST_CASE("folders of no use are refused before anything begins") {
  const Shell shell;
  const auto why = [&](const std::string& folder) {
    ExperimentSpec spec = spec_of({folder});
    const std::string message = refusal([&] { read_warm_start(spec); }, ErrorCode::kBadInput);
    CHECK_HAS(message, "warm_start/0: ");
    CHECK_HAS(message, folder);
    return message;
  };
  CHECK_HAS(why((shell.path() / "nowhere").string()), "holds no experiment");
  std::filesystem::create_directories(shell.path() / "empty");
  CHECK_HAS(why((shell.path() / "empty").string()), "holds no experiment");

  RecordedFolder other(shell, "other", {{"depth", randint(1, 5)}});
  other.add({{"depth", 3}}, {0.5});
  CHECK_HAS(why(other.path()),
            "none of its 1 trials lies in the space of this sweep: 'lr' is "
            "missing");

  RecordedFolder metric(shell, "metric", kWarmSpace);
  const std::string id = metric.add(config_at_x(0.1, "relu"), {});
  metric.write(id + "/result.json", "{\"los\":0.5,\"done\":true}\n");
  CHECK_HAS(why(metric.path()), "it is in no result (did you mean 'los'?)");
}

TEST_CASE("an experiment without results is not a mistake: there is nothing to know yet") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kWarmSpace);
  folder.add(config_at_x(0.1, "relu"), {});
  ExperimentSpec spec = spec_of({folder.path()});
  CHECK_HAS(read_warm_start(spec), "gp knows 0 trials of ");
}

TEST_CASE("trials count by the values that the searcher proposed, up to where they were replaced") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kWarmSpace);
  const std::string id = folder.add(config_at_x(0.9, "relu"), {0.5, 0.4, 0.1, 0.05});
  folder.tell(Value{{"event", "replaced"},
                    {"trial", id},
                    {"iteration", 2},
                    {"old", config_at_x(0.1, "relu")},
                    {"new", config_at_x(0.9, "relu")}});
  ExperimentSpec spec = spec_of({folder.path()});
  read_warm_start(spec);
  REQUIRE(spec.earlier.size() == 1);
  CHECK(spec.earlier[0].config == config_at_x(0.1, "relu"));
  CHECK(spec.earlier[0].values == std::vector<ValueAt>{{1, 0.5}, {2, 0.4}});
  CHECK(spec.earlier[0].end == TrialEnd::kStopped);
}

TEST_CASE("an experiment keeps what it learnt: it goes on when the earlier folder is gone") {
  const Shell shell;
  RecordedFolder earlier(shell, "earlier", kWarmSpace);
  earlier.add(config_at_x(0.1, "relu"), {0.5, 0.4, 0.3});
  earlier.add(config_at_x(0.2, "tanh"), {kNan}, "stopped");
  ExperimentSpec spec = spec_of({earlier.path()});
  spec.options.storage = shell.path() / "results";
  read_warm_start(spec);
  const ExperimentFolder folder = ExperimentFolder::create(spec);
  folder.write_spec(spec);
  std::filesystem::remove_all(earlier.path());

  const ExperimentSpec read = read_spec(folder.path());
  REQUIRE(read.earlier.size() == 2);
  CHECK(read.earlier[0].config == config_at_x(0.1, "relu"));
  CHECK(read.earlier[0].values == spec.earlier[0].values);
  CHECK(read.earlier[0].name == "earlier/2f1e0_00000");
  CHECK(read.earlier[1].end == TrialEnd::kStopped);
  CHECK(std::isnan(read.earlier[1].values.front().value));
  CHECK(read.options.warm_start == spec.options.warm_start);
  // Both know the same.
  CHECK(controller_setup(read, "/e").searcher->save() ==
        controller_setup(spec, "/e").searcher->save());

  shell.write("results/new/warm_start.json", "{");
  CHECK_HAS(refusal([&] { read_spec(folder.path()); }), "warm_start.json");
  std::filesystem::remove(folder.path() / "warm_start.json");
  CHECK_HAS(refusal([&] { read_spec(folder.path()); }), "warm_start.json is gone");
}

TEST_CASE("random search and grids refuse a warm start, which would change nothing") {
  const Shell shell;
  shell.write("x.so", "");
  shell.write("s.yaml",
              "plugin: x.so\ntrainable: T\nmetric: loss\nmode: min\nwarm_start: earlier\n"
              "config: {lr: {uniform: [0, 1]}}\nstop: {training_iteration: 3}\n"
              "searcher: basic_variant\n");
  const Ended ended = shell.tune({"run", "s.yaml"});
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "s.yaml:5: warm_start: the searcher basic_variant learns nothing");
  shell.write("s.yaml",
              "plugin: x.so\ntrainable: T\nmetric: loss\nmode: min\nwarm_start: [a, 3]\n"
              "config: {lr: {uniform: [0, 1]}}\nstop: {training_iteration: 3}\nsearcher: gp\n");
  const Ended typed = shell.tune({"run", "s.yaml"});
  CHECK_HAS(typed.err, "warm_start/1: expected the folder of an experiment, found 3");
}

}  // namespace
}  // namespace tune
