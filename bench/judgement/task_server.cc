// Answers what a task would report, for programs in other languages that are measured beside tune:
// so that all of them are asked the same questions by the same files.
//
//   bench_judgement_tasks DIR
//
// One JSON object a line in, one out. {"do": "list"} gives the tasks; {"do": "curves", "task":
// NAME, "metrics": [NAME...], "configs": [...]} one curve a configuration, in order: for each
// metric its values, and the time of each step; {"do": "ends", "metric": NAME, ...} only the last
// value and the time of the whole; {"do":
// "reference", "mode": "max", ...} what tune itself measures regret by. {"do": "restart"} lets a
// table give all of its rows again. A question that makes no sense ends the program.
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
      return Value::make_map();
    }
    const auto name = question.get<std::string>("task");
    for (const auto& task : tasks_) {
      if (task->name() != name) continue;
      if (what == "reference") return reference(*task, question);
      return what == "ends" ? ends(*task, question) : curves(*task, question);
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
  Value curves(const Task& task, const Value& question) {
    std::vector<std::size_t> metrics;
    for (const auto& name : question.get<std::vector<std::string>>("metrics")) {
      metrics.push_back(find_metric(task, name));
    }
    Value::List all;
    for (const Config& config : question.get<std::vector<Config>>("configs")) {
      const auto curve = task.begin(config, given_[task.name()]);
      std::vector<std::vector<double>> values(metrics.size());
      Value::List seconds;
      for (std::uint64_t step = 1; step <= curve->length(); ++step) {
        const std::span<const double> told = curve->values(step);
        for (std::size_t i = 0; i < metrics.size(); ++i) values[i].push_back(told[metrics[i]]);
        seconds.emplace_back(curve->seconds(step));
      }
      all.push_back({{"values", Value(values)},
                     {"seconds", Value::make_list(std::move(seconds))}});
    }
    return Value::make_list(std::move(all));
  }

  std::vector<std::unique_ptr<Task>> tasks_;
  std::map<std::string, Task::Given> given_;
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
