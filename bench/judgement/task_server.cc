// Answers what a task would report, for programs in other languages that are measured beside tune:
// so that all of them are asked the same questions by the same files.
//
//   bench_judgement_tasks DIR
//
// One JSON object a line in, one out. {"do": "list"} gives the tasks; {"do": "curve", "task": NAME,
// "metrics": [NAME...], "config": {...}, "through": STEP} the first steps of a curve: its number,
// for each metric its values, and the time of each step; {"do": "further", "curve": NUMBER,
// "metrics": [NAME...]} the others, once; {"do": "ends", "task": NAME, "metric": NAME, "configs":
// [...]} only the last value and the time of whole curves, in order; {"do": "reference", "task":
// NAME, "metric": NAME, "mode": "max"} what tune itself measures regret by. {"do": "restart"} lets
// a table give all of its rows again. A question that makes no sense ends the program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/simulate/task_files.h"

namespace tune::bench {
namespace {

const char* mode_name(const std::optional<Mode>& mode) {
  return !mode ? "" : *mode == Mode::kMin ? "min" : "max";
}

Value describe(const Task& task) {
  Value::List metrics;
  for (const TaskMetric& metric : task.metrics()) {
    metrics.push_back({{"name", metric.name}, {"mode", mode_name(metric.mode)}});
  }
  Value::List conditions;
  for (const TaskCondition& condition : task.conditions()) {
    conditions.push_back({{"parameter", condition.parameter},
                          {"parent", condition.parent},
                          {"values", Value(condition.values)}});
  }
  return {{"name", task.name()},
          {"space", task.flat_space().describe()},
          {"conditions", Value::make_list(std::move(conditions))},
          {"metrics", Value::make_list(std::move(metrics))},
          {"steps", task.steps()},
          {"trials", task.most_trials() ? Value(*task.most_trials()) : Value()}};
}

class Server {
 public:
  explicit Server(const std::string& directory) : tasks_(tasks_in(directory)) {}

  Value answer(const Value& question) {
    const auto what = question.get<std::string>("do");
    if (what == "list") {
      Value::List all;
      for (const auto& task : tasks_) all.push_back(describe(*task));
      return Value::make_list(std::move(all));
    }
    if (what == "restart") {
      given_.clear();
      begun_.clear();
      return Value::make_map();
    }
    if (what == "further") return further(question);
    const auto name = question.get<std::string>("task");
    for (const auto& task : tasks_) {
      if (task->name() != name) continue;
      if (what == "reference") return reference(*task, question);
      return what == "ends" ? ends(*task, question) : curve(*task, question);
    }
    throw Error(ErrorCode::kBadInput, fmt::format("there is no task {}", name));
  }

 private:
  static Value reference(const Task& task, const Value& question) {
    const Mode mode = question.get<std::string>("mode") == "min" ? Mode::kMin : Mode::kMax;
    const Reference found = task.reference({question.get<std::string>("metric"), mode});
    return {{"optimum", found.optimum}, {"median", found.median}, {"training_s", found.training_s}};
  }
  static Value ends(const Task& task, const Value& question) {
    const std::size_t metric = find_metric(task, question.get<std::string>("metric"));
    Value::List all;
    for (const Task::End& end : task.ends(question.get<std::vector<Config>>("configs"), metric)) {
      all.push_back(list({end.value, end.seconds}));
    }
    return Value::make_list(std::move(all));
  }
  Value curve(const Task& task, const Value& question) {
    Begun begun{&task, task.begin(question.get<Config>("config"), given_[task.name()])};
    const std::uint64_t length = begun.curve->length();
    Value answer = steps(begun, question, std::min(question.get<std::uint64_t>("through"), length));
    answer.set("curve", next_);
    if (begun.told < length) begun_.emplace(next_, std::move(begun));
    ++next_;
    return answer;
  }
  Value further(const Value& question) {
    const auto found = begun_.extract(question.get<std::uint64_t>("curve"));
    if (found.empty()) throw Error(ErrorCode::kBadInput, "no steps of this curve are left");
    return steps(found.mapped(), question, found.mapped().curve->length());
  }

  // Of which more steps may be asked for.
  struct Begun {
    const Task* task;
    std::unique_ptr<Curve> curve;
    std::uint64_t told = 0;  // steps
  };
  // Those that were not told yet, through the last one.
  static Value steps(Begun& begun, const Value& question, std::uint64_t last) {
    std::vector<std::size_t> metrics;
    for (const auto& name : question.get<std::vector<std::string>>("metrics")) {
      metrics.push_back(find_metric(*begun.task, name));
    }
    std::vector<std::vector<double>> values(metrics.size());
    Value::List seconds;
    while (begun.told < last) {
      const std::span<const double> told = begun.curve->values(++begun.told);
      for (std::size_t i = 0; i < metrics.size(); ++i) values[i].push_back(told[metrics[i]]);
      seconds.emplace_back(begun.curve->seconds(begun.told));
    }
    return {{"values", Value(values)}, {"seconds", Value::make_list(std::move(seconds))}};
  }

  std::vector<std::unique_ptr<Task>> tasks_;
  std::map<std::string, Task::Given> given_;
  std::map<std::uint64_t, Begun> begun_;
  std::uint64_t next_ = 0;
};

int run(const std::string& directory) {
  Server server(directory);
  for (std::string line; std::getline(std::cin, line);) {
    fmt::print("{}\n", to_json(server.answer(parse_json(line, "the question"))));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  try {
    if (argc != 2)
      throw tune::Error(tune::ErrorCode::kBadInput, "name the folder of tasks, no more");
    return tune::bench::run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
