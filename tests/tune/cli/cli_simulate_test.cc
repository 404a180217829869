// tune simulate: what it prints, and what it refuses.
#include <doctest/doctest.h>

#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/cli/shell.h"
#include "tune/simulate/dominated_share.h"
#include "tune/simulate/said.h"
#include "tune/spec/experiment_spec.h"

namespace tune {
namespace {

const char* const kAsha =
    "num_samples: -1\nscheduler: {asha: {max_t: 9, reduction_factor: 3, rule: top}}\n";
const char* const kFifo = "num_samples: -1\n";

const std::string& tasks() {
  static const std::string folder = data().string();
  return folder;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("simulate shows sweeps side by side, one row each") {
  const Shell shell;
  shell.write("asha.yaml", kAsha);
  shell.write("fifo.yaml", kFifo);
  const Ended ended = shell.tune({"simulate", "asha.yaml", "fifo.yaml", "--tasks", tasks().c_str(),
                                  "--task", "tiny_curves", "--trainings", "10", "--seeds", "3"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.err.empty());
  const auto lines = lines_of(ended.out);
  REQUIRE(lines.size() == 3);
  CHECK_HAS(lines[0], "trials that ended at a step");
  CHECK(lines[1].starts_with("asha.yaml"));
  CHECK(lines[2].starts_with("fifo.yaml"));
  CHECK_HAS(lines[1], "     6  ");  // two tasks, three seeds
}

TEST_CASE("simulate --json gives a run a line, the same each time") {
  const Shell shell;
  shell.write("asha.yaml", kAsha);
  const std::vector<const char*> arguments = {"simulate",     "asha.yaml",
                                              "--tasks",      tasks().c_str(),
                                              "--task",       "tiny_curves/14",
                                              "--set",        "seed=5",
                                              "--trainings",  "10",
                                              "--seeds",      "2",
                                              "--workers",    "2",
                                              "--start-cost", "1",
                                              "--json"};
  const Ended ended = shell.tune(arguments);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto lines = lines_of(ended.out);
  REQUIRE(lines.size() == 2);
  const Value run = parse_json(lines[1], "the second run");
  CHECK(run.get<std::string>("sweep") == "asha.yaml");
  CHECK(run.get<std::string>("task") == "tiny_curves/14");
  CHECK(run.get<int>("seed") == 6);
  CHECK(run.get<int>("workers") == 2);
  CHECK(run.get<std::vector<double>>("regret").size() == 3);
  CHECK(run.get<int>("trials") > 5);
  CHECK(run.get<double>("seconds") == doctest::Approx(run.get<double>("budget_s")));
  CHECK(run.get<double>("optimum") > run.get<double>("median"));
  const auto best = run.get<std::vector<Value>>("best");
  REQUIRE(!best.empty());
  // The regret at the end is that of the last of the best values.
  const double value = best.back().list().back().as<double>();
  const double regret = (run.get<double>("optimum") - value) /
                        (run.get<double>("optimum") - run.get<double>("median"));
  CHECK(run.get<std::vector<double>>("regret")[2] == doctest::Approx(regret));
  const auto without_time = [](const std::string& line) {
    return line.substr(0, line.find("\"suggestion_s\""));
  };
  CHECK(without_time(lines_of(shell.tune(arguments).out)[1]) == without_time(lines[1]));
}

TEST_CASE("references can be given, so that others measure by the same") {
  const Shell shell;
  shell.write("fifo.yaml", kFifo);
  shell.write("r.json", R"({"tiny_curves":{"12":{"val_accuracy":)"
                        R"({"optimum":200,"median":100,"training_s":7.5}}}})");
  const auto run = [&](const char* file) {
    return shell.tune({"simulate", "fifo.yaml", "--tasks", tasks().c_str(), "--task",
                       "tiny_curves/12", "--trainings", "8", "--references", file, "--json"});
  };
  const Ended ended = run("r.json");
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const Value found = parse_json(ended.out, "the run");
  CHECK(found.get<double>("optimum") == 200);
  CHECK(found.get<double>("budget_s") == 15);  // 8 trainings of 7.5 s on 4 workers
  shell.write("broken.json", R"({"tiny_curves":{"12":{"val_accuracy":{"optimum":200}}}})");
  CHECK(run("broken.json").code == 2);
  CHECK_HAS(run("broken.json").err, "reading broken.json: ");
}

TEST_CASE("under several objectives regret is what no trial dominates between optima and medians") {
  const Shell shell;
  shell.write("several.yaml",
              "num_samples: 12\nsearcher: random\nseed: 3\n"
              "objectives: [{metric: val_accuracy}, {metric: time, mode: min}]\n");
  const auto run = [&](std::vector<const char*> more) {
    std::vector<const char*> arguments = {"simulate", "several.yaml",   "--tasks", tasks().c_str(),
                                          "--task",   "tiny_curves/12", "--seeds", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = shell.tune(arguments);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return ended.out;
  };
  const Value found = parse_json(run({"--json"}), "the run");
  const auto optimum = found.get<std::vector<double>>("optimum");
  const auto median = found.get<std::vector<double>>("median");
  REQUIRE(optimum.size() == 2);
  REQUIRE(median.size() == 2);
  CHECK(optimum[0] > median[0]);
  CHECK(optimum[1] < median[1]);
  const auto points = found.get<std::vector<Value>>("points");
  CHECK(points.size() == 12);  // without a scheduler a trial counts at its end
  std::vector<std::vector<double>> front;
  for (const Value& point : points) {
    std::vector<double> values;
    for (const Value& value : point.list()[3].list()) values.push_back(value.as<double>());
    REQUIRE(values.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      values[i] = (optimum[i] - values[i]) / (optimum[i] - median[i]);
    }
    front.push_back(values);
  }
  const auto regret = found.get<std::vector<double>>("regret");
  CHECK(regret[2] == doctest::Approx(1 - dominated_share(front)));
  CHECK(regret[2] < 1);
  CHECK(regret[0] >= regret[1]);
  CHECK(regret[1] >= regret[2]);
  CHECK_HAS(run({}), fmt::format("{:.3f}", regret[2]));

  shell.write("r.json", R"({"tiny_curves":{"12":{)"
                        R"("val_accuracy":{"optimum":200,"median":-100,"training_s":7.5},)"
                        R"("time":{"optimum":0,"median":1e9,"training_s":1}}}})");
  const Value given = parse_json(run({"--json", "--references", "r.json"}), "the run");
  CHECK(given.get<std::vector<double>>("optimum") == std::vector<double>{200, 0});
}

TEST_CASE("simulate refuses what it cannot play, and says why") {
  const Shell shell;
  shell.write("fifo.yaml", kFifo);
  shell.write(
      "other.yaml",
      "num_samples: 2\nconfig: {lr: {loguniform: [1e-3, 1]}, momentum: {uniform: [0, 1]}}\n");
  shell.write("loss.yaml", "num_samples: 2\nmetric: loss\nmode: min\n");
  shell.write(
      "several.yaml",
      "num_samples: 2\nobjectives: [{metric: val_accuracy}, {metric: latency, mode: min}]\n");
  shell.write("bound.yaml", "num_samples: 2\nconstraints: [{metric: latency, max: 2}]\n");
  shell.write("wrong.yaml", "num_sampels: 2\n");
  std::filesystem::create_directory(shell.path() / "empty");
  const auto why = [&](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "simulate");
    const Ended ended = shell.tune(arguments);
    CHECK(ended.code == 2);
    CHECK(ended.out.empty());
    return ended.err;
  };
  const char* folder = tasks().c_str();
  CHECK_HAS(why({"fifo.yaml"}), "on what? give --tasks DIR");
  CHECK_HAS(why({"fifo.yaml", "--tasks", "nowhere"}), "reading tasks: there is no folder nowhere");
  CHECK_HAS(why({"fifo.yaml", "--tasks", "empty"}), "reading tasks: empty has none");
  CHECK_HAS(why({"fifo.yaml", "--from", "empty"}), "empty");
  CHECK_HAS(why({"fifo.yaml", "--tasks", folder, "--task", "tiny_curves/13"}),
            "--task tiny_curves/13: there is no such task, or it is named twice: did you mean "
            "tiny_curves/1");
  CHECK_HAS(why({"fifo.yaml", "--tasks", folder, "--task", "tiny_curves", "--metric", "acc"}),
            "tiny_curves/12 has no metric 'acc': it has time, val_accuracy");
  CHECK_HAS(why({"loss.yaml", "--tasks", folder}), "has no metric 'loss'");
  CHECK_HAS(why({"several.yaml", "--tasks", folder, "--task", "tiny_curves"}),
            "has no metric 'latency'");
  CHECK_HAS(why({"bound.yaml", "--tasks", folder}), "has no metric 'latency'");
  CHECK_HAS(why({"fifo.yaml", "--tasks", folder}), "-1 has no end");
  CHECK_HAS(why({"wrong.yaml", "--tasks", folder}), "wrong.yaml:1: num_sampels: unknown key");
  const std::string misfits = why({"other.yaml", "--tasks", folder, "--task", "tiny_curves"});
  CHECK_HAS(misfits, "other.yaml: config/lr: tiny_curves/12 has no parameter of that name");
  CHECK_HAS(misfits, "config/momentum: 0.0 is not within the task's 0.1 to 0.99");
  CHECK_HAS(misfits, "config/batch_size: is missing");
}

TEST_CASE("a metric that is named without a mode has that of the task") {
  const Shell shell;
  shell.write("time.yaml", "num_samples: 2\nmetric: time\n");
  shell.write("max.yaml", "num_samples: 2\nmetric: time\nmode: max\n");
  shell.write("asha.yaml", "num_samples: 2\nscheduler: {asha: {metric: time, max_t: 9}}\n");
  shell.write("several.yaml",
              "num_samples: 2\nobjectives: [{metric: time}, {metric: val_accuracy}]\n");
  shell.write("most.yaml",
              "num_samples: 2\nobjectives: [{metric: time, mode: max}, {metric: val_accuracy}]\n");
  const auto run = [&](const char* sweep) {
    const Ended ended = shell.tune({"simulate", sweep, "--tasks", tasks().c_str(), "--task",
                                    "tiny_curves/12", "--seeds", "1", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return parse_json(ended.out, sweep);
  };
  const auto is_min = [&](const char* sweep) {
    return run(sweep).get<double>("optimum") < run(sweep).get<double>("median");
  };
  CHECK(is_min("time.yaml"));
  CHECK_FALSE(is_min("max.yaml"));
  CHECK(is_min("asha.yaml"));
  const auto first_is_min = [&](const char* sweep) {
    const Value found = run(sweep);
    const auto optimum = found.get<std::vector<double>>("optimum");
    const auto median = found.get<std::vector<double>>("median");
    CHECK(optimum[1] > median[1]);
    return optimum[0] < median[0];
  };
  CHECK(first_is_min("several.yaml"));
  CHECK_FALSE(first_is_min("most.yaml"));
}

// Four trials of a finished experiment; the third was stopped after a step.
void write_experiment(const Shell& shell, const SearchSpace& space = {{"lr", uniform(0, 1)}}) {
  RunOptions options;
  options.name = "e";
  options.metric = "loss";
  options.mode = Mode::kMin;
  options.seed = 3;
  options.config = space;
  options.stop = {{"training_iteration", 2}};
  std::vector<Complaint> complaints;
  const ExperimentSpec spec = make_spec(options, "T", false, complaints);
  REQUIRE(complaints.empty());
  shell.write("e/experiment.json", to_json(to_value(spec)));
  shell.write("e/run.json",
              R"({"state":"finished","driver_pid":1,"hostname":"h","store":"","prefix":"p"})");
  for (const auto& [trial, lr, losses] :
       {std::tuple("2f1e0_00000", "0.1", std::vector<std::string>{"0.9", "0.5"}),
        std::tuple("2f1e0_00001", "0.4", std::vector<std::string>{"0.125", "0.25"}),
        std::tuple("2f1e0_00002", "0.7", std::vector<std::string>{"2"}),
        std::tuple("2f1e0_00003", "0.9", std::vector<std::string>{"0.7", "0.75"})}) {
    const std::string folder = std::string("e/") + trial;
    shell.write(folder + "/params.json", fmt::format(R"({{"lr":{}}})", lr));
    std::string lines;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      lines += fmt::format(
          "{{\"loss\":{},\"training_iteration\":{},\"time_this_iter_s\":10.0,\"done\":false}}\n",
          losses[i], i + 1);
    }
    shell.write(folder + "/result.json", lines);
  }
}

TEST_CASE("an earlier experiment's trials are played under another scheduler") {
  const Shell shell;
  write_experiment(shell);
  shell.write("fifo.yaml",
              "plugin: gone.so\ntrainable: T\nnum_samples: 4\nmetric: loss\nmode: min\n");
  const Ended fifo =
      shell.tune({"simulate", "fifo.yaml", "--from", "e", "--workers", "1", "--json"});
  INFO(fifo.err);
  REQUIRE(fifo.code == 0);
  const Value run = parse_json(fifo.out, "the run");
  CHECK(run.get<int>("trials") == 4);
  CHECK(run.get<double>("seconds") == 70);  // seven steps of ten seconds
  CHECK(run.get<int>("ends_of_record") == 1);
  CHECK_HAS(fifo.err, "1 trials a run would have gone on, but were recorded no farther");
  // The best value of any step, as the best so far is; the median of the last values 0.5, 0.25, 2
  // and 0.75.
  CHECK(run.get<double>("optimum") == 0.125);
  CHECK(run.get<double>("median") == 0.625);
  CHECK(run.get<std::vector<double>>("regret")[2] == 0);

  shell.write("more.yaml", "num_samples: 5\n");
  CHECK_HAS(shell.tune({"simulate", "more.yaml", "--from", "e"}).err,
            "e has 4 recorded trials, the sweep asks for 5");
  shell.write("wide.yaml", "num_samples: 4\nconfig: {lr: {uniform: [0, 2]}}\n");
  CHECK_HAS(shell.tune({"simulate", "wide.yaml", "--from", "e"}).err,
            "wide.yaml: config/lr: 2.0 is not within the task's 0 to 1");
  shell.write("acc.yaml", "num_samples: 4\nmetric: acc\n");
  CHECK_HAS(shell.tune({"simulate", "acc.yaml", "--from", "e"}).err,
            "e has no metric 'acc': it has loss");
  shell.write("turned.yaml", "num_samples: 4\nmetric: loss\n");  // the experiment's own mode
  const Ended turned = shell.tune({"simulate", "turned.yaml", "--from", "e", "--json"});
  CHECK(parse_json(turned.out, "the run").get<double>("optimum") == 0.125);
}

TEST_CASE("what sample_from gave follows from the rest, and may be left out") {
  const Shell shell;
  const auto twice = [](const Config& config) { return Value(2 * config.get<double>("lr")); };
  write_experiment(shell, {{"lr", uniform(0, 1)},
                           {"w", sample_from(twice)},
                           {"o", choice({{{"k", "a"}, {"y", sample_from(twice)}}, {{"k", "b"}}})}});
  shell.write("none.yaml", "num_samples: 4\n");
  shell.write("own.yaml",
              "num_samples: 4\nconfig: {lr: {uniform: [0, 1]}, o: {choice: [{k: a}, {k: b}]}}\n");
  for (const char* sweep : {"none.yaml", "own.yaml"}) {
    const Ended ended = shell.tune({"simulate", sweep, "--from", "e", "--json"});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    CHECK(parse_json(ended.out, sweep).get<int>("trials") == 4);
  }
}

}  // namespace
}  // namespace tune
