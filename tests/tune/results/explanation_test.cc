// The reasons of trials' proposals and ends and their standing, from an experiment's folder.
#include "tune/results/explanation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/results/recorded_folder.h"
#include "tune/results/recorded_trials.h"

namespace tune {
namespace {

using Source = Explanation::Source;

const SearchSpace kSpace = {{"x", uniform(0, 1)}, {"act", choice({"relu", "tanh"})}};

Config at(double x, const char* act = "relu") {
  return {{"x", x}, {"act", act}};
}

struct Folder : RecordedFolder {
  using Change = std::function<void(RunOptions&)>;
  explicit Folder(const SearchSpace& space, const SearcherSpec& searcher = basic_variant(),
                  const Change& change = {})
      : Folder(std::make_unique<Shell>(), space, searcher, change) {}
  Folder(std::unique_ptr<Shell> own, const SearchSpace& space, const SearcherSpec& searcher,
         const Change& change)
      : RecordedFolder(*own, "e", space, searcher, 40, change), shell(std::move(own)) {}
  Explanation why(const std::string& trial) const { return explain(load(), trial); }
  // So many losses that the stop rule, 27 iterations, is met.
  static std::vector<double> whole(double loss) { return std::vector<double>(27, loss); }
  void began(const std::string& trial) {
    tell(Value{{"event", "attempt_started"}, {"trial", trial}, {"attempt", 1}});
  }
  std::unique_ptr<Shell> shell;
};

std::string id(int number) {
  return "2f1e0_0000" + std::to_string(number);
}

TEST_CASE("a proposal of a model is explained by its numbers, neighbours and what ran then") {
  Folder folder(kSpace, gp());
  folder.add(at(0.1), folder.whole(0.5));
  folder.add(at(0.5, "tanh"), folder.whole(0.2));
  folder.add(at(0.9), folder.whole(0.9));
  folder.began(id(7));
  folder.began(id(8));
  folder.tell(Value{{"event", "attempt_ended"}, {"trial", id(8)}, {"outcome", "lost"}});
  folder.tell(Value{{"event", "proposed"},
                    {"trial", id(3)},
                    {"origin", "model"},
                    {"results_known", 2},
                    {"pending_known", 1},
                    {"mean", 0.75},
                    {"sd", 0.25},
                    {"acquisition", -1.5},
                    {"neighbours", std::vector<std::string>{id(0), id(1)}},
                    {"neighbour_values", list({list({3, 0.625}), list({9, "inf"})})}});
  folder.began(id(9));
  folder.add(at(0.25), folder.whole(0.3));
  const Explanation found = folder.why(id(3));
  CHECK(found.searcher == "gp");
  CHECK(found.source == Source::kProposed);
  REQUIRE(found.proposed.has_value());
  CHECK(found.proposed->origin == "model");
  CHECK(found.proposed->results_known == 2);
  CHECK(found.proposed->pending_known == 1);
  CHECK(found.proposed->mean == 0.75);
  CHECK(found.proposed->standard_deviation == 0.25);
  CHECK(found.proposed->acquisition == -1.5);
  CHECK(found.beside == std::vector<std::string>{id(7)});
  // x is 0.15, 0.25 and 0.65 away; another choice is 1 away.
  REQUIRE(found.neighbours.size() == 3);
  CHECK(found.neighbours[0].trial == id(0));
  CHECK(found.neighbours[0].distance == doctest::Approx(0.15));
  CHECK(found.neighbours[0].named);
  CHECK(found.neighbours[0].then == ValueAt{3, 0.625});
  CHECK(found.neighbours[0].newest->value == 0.5);
  CHECK(found.neighbours[1].trial == id(2));
  CHECK_FALSE(found.neighbours[1].named);
  CHECK(found.neighbours[2].trial == id(1));
  CHECK(found.neighbours[2].distance == doctest::Approx(std::sqrt(1 + 0.25 * 0.25)));
  CHECK_FALSE(found.neighbours[2].then.has_value());  // infinite
}

TEST_CASE("trials that a sweep began with are among the nearest, by folder and id") {
  Folder folder(kSpace, gp(), [](RunOptions& options) { options.warm_start = {"one"}; });
  // As builds wrote it before names, and as they do now.
  folder.write("warm_start.json",
               R"({"format":1,"metric":"loss","trials":[)"
               R"({"config":{"x":0.1,"act":"relu"},"end":"completed","values":[[3,0.25]]},)"
               R"({"trial":"one/b9c40_00002","config":{"x":0.3,"act":"relu"},"end":"stopped",)"
               R"("values":[[1,0.75],[3,0.5]]},)"
               R"({"trial":"one/b9c40_00003","config":{"x":0.9,"act":"relu"},"end":"error",)"
               R"("values":[[1,null]]}]})");
  folder.add(at(0.5), folder.whole(0.2));
  folder.add(at(0.25), folder.whole(0.3));
  const Explanation found = folder.why(id(1));
  REQUIRE(found.neighbours.size() == 4);
  CHECK(found.neighbours[0].trial == "one/b9c40_00002");
  CHECK(found.neighbours[0].distance == doctest::Approx(0.05));
  CHECK(found.neighbours[0].is_earlier);
  CHECK_FALSE(found.neighbours[0].named);
  CHECK(found.neighbours[0].then == ValueAt{3, 0.5});
  CHECK(found.neighbours[0].newest == ValueAt{3, 0.5});
  CHECK(found.neighbours[1].trial == "warm_start.json/0");
  CHECK(found.neighbours[2].trial == id(0));
  CHECK_FALSE(found.neighbours[2].is_earlier);
  CHECK_FALSE(found.neighbours[3].newest.has_value());  // null: it was not finite
  const std::string told = folder.shell->tune({"explain", "e", "1"}).out;
  CHECK_HAS(told, "\n  trial              distance           loss then            loss now\n");
  CHECK_HAS(told, "\n  one/b9c40_00002       0.050            0.5 at 3            0.5 at 3\n");
  const Value json = parse_json(folder.shell->tune({"explain", "e", "1", "--json"}).out, "it");
  CHECK(json.at("neighbours").list()[1].get<bool>("earlier"));
  CHECK_FALSE(json.at("neighbours").list()[2].contains("earlier"));
}

TEST_CASE("rungs tell value, cut-off, rank and verdict; the last verdict tells why it ended") {
  Folder folder(kSpace, gp());
  const std::string trial = folder.add(at(0.1), {0.5, 0.4, 0.4}, "stopped");
  const auto rung = [&](int iteration, double value, int rank, const char* verdict) {
    folder.tell(Value{{"event", "rung"},
                      {"trial", trial},
                      {"iteration", iteration},
                      {"milestone", static_cast<double>(iteration)},
                      {"value", value},
                      {"cut_off", 0.45},
                      {"rank", rank},
                      {"of", 9},
                      {"verdict", verdict}});
  };
  rung(1, 0.5, 3, "go_on");
  rung(3, 0.4, 7, "stop");
  folder.tell(Value{{"event", "verdict"},
                    {"trial", trial},
                    {"iteration", 3},
                    {"verdict", "stop"},
                    {"reason", "0.4 is worse than the cut-off 0.3 of 9 values at iteration 3"}});
  const Explanation found = folder.why(trial);
  REQUIRE(found.steps.size() == 2);
  CHECK(found.steps[0].verdict == "go_on");
  CHECK(found.steps[0].rung->value == 0.5);
  CHECK(found.steps[0].rung->cut_off == 0.45);
  CHECK(found.steps[0].rung->rank == 3);
  CHECK(found.steps[1].verdict == "stop");
  CHECK_HAS(found.steps[1].reason, "cut-off 0.3");
  CHECK(found.end ==
        "the scheduler stopped it after iteration 3: 0.4 is worse than the cut-off 0.3 "
        "of 9 values at iteration 3");
}

TEST_CASE("verdicts without a rung are told as well, as by other schedulers and older versions") {
  Folder folder(kSpace);
  const std::string trial = folder.add(at(0.1), {0.5}, "paused");
  folder.tell(Value{{"event", "verdict"},
                    {"trial", trial},
                    {"iteration", 1},
                    {"verdict", "pause"},
                    {"reason", "4 of 9 have come"}});
  folder.write("results.csv", "trial_id,status\n" + trial + ",TERMINATED\n");
  const Explanation found = folder.why(trial);
  REQUIRE(found.steps.size() == 1);
  CHECK_FALSE(found.steps[0].rung.has_value());
  CHECK(found.end ==
        "the scheduler had paused it after iteration 1: 4 of 9 have come; it did not go "
        "on before the experiment was over");
}

TEST_CASE("random search and grids say that results played no part") {
  Folder random(kSpace);
  CHECK(random.why(random.add(at(0.1), random.whole(0.5))).source == Source::kRandom);
  Folder grid({{"x", uniform(0, 1)}, {"act", grid_search({"relu", "tanh"})}});
  const Explanation cell = grid.why(grid.add(at(0.1, "tanh"), grid.whole(0.5)));
  CHECK(cell.source == Source::kGrid);
  CHECK(cell.grid == std::vector<std::string>{"act = \"tanh\""});
  const Explanation other = grid.why(grid.add(at(0.2, "relu"), grid.whole(0.5)));
  REQUIRE(other.neighbours.size() == 1);
  CHECK(other.neighbours[0].distance == doctest::Approx(std::sqrt(1 + 0.01)));
  CHECK_HAS(grid.shell->tune({"explain", "e", "0"}).out, "a cell of the grid, act = \"tanh\"");
  CHECK_HAS(random.shell->tune({"explain", "e", "0"}).out, "drawn at random by basic_variant");
  Folder by_name(kSpace, random_search());
  by_name.add(at(0.1), by_name.whole(0.5));
  CHECK_HAS(by_name.shell->tune({"explain", "e", "0"}).out,
            "proposed: drawn at random by random, which learns nothing from results\n");
}

TEST_CASE("proposals are told by what the model behind them expects, under auto as well") {
  const Value::Map value = {{"mean", 0.5}, {"sd", 0.25}, {"acquisition", -1.5}};
  const Value::Map density = {{"acquisition", 1.5}};
  const Value::Map earlier = {{"mean", 0.0}, {"sd", 0.0}, {"acquisition", 1.5}};
  const std::string by_density =
      "  expected: exp(1.5) times as likely among good trials as among the others\n";
  const std::string by_value =
      "  expected: mean 0.5, sd 0.25, acquisition -1.5 (0 is the middle trial, a standard "
      "deviation of all is 1, larger is better; acquisition: the logarithm of the expected "
      "improvement)\n";
  const std::string known = "\n  known then: 6 results; trials without one yet: 2\n";
  const auto told = [&](const SearcherSpec& searcher, const Value::Map& numbers,
                        const std::string& origin = "model") {
    Folder folder(kSpace, searcher);
    folder.add(at(0.1), folder.whole(0.5));
    Value event{{"event", "proposed"},
                {"trial", id(1)},
                {"origin", origin},
                {"results_known", 6},
                {"pending_known", 2}};
    for (const auto& [key, number] : numbers) event.set(key, number);
    folder.tell(event);
    folder.add(at(0.2), folder.whole(0.5));
    return folder.shell->tune({"explain", "e", "1"}).out;
  };
  const std::string best = "proposed: the best by the model of ";
  CHECK_HAS(told(gp(), value), best + "gp" + known + by_value);
  Value::Map above = value;
  above.push_back({"margin", 0.3});
  CHECK_HAS(told(gp(), above),
            "the logarithm of the expected improvement, counted from 0.3 above the best)\n");
  CHECK_HAS(told(tpe(), density), best + "tpe" + known + by_density);
  CHECK_HAS(told(tpe(), earlier), best + "tpe" + known + by_density);
  CHECK_HAS(told(automatic(), value), best + "gp, which auto asked" + known + by_value);
  CHECK_HAS(told(automatic(), density), best + "tpe, which auto asked" + known + by_density);
  CHECK_HAS(told(cma_es(), {}), "proposed: drawn by cma_es from what it has learnt" + known);
  CHECK_HAS(told(nsga2(), {{"neighbours", std::vector<std::string>{id(0)}}}),
            "proposed: a child, by nsga2, of the two named below" + known);
  const std::string even = told(halton(), {}, "random");
  CHECK_HAS(even, "proposed: the next of halton's sequence, in which results play no part\n");
  CHECK(even.find("known then") == std::string::npos);
}

TEST_CASE("under constraints an expectation is told in its own scale, or as a chance alone") {
  const auto told = [&](const SearcherSpec& searcher, const Value& numbers) {
    Folder folder(kSpace, searcher,
                  [](RunOptions& options) { options.constraints = {{.metric = "ms", .max = 20}}; });
    folder.add(at(0.1), folder.whole(0.5));
    Value event{{"event", "proposed"}, {"trial", id(1)}, {"origin", "model"}};
    for (const auto& [key, number] : numbers.map()) event.set(key, number);
    folder.tell(event);
    folder.add(at(0.2), folder.whole(0.5));
    return folder.shell->tune({"explain", "e", "1"}).out;
  };
  const Value both{{"mean", -0.5}, {"sd", 0.25}, {"acquisition", -1.5}};
  CHECK_HAS(told(gp(), both),
            "  expected: mean -0.5, sd 0.25, acquisition -1.5 (0 is the best trial that keeps the "
            "constraints, or of all while none does; a standard deviation of all is 1.05, larger "
            "is better; acquisition: the logarithm of the expected improvement and the logarithm "
            "of the chance that the constraints are kept, added; the latter alone while no trial "
            "keeps them)\n");
  Value above = both;
  above.set("margin", 0.3);
  CHECK_HAS(told(gp(), above),
            "of the expected improvement, counted from 0.3 above the best, and the logarithm of "
            "the chance that the constraints are kept, added;");
  const std::string by_chance =
      "  expected: acquisition -0.5 (the logarithm of the chance that the constraints are kept: "
      "values of the metric say nothing yet)\n";
  CHECK_HAS(told(gp(), {{"acquisition", -0.5}}), by_chance);
  // Without a mean it is gp's all the same, as the event says.
  const std::string by_auto = told(automatic(), {{"acquisition", -0.5}, {"model", "gp"}});
  CHECK_HAS(by_auto, "the best by the model of gp, which auto asked");
  CHECK_HAS(by_auto, by_chance);
  CHECK_HAS(told(automatic(), {{"acquisition", 1.5}, {"model", "tpe"}}),
            "  expected: exp(1.5) times as likely among good trials as among the others\n");
}

TEST_CASE("a model that hands over to another is told by the other's name") {
  Folder folder(kSpace, gp());
  folder.add(at(0.1), folder.whole(0.5));
  folder.tell(Value{{"event", "proposed"},
                    {"trial", id(1)},
                    {"origin", "model"},
                    {"model", "nsga2"},
                    {"neighbours", std::vector<std::string>{id(0)}}});
  folder.add(at(0.2), folder.whole(0.5));
  CHECK_HAS(folder.shell->tune({"explain", "e", "1"}).out,
            "proposed: a child, by nsga2, of the two named below");
}

// The sources of trials 0, 1, 2 ... with the point that was given: "0", "1", or "-" for none.
std::string given(const Folder& folder, int trials) {
  std::string text;
  for (int i = 0; i < trials; ++i) {
    const Explanation found = folder.why(id(i));
    if (found.source == Source::kAdded) {
      text += "+";
    } else {
      text += found.source == Source::kGiven ? std::to_string(found.given) : "-";
    }
  }
  return text;
}

TEST_CASE("points_to_evaluate are told by the trials that they were given to, and no others") {
  const auto points = [](std::vector<Config> all) {
    return [all](RunOptions& options) { options.points_to_evaluate = all; };
  };
  // Random search: the first two samples; a later one that is alike was drawn.
  Folder random(kSpace, random_search(), points({{{"act", "tanh"}}, Config()}));
  for (const char* act : {"tanh", "relu", "tanh", "tanh"}) random.add(at(0.1, act), {0.5});
  CHECK(given(random, 4) == "01--");
  // A grid: the first point leaves x, of which there are two; the second has a cell of its own.
  Folder grid({{"x", grid_search({0.25, 0.5})}, {"act", choice({"relu", "tanh"})}}, every_cell(),
              points({{{"act", "tanh"}}, {{"x", 0.5}}}));
  for (const double x : {0.25, 0.5, 0.5, 0.25, 0.5}) grid.add(at(x, "tanh"), {0.5});
  CHECK(given(grid, 5) == "001--");
  // A user added one in between: those after it are the sweep's later suggestions.
  for (const SearcherSpec& searcher : {gp(), tpe(), cma_es(), nsga2(), halton(), random_search()}) {
    CAPTURE(searcher.name());
    Folder shifted(kSpace, searcher, points({at(0.1), at(0.2), at(0.3)}));
    shifted.add(at(0.1), {0.5});
    const std::string added = shifted.add(at(0.3), {0.5});
    shifted.tell(Value{{"event", "order"}, {"trial", added}, {"order", "add"}, {"user", "ada"}});
    for (const double x : {0.2, 0.3, 0.3}) shifted.add(at(x), {0.5});
    CHECK(given(shifted, 5) == "0+12-");
  }
}

TEST_CASE("what a scheduler gave trials later is not a proposal: they stand where they began") {
  Folder folder(kSpace);
  const std::string other = folder.add(at(0.9), folder.whole(0.5));
  const std::string trial = folder.add(at(0.9), folder.whole(0.5));
  const auto replace = [&](const std::string& one, double x) {
    folder.tell(Value{{"event", "replaced"},
                      {"trial", one},
                      {"iteration", 2},
                      {"old", at(x)},
                      {"new", at(0.9)},
                      {"reason", "it is among the lowest 1 of 4"}});
  };
  replace(other, 0.25);
  replace(trial, 0.5);
  replace(trial, 0.75);
  const Explanation found = folder.why(trial);
  CHECK(found.config == at(0.9));
  CHECK(found.proposed_config == at(0.5));
  REQUIRE(found.neighbours.size() == 1);
  CHECK(found.neighbours[0].distance == doctest::Approx(0.25));
  REQUIRE(found.steps.size() == 2);
  CHECK(found.steps[0].verdict == "replace");
  CHECK_HAS(found.steps[0].reason, "lowest 1 of 4");
}

// As ResultView has it, by which the stop rule ended it.
TEST_CASE("the count of steps that a trial's own text hides in its files is found all the same") {
  Folder folder(kSpace);
  const std::string other = folder.add(at(0.9), {0.5});
  std::string lines;
  for (int i = 1; i <= 27; ++i) {
    lines += to_json(Value{{"loss", 0.3},
                           {"training_iteration", "epoch " + std::to_string(i)},
                           {"done", i == 27}}) +
             "\n";
  }
  folder.write(other + "/result.json", lines);
  CHECK(folder.why(other).end == "it met the stop rule training_iteration >= 27: 27");
  const std::string trial = folder.add(at(0.9), folder.whole(0.5));
  const Explanation found = folder.why(trial);
  REQUIRE(found.neighbours.size() == 1);
  REQUIRE(found.neighbours[0].newest);
  CHECK(found.neighbours[0].newest->iteration == 27);
  const Analysis analysis = folder.load();
  CHECK(analysis.best_trial("training_iteration", Mode::kMax).id == other);
  CHECK(analysis.best_trial("training_iteration", Mode::kMax, Scope::kAll).id == other);
  const std::vector<RecordedTrial> recorded = recorded_trials(analysis, "training_iteration");
  REQUIRE(recorded.front().id == other);
  CHECK(recorded.front().values.back() == ValueAt{27, 27});
}

TEST_CASE("why a trial ended is told for each way to end") {
  Folder folder(kSpace);
  CHECK(folder.why(folder.add(at(0.1), folder.whole(0.5))).end ==
        "it met the stop rule training_iteration >= 27: 27");
  const std::string done = folder.add(at(0.1), {0.5});
  CHECK(folder.why(done).end == "it came to its own end: its trainable said that it is done");

  const std::string failed = folder.add(at(0.1), {}, "signal");
  folder.tell(Value{{"event", "failure"},
                    {"trial", failed},
                    {"cause", "killed by signal 11 (SIGSEGV)"},
                    {"failures", 1}});
  folder.write(failed + "/error.txt", "--- attempt 1 in ERROR\n");
  CHECK(folder.why(failed).end ==
        "it failed: killed by signal 11 (SIGSEGV) (1 of at most 1 failures)");

  const std::string running = folder.add(at(0.1), {}, "lost");
  folder.write(running + "/result.json", "{\"loss\":0.5,\"done\":false}\n");
  CHECK_HAS(folder.why(running).end, "it has not ended: it runs");

  const std::string cut = folder.add(at(0.1), {0.5}, "stopped");
  folder.tell(Value{{"event", "notice"}, {"text", "the time budget of 60 s is spent: ..."}});
  CHECK_HAS(folder.why(cut).end, "all trials were ended: the time budget of 60 s is spent");
}

TEST_CASE("what users have ordered of a trial is told, and why it rests or ended by that") {
  Folder folder(kSpace);
  const auto order = [&](const std::string& trial, const char* what, const char* why) {
    folder.tell(Value{{"event", "order"},
                      {"trial", trial},
                      {"order", what},
                      {"iteration", 3},
                      {"user", "ada"},
                      {std::string(what) == "note" ? "text" : "reason", why}});
  };
  const std::string paused = folder.add(at(0.1), {}, "paused");
  folder.write(paused + "/result.json", "{\"loss\":0.5,\"done\":false}\n");
  order(paused, "pause", "the GPU is needed");
  order(paused, "note", "looks odd");
  const Explanation rests = folder.why(paused);
  CHECK(rests.end ==
        "it has not ended: ada paused it after iteration 3: the GPU is needed; tune unpause lets "
        "it go on");
  REQUIRE(rests.orders.size() == 2);
  CHECK(rests.orders[1].text == "looks odd");

  const std::string stopped = folder.add(at(0.1), {0.5}, "stopped");
  order(stopped, "stop", "too slow");
  CHECK(folder.why(stopped).end == "ada stopped it after iteration 3: too slow");
  CHECK(to_value(folder.why(stopped)).at("orders").list().size() == 1);

  const std::string added = folder.add(at(0.1), folder.whole(0.5));
  order(added, "add", "a guess");
  CHECK(folder.why(added).source == Explanation::Source::kAdded);
  const Ended told = folder.shell->tune({"explain", "e", added.c_str()});
  CHECK_HAS(told.out, "proposed: added by ada while the sweep ran: a guess");
  CHECK_HAS(told.out, "by users\n  iteration 3: add by ada: a guess\n");
}

TEST_CASE("tune explain prints all of it, or JSON, and refuses trials that are not there") {
  Folder folder(kSpace, gp());
  folder.add(at(0.1), folder.whole(0.5));
  folder.tell(Value{{"event", "proposed"},
                    {"trial", id(1)},
                    {"origin", "fallback"},
                    {"results_known", 6},
                    {"pending_known", 0},
                    {"note", "all results are alike"}});
  folder.add(at(0.2), folder.whole(0.5));
  const Ended told = folder.shell->tune({"explain", "e", "1"});
  INFO(told.err);
  CHECK(told.code == 0);
  CHECK_HAS(told.out,
            "trial 2f1e0_00001, TERMINATED: {\"x\":0.2,\"act\":\"relu\"}\n"
            "proposed: drawn by gp, which had no model\n  all results are alike\n"
            "  known then: 6 results; trials without one yet: 0\n");
  CHECK_HAS(told.out, "2f1e0_00000      0.100");
  CHECK_HAS(told.out, "it met the stop rule");
  const Value value = parse_json(folder.shell->tune({"explain", "e", "1", "--json"}).out, "it");
  CHECK(value.get<std::string>("source") == "proposed");
  CHECK(value.get<std::string>("proposed/origin") == "fallback");
  CHECK(value.get<int>("proposed/results_known") == 6);
  CHECK(value.at("neighbours").list().size() == 1);
  const Ended none = folder.shell->tune({"explain", "e", "9"});
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "there is no trial '9'");
  CHECK(folder.shell->tune({"explain", "e"}).code == 2);
  CHECK(folder.shell->tune({"explain", "nowhere", "1"}).code == 2);
}

}  // namespace
}  // namespace tune
