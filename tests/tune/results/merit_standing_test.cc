// The standing of trials by several objectives and constraints, as `tune explain` tells it.
#include "tune/results/merit_standing.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/platform/files.h"
#include "core/refusal.h"
#include "tune/cli/shell.h"
#include "tune/results/explanation.h"
#include "tune/results/recorded_folder.h"

namespace tune {
namespace {

const SearchSpace kMeritSpace = {{"x", uniform(0, 1)}};

struct MeritFolder : RecordedFolder {
  explicit MeritFolder(const Shell& shell) : RecordedFolder(shell, "e", kMeritSpace, gp()) {
    Value spec = parse_json(read_file(path() / "experiment.json"), "experiment.json");
    spec.set("metric", "");
    spec.set("objectives", list({Value{{"metric", "loss"}, {"mode", "min"}},
                                 Value{{"metric", "size"}, {"mode", "min"}}}));
    spec.set("constraints", list({Value{{"metric", "ms"}, {"max", 20}}}));
    write("experiment.json", to_json(spec));
  }
  // A trial with this last result.
  std::string ended(double x, Result last) {
    const std::string id = add(Config{{"x", x}}, {0.5});
    last.set("training_iteration", 1);
    last.set("done", true);
    write(id + "/result.json", to_json(last) + "\n");
    return id;
  }
  std::vector<std::string> lines(const std::string& trial) const {
    return lines_of(explain(load(), trial).standing.value());
  }
};

TEST_CASE("a trial's objectives and constraints are told, and which trial is better") {
  const Shell shell;
  MeritFolder folder(shell);
  const std::string small = folder.ended(0.1, {{"loss", 0.5}, {"size", 5}, {"ms", 10}});
  const std::string good = folder.ended(0.2, {{"loss", 0.2}, {"size", 9}, {"ms", 20}});
  const std::string worse = folder.ended(0.3, {{"loss", 0.6}, {"size", 6}, {"ms", 10}});
  const std::string slow = folder.ended(0.4, {{"loss", 0.1}, {"size", 1}, {"ms", 30}});
  const std::string lacking = folder.ended(0.5, {{"loss", 0.3}, {"ms", 10}});
  const std::string odd = folder.ended(0.6, {{"loss", std::nan("")}, {"size", 3}});
  using Lines = std::vector<std::string>;
  CHECK(folder.lines(small) == Lines{"loss 0.5 (min), size 5 (min)", "keeps ms <= 20",
                                     "on the front, which has 2 trials"});
  CHECK(folder.lines(good).back() == "on the front, which has 2 trials");
  CHECK(folder.lines(worse).back() ==
        "not on the front: " + small + " is better by one objective and worse by none");
  CHECK(folder.lines(slow) == Lines{"loss 0.1 (min), size 1 (min)", "breaks ms <= 20: it is 30",
                                    "not on the front: " + good + " keeps the constraints"});
  CHECK(
      folder.lines(lacking) ==
      Lines{"loss 0.3 (min), size missing (min)", "keeps ms <= 20",
            "not compared with other trials: its last result has no finite value of one of these"});
  CHECK(
      folder.lines(odd) ==
      Lines{"loss nan (min), size 3 (min)", "breaks ms <= 20: it is missing",
            "not compared with other trials: its last result has no finite value of one of these"});
  const Value value = to_value(explain(folder.load(), slow));
  CHECK(value.at("standing").dump() ==
        R"({"objectives":[{"metric":"loss","mode":"min","value":0.1},)"
        R"({"metric":"size","mode":"min","value":1.0}],)"
        R"("constraints":[{"metric":"ms","max":20.0,"value":30.0,"kept":false}],)"
        R"("on_front":false,"dominated_by":")" +
            good + R"("})");
}

TEST_CASE("neighbours are shown with the values of all objectives") {
  const Shell shell;
  MeritFolder folder(shell);
  const std::string first = folder.ended(0.1, {{"loss", 0.5}, {"size", 5}, {"ms", 10}});
  const std::string second = folder.ended(0.4, {{"loss", 0.25}, {"ms", 10}});
  folder.tell(Value{{"event", "proposed"},
                    {"trial", "2f1e0_00002"},
                    {"origin", "model"},
                    {"results_known", 2},
                    {"pending_known", 0},
                    {"mean", -0.5},
                    {"sd", 0.25},
                    {"acquisition", -1.5},
                    {"neighbours", std::vector<std::string>{first}},
                    {"neighbour_values", list({list({3, 0.75, 7})})}});
  const std::string third = folder.ended(0.2, {{"loss", 0.5}, {"size", 5}, {"ms", 10}});
  const Explanation found = explain(folder.load(), third);
  CHECK(found.goals == std::vector<std::string>{"loss", "size"});
  REQUIRE(found.neighbours.size() == 2);
  CHECK(found.neighbours[0].then == ValueAt{3, 0.75, {0.75, 7}});
  CHECK(found.neighbours[0].newest == ValueAt{1, 0.5, {0.5, 5}});
  CHECK_FALSE(found.neighbours[1].then.has_value());
  CHECK(std::isnan(found.neighbours[1].newest.value().numbers.at(1)));
  const Ended told = shell.tune({"explain", "e", "2"});
  INFO(told.err);
  CHECK_HAS(told.out, "(loss, size) then");
  CHECK_HAS(told.out, "(0.75, 7) at 3");
  CHECK_HAS(told.out, "(0.25, nan) at 1");
  CHECK_HAS(told.out, "of all objectives by weights drawn for this proposal");
  CHECK_HAS(told.out, "by its last result\n  loss 0.5 (min), size 5 (min)\n");
}

TEST_CASE("importance asks for one of several objectives, and takes its mode") {
  const Shell shell;
  MeritFolder folder(shell);
  for (int i = 0; i < 30; ++i) {
    const double x = 0.03 * i + 0.01;
    folder.ended(x, {{"loss", x}, {"size", i % 3}, {"ms", 10}});
  }
  const Ended none = shell.tune({"importance", "e"});
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "it has 2 objectives: say which one, as in --metric loss");
  const Ended told = shell.tune({"importance", "e", "--metric", "loss"});
  INFO(told.err);
  CHECK(told.code == 0);
  CHECK_HAS(told.out, "loss (min): what sets the best");
}

}  // namespace
}  // namespace tune
