// Earlier experiments as tasks: what their trials reported, as far as it is of their configuration.
#include "tune/simulate/task_files.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"
#include "tune/results/recorded_folder.h"

namespace tune {
namespace {

using testing::refusal;

const SearchSpace kOneParameter = {{"x", uniform(0, 10)}};

// Reports loss 1/step, and with every second step acc x * step.
std::string lines_of_validation(double x, int steps) {
  std::string lines;
  for (int step = 1; step <= steps; ++step) {
    Value line{{"training_iteration", step}, {"loss", 1.0 / step}};
    if (step % 2 == 0) line.set("acc", x * step);
    lines += to_json(line) + "\n";
  }
  return lines;
}

TEST_CASE("a metric of every second step is known, and absent from the others") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kOneParameter);
  for (const double x : {1, 2, 5}) {
    const std::string id = folder.add({{"x", x}}, {});
    folder.write(id + "/result.json", lines_of_validation(x, 7));
  }
  const std::string early = folder.add({{"x", 9.0}}, {});
  folder.write(early + "/result.json", lines_of_validation(9, 1));
  const auto task = task_of_experiment(folder.path());
  const std::size_t acc = find_metric(*task, "acc");
  const std::size_t loss = find_metric(*task, "loss");
  Task::Given given;
  const auto curve = task->begin({{"x", 5.0}}, given);
  REQUIRE(curve->length() == 7);
  CHECK(curve->is_whole());
  CHECK_FALSE(curve->reports(7, acc));
  CHECK(std::isnan(curve->values(7)[acc]));
  CHECK(curve->reports(7, loss));
  CHECK(curve->reports(6, acc));
  CHECK(curve->values(6)[acc] == 30);
  // The last values of acc are 6, 12 and 30; the fourth trial was ended before it had one.
  const Reference reference = task->reference({"acc", Mode::kMax});
  CHECK(reference.optimum == 30);
  CHECK(reference.median == 12);
  CHECK_HAS(refusal([&] { find_metric(*task, "lr"); }), "it has loss, acc");
}

TEST_CASE("a reported NaN is not an absent metric") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kOneParameter);
  folder.add({{"x", 1.0}}, {0.5, std::nan("")});
  const auto task = task_of_experiment(folder.path());
  Task::Given given;
  const auto curve = task->begin({{"x", 1.0}}, given);
  CHECK(curve->reports(2, find_metric(*task, "loss")));
}

TEST_CASE("of a trial that was replaced, only what came before the first replacement is played") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kOneParameter);
  const auto replaced = [&](const std::string& id, int iteration, double before, double after) {
    folder.tell(Value{{"event", "replaced"},
                      {"trial", id},
                      {"iteration", iteration},
                      {"old", Value{{"x", before}}},
                      {"new", Value{{"x", after}}}});
  };
  folder.add({{"x", 4.0}}, {0.9, 0.8, 0.7, 0.6});
  const std::string twice = folder.add({{"x", 4.5}}, {2, 1.5, 0.65, 0.5});
  replaced(twice, 2, 1.0, 3.5);
  replaced(twice, 3, 3.5, 4.5);
  const auto task = task_of_experiment(folder.path());
  Task::Given given;
  const auto near_its_newest = task->begin({{"x", 4.5}}, given);
  CHECK(near_its_newest->values(1)[0] == 0.9);  // that of 4.0
  CHECK(near_its_newest->is_whole());
  const auto rest = task->begin({{"x", 4.5}}, given);
  CHECK(rest->length() == 2);
  CHECK(rest->values(2)[0] == 1.5);
  CHECK_FALSE(rest->is_whole());
  CHECK(task->reference({"loss", Mode::kMin}).optimum == 0.6);
}

TEST_CASE("curves of replaced trials alone are not whole, however long they are") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kOneParameter);
  const std::string id = folder.add({{"x", 4.5}}, {2, 1.5, 0.65});
  folder.tell(Value{{"event", "replaced"},
                    {"trial", id},
                    {"iteration", 2},
                    {"old", Value{{"x", 1.0}}},
                    {"new", Value{{"x", 4.5}}}});
  const auto task = task_of_experiment(folder.path());
  Task::Given given;
  CHECK_FALSE(task->begin({{"x", 1.0}}, given)->is_whole());
}

TEST_CASE("each of an experiment's objectives has the mode that it had there") {
  const Shell shell;
  RecordedFolder folder(shell, "e", kOneParameter, basic_variant(), 1, [](RunOptions& options) {
    options.metric.clear();
    options.mode.reset();
    options.objectives = {{"loss", Mode::kMin}, {"minus", Mode::kMax}};
  });
  folder.add({{"x", 1.0}}, {0.5});
  const auto task = task_of_experiment(folder.path());
  CHECK(task->metrics()[find_metric(*task, "loss")].mode == Mode::kMin);
  CHECK(task->metrics()[find_metric(*task, "minus")].mode == Mode::kMax);
}

}  // namespace
}  // namespace tune
