// Importances read from an experiment's folder.
#include "tune/results/importance.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/results/importance_reader.h"
#include "tune/results/recorded_folder.h"

namespace tune {
namespace {

using testing::refusal;

struct ImportanceFolder : RecordedFolder {
  explicit ImportanceFolder(const SearchSpace& space)
      : ImportanceFolder(std::make_unique<Shell>(), space) {}
  ImportanceFolder(std::unique_ptr<Shell> own, const SearchSpace& space)
      : RecordedFolder(*own, "e", space), shell(std::move(own)) {}
  std::unique_ptr<Shell> shell;
};

const SearchSpace kImportanceSpace = {{"x", uniform(0, 1)}, {"y", uniform(0, 1)}, {"fixed", 3}};

double spread(int i, int step) {
  return std::fmod(i * 0.61803398875 * step, 1.0);
}

void fill(ImportanceFolder& folder, int trials) {
  for (int i = 0; i < trials; ++i) {
    const double x = spread(i, 1);
    folder.add({{"x", x}, {"y", spread(i, 7)}, {"fixed", 3}}, {x});
  }
}

TEST_CASE("the parameter that decides the metric is first; constants are none") {
  ImportanceFolder folder(kImportanceSpace);
  fill(folder, 60);
  const Importance found = folder.load().importance();
  CHECK(found.metric == "loss");
  CHECK(found.mode == Mode::kMin);
  CHECK(found.trials == 60);
  CHECK(found.best == 8);
  REQUIRE(found.parameters.size() == 2);
  CHECK(found.parameters[0].path == "x");
  CHECK(found.parameters[0].share > 0.9);
  CHECK(found.parameters[0].stands_out);
  CHECK_FALSE(found.parameters[1].stands_out);
  CHECK(folder.load().importance("minus", Mode::kMax).parameters[0].path == "x");
}

TEST_CASE("a reader that goes on finds what a fresh one does, and reads what has changed") {
  ImportanceFolder folder(kImportanceSpace);
  fill(folder, 40);
  ImportanceReader reader;
  ImportanceReader::Question question{.directory = folder.load().directory(),
                                      .id_prefix = "2f1e0_",
                                      .metric = "loss",
                                      .mode = Mode::kMin,
                                      .trials = {}};
  const auto ask = [&](std::uint64_t change_of_last) {
    question.trials.clear();
    const std::vector<TrialSummary> trials = folder.load().trials();
    question.id_prefix = trials.front().id.substr(0, trials.front().id.find('_') + 1);
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
      const std::uint64_t change = i + 1 == trials.size() ? change_of_last : 1;
      question.trials.push_back({i, change, trials[i].status});
    }
    const Importance found = reader.find(question);
    const Importance fresh = folder.load().importance();
    CHECK(found.trials == fresh.trials);
    CHECK(found.best == fresh.best);
    REQUIRE(found.parameters.size() == fresh.parameters.size());
    for (std::size_t i = 0; i < found.parameters.size(); ++i) {
      CHECK(found.parameters[i].path == fresh.parameters[i].path);
      CHECK(found.parameters[i].share == fresh.parameters[i].share);
      CHECK(found.parameters[i].stands_out == fresh.parameters[i].stands_out);
    }
  };
  ask(1);
  CHECK(reader.trials_read() == 40);
  folder.add({{"x", 0.001}, {"y", 0.5}, {"fixed", 3}}, {-1});
  ask(2);
  CHECK(reader.trials_read() == 41);
  ask(3);
  CHECK(reader.trials_read() == 42);
  ask(3);
  CHECK(reader.trials_read() == 42);
}

TEST_CASE("too few trials, values alike and metrics that none reported are refused in words") {
  ImportanceFolder folder(kImportanceSpace);
  CHECK_HAS(refusal([&] { folder.load().importance(); }), "no trials yet");
  fill(folder, 19);
  folder.add({{"x", 0.5}, {"y", 0.5}, {"fixed", 3}}, {});
  folder.add({{"x", 5.0}, {"y", 0.5}, {"fixed", 3}}, {0.1});
  const std::string few = refusal([&] { folder.load().importance(); });
  CHECK_HAS(few, "19 trials have a value that counts, at least 20 are needed");
  CHECK_HAS(few, "1 have none; 1 lie outside the space");
  CHECK_HAS(refusal([&] { folder.load().importance("lsos"); }), "did you mean 'loss'?");
  ImportanceFolder alike(kImportanceSpace);
  for (int i = 0; i < 30; ++i) alike.add({{"x", spread(i, 1)}, {"y", 0.5}, {"fixed", 3}}, {0.25});
  CHECK_HAS(refusal([&] { alike.load().importance(); }), "all 30 values are alike");
  ImportanceFolder nothing({{"x", 1}});
  for (int i = 0; i < 30; ++i) nothing.add({{"x", 1}}, {0.1 * i});
  CHECK_HAS(refusal([&] { nothing.load().importance(); }), "nothing in its config is searched");
}

// Losses fall with time. Those that were stopped after one step look worse than all others; what
// tells the best apart is x, within each rung.
TEST_CASE("trials that were stopped early are compared with those that got about as far") {
  ImportanceFolder folder(kImportanceSpace);
  for (int i = 0; i < 90; ++i) {
    const double x = spread(i, 1);
    const Config config = {{"x", x}, {"y", spread(i, 7)}, {"fixed", 3}};
    if (x > 0.4) {
      folder.add(config, {x + 10}, "stopped");
    } else {
      folder.add(config, {x + 10, x + 9, x}, "stopped");
    }
  }
  const Importance found = folder.load().importance();
  CHECK(found.trials == 90);
  CHECK(found.parameters[0].path == "x");
  CHECK(found.parameters[0].share > 0.9);
}

// By value the failed and diverged ones would have to be left out: most have a large x.
TEST_CASE("trials that failed or diverged are the worst") {
  ImportanceFolder folder({{"x", uniform(0, 1)}, {"y", uniform(0, 1)}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < 60; ++i) {
    const double x = spread(i, 1);
    folder.add({{"x", x}, {"y", spread(i, 7)}}, {x > 0.3 ? nan : spread(i, 5)});
  }
  const Importance found = folder.load().importance();
  CHECK(found.trials == 60);
  CHECK(found.parameters[0].path == "x");
}

TEST_CASE("grids, choices and what depends on them have importances, too") {
  ImportanceFolder folder(
      {{"layers", grid_search({1, 2, 3})},
       {"opt", choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, "none"})}});
  for (int i = 0; i < 90; ++i) {
    const bool is_sgd = i % 2 == 0;
    Config config = {{"layers", i % 3 + 1}};
    const double momentum = spread(i, 1);
    if (is_sgd) {
      config.set("opt", Value{{"kind", "sgd"}, {"momentum", momentum}});
    } else {
      config.set("opt", "none");
    }
    folder.add(config, {is_sgd ? 3 * momentum + 0.1 * (i % 3) : 5.0});
  }
  const Importance found = folder.load().importance();
  REQUIRE(found.parameters.size() == 3);
  CHECK(found.outside == 0);
  for (const Importance::Parameter& one : found.parameters) {
    CAPTURE(one.path);
    CHECK(one.stands_out == (one.path != "layers"));
    CHECK(one.trials == (one.path == "opt/momentum" ? 45 : 90));
    CHECK(one.when == (one.path == "opt/momentum" ? "opt is sgd" : ""));
  }
}

TEST_CASE("tune importance prints a table or JSON") {
  ImportanceFolder folder(kImportanceSpace);
  fill(folder, 60);
  const Ended table = folder.shell->tune({"importance", "e"});
  INFO(table.err);
  CHECK(table.code == 0);
  CHECK_HAS(table.out, "loss (min): what sets the best 8 of 60 trials apart from all\n  x  ");
  CHECK_HAS(table.out, "no more than chance gives");
  const Ended json =
      folder.shell->tune({"importance", "e", "--json", "--metric", "minus", "--mode", "max"});
  INFO(json.err);
  const Value value = parse_json(json.out, "importance");
  CHECK(value.get<std::string>("mode") == "max");
  CHECK(value.at("parameters").list().front().get<std::string>("path") == "x");
  CHECK(folder.shell->tune({"importance", "e", "--mode", "up"}).code == 2);
  const Ended wrong = folder.shell->tune({"importance", "e", "--metric", "nothing"});
  CHECK(wrong.code == 2);
  CHECK_HAS(wrong.err, "it is in no result");
}

}  // namespace
}  // namespace tune
