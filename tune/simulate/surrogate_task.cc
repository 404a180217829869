#include "tune/simulate/surrogate_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/simulate/dense_kernel.h"

namespace tune {

namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kInactive = "#na#";
constexpr double kShortestTraining = 1e-3;  // seconds; some networks predict none at all

// The columns of one configuration, but for the epoch.
struct Row {
  std::vector<std::int32_t> categories;
  std::vector<float> numbers;
};

Row row_of(const Surrogate& surrogate, const std::string& task, const Config& given) {
  const SurrogateSpace& space = surrogate.space;
  const Config config = space.flat(given);
  Row row;
  for (const std::string& name : space.category_columns) {
    const auto& codes = space.codes.at(name);
    std::string choice = task;
    if (name != space.task_parameter) {
      const bool is_active = space.is_active(*space.find(name), config);
      choice = is_active ? config.get<std::string>(name) : kInactive;
    }
    const auto code = codes.find(choice);
    if (code == codes.end()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: {}: '{}' has no code", surrogate.name, name, choice));
    }
    row.categories.push_back(code->second);
  }
  for (const std::string& name : space.columns) {
    const SurrogateParameter* parameter = space.find(name);
    if (parameter == nullptr) {  // a budget: all of it
      const auto budget = std::find_if(space.budgets.begin(), space.budgets.end(),
                                       [&](const auto& one) { return one.name == name; });
      row.numbers.push_back(static_cast<float>(budget->high));
    } else if (!space.is_active(*parameter, config)) {
      row.numbers.push_back(0);
    } else {
      const Value& value = config.at(name);
      if (!parameter->holds(value)) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("{}: {}: {} is not from {} to {}", surrogate.name, name,
                                value.dump(), parameter->low, parameter->high));
      }
      row.numbers.push_back(
          static_cast<float>(std::clamp(value.as<double>(), parameter->low, parameter->high)));
    }
  }
  return row;
}

// Where the network gives the time of a whole training; several are added.
std::vector<std::size_t> time_outputs(const SurrogateSpace& space) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < space.outputs.size(); ++i) {
    const std::string& name = space.outputs[i].name;
    if (name == "time" || name == "runtime" || name == "timetrain" || name == "timepredict") {
      found.push_back(i);
    }
  }
  return found;
}

double training_seconds(const Surrogate& surrogate, const float* last) {
  const std::vector<std::size_t> outputs = time_outputs(surrogate.space);
  if (outputs.empty()) return static_cast<double>(surrogate.steps);
  double seconds = 0;
  for (const std::size_t output : outputs) seconds += last[output];
  return std::isfinite(seconds) ? std::max(seconds, kShortestTraining) : kShortestTraining;
}

// Steps are computed as they are asked for, as many at once as the network does.
class SurrogateCurve : public Curve {
 public:
  SurrogateCurve(std::shared_ptr<const Surrogate> surrogate, Row row)
      : surrogate_(std::move(surrogate)), row_(std::move(row)) {
    compute(std::min<std::uint64_t>(kLanes - 1, length()), true);
    step_s_ = training_seconds(*surrogate_, last_.data()) / static_cast<double>(length());
  }

  std::uint64_t length() const override { return surrogate_->steps; }
  double seconds(std::uint64_t) override { return step_s_; }
  std::span<const double> values(std::uint64_t step) override {
    TUNE_CHECK(step >= 1u);
    TUNE_CHECK(step <= length());
    while (values_.size() < step * width()) compute(std::min(computed() + kLanes, length()), false);
    return {values_.data() + (step - 1) * width(), width()};
  }

 private:
  std::size_t width() const { return surrogate_->space.outputs.size(); }
  std::uint64_t computed() const { return values_.size() / width(); }

  // The steps up to this one; `and_last`: the last one beside them, for its time.
  void compute(std::uint64_t through, bool and_last) {
    std::vector<std::int32_t> categories;
    std::vector<float> numbers;
    const auto add = [&](std::uint64_t step) {
      categories.insert(categories.end(), row_.categories.begin(), row_.categories.end());
      numbers.insert(numbers.end(), row_.numbers.begin(), row_.numbers.end());
      if (surrogate_->first_epoch == 0) return;
      numbers[numbers.size() - row_.numbers.size() + surrogate_->epoch_column] =
          static_cast<float>(surrogate_->first_epoch + static_cast<double>(step - 1));
    };
    for (std::uint64_t step = computed() + 1; step <= through; ++step) add(step);
    if (and_last) add(length());
    std::vector<float> found = surrogate_->network.run(categories, numbers);
    if (and_last) {
      last_.assign(found.end() - static_cast<std::ptrdiff_t>(width()), found.end());
      found.resize(found.size() - width());
    }
    values_.insert(values_.end(), found.begin(), found.end());
  }

  std::shared_ptr<const Surrogate> surrogate_;
  Row row_;
  std::vector<float> last_;
  std::vector<double> values_;
  double step_s_ = 0;
};

// Of whole trainings: one row of the network each, with all of its outputs.
std::vector<float> rows_of(const Surrogate& surrogate, const std::string& task,
                           const std::vector<Config>& configs) {
  std::vector<std::int32_t> categories;
  std::vector<float> numbers;
  for (const Config& config : configs) {
    const Row row = row_of(surrogate, task, config);
    categories.insert(categories.end(), row.categories.begin(), row.categories.end());
    numbers.insert(numbers.end(), row.numbers.begin(), row.numbers.end());
  }
  return surrogate.network.run(categories, numbers);
}

std::vector<Task::End> ends_of(const Surrogate& surrogate, const std::string& task,
                               const std::vector<Config>& configs, std::size_t metric) {
  const std::vector<float> found = rows_of(surrogate, task, configs);
  const std::size_t width = surrogate.network.outputs();
  std::vector<Task::End> ends;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const float* row = &found[i * width];
    ends.push_back({row[metric], training_seconds(surrogate, row)});
  }
  return ends;
}

// ---- The reference

constexpr std::uint64_t kReferenceSeed = 7;
constexpr std::size_t kDrawn = 3000;
constexpr int kRounds = 12;
constexpr std::size_t kParents = 20;
constexpr std::size_t kChildren = 40;
constexpr double kFirstStep = 0.12;  // standard deviation, in the unit interval
constexpr double kShrinking = 0.75;
constexpr double kRedrawn = 0.15;  // of categories

using Point = std::vector<double>;  // of the unit cube

class ReferenceSearch {
 public:
  // `metric`: the objective's, as an index.
  ReferenceSearch(const Surrogate& surrogate, const std::string& task, const Objective& objective,
                  std::size_t metric)
      : surrogate_(surrogate),
        task_(task),
        objective_(objective),
        metric_(metric),
        sign_(objective.mode == Mode::kMax ? 1 : -1) {}

  // Random configurations; then twelve rounds around the best, in ever smaller steps.
  Reference run() {
    std::vector<Point> points(kDrawn, Point(surrogate_.space.parameters.size()));
    for (Point& point : points) {
      for (double& unit : point) unit = random_.uniform();
    }
    std::vector<double> seconds;
    std::vector<double> scores = scores_of(points, &seconds);
    Reference reference;
    reference.median = sign_ * median_of_kept(objective_, task_, scores);
    reference.training_s = median_of(seconds);
    double best = *std::max_element(scores.begin(), scores.end());
    double step = kFirstStep;
    for (int round = 0; round < kRounds; ++round, step *= kShrinking) {
      points = around(best_of(points, scores), step);
      scores = scores_of(points, nullptr);
      best = std::max(best, *std::max_element(scores.begin(), scores.end()));
    }
    reference.optimum = sign_ * best;
    return reference;
  }

 private:
  std::vector<double> scores_of(const std::vector<Point>& points, std::vector<double>* seconds) {
    std::vector<Config> configs;
    for (const Point& point : points) configs.push_back(config_at(point));
    std::vector<double> scores;
    const std::vector<float> rows = rows_of(surrogate_, task_, configs);
    const std::size_t width = surrogate_.network.outputs();
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::span<const float> row = std::span(rows).subspan(i * width, width);
      const double score = sign_ * row[metric_];
      scores.push_back(std::isfinite(score) && keeps(row) ? score : kWorstEnd);
      if (seconds != nullptr) seconds->push_back(training_seconds(surrogate_, row.data()));
    }
    return scores;
  }
  bool keeps(std::span<const float> row) const {
    const std::vector<double> values(row.begin(), row.end());
    return keeps_constraints(objective_, surrogate_.space.outputs, values);
  }
  Config config_at(const Point& point) const {
    Config config;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const SurrogateParameter& parameter = surrogate_.space.parameters[i];
      config.set(parameter.name, parameter.at(point[i]));
    }
    return config;
  }
  static std::vector<Point> best_of(const std::vector<Point>& points,
                                    const std::vector<double>& scores) {
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    std::vector<Point> best;
    for (std::size_t i = 0; i < kParents; ++i) best.push_back(points[order[i]]);
    return best;
  }
  std::vector<Point> around(const std::vector<Point>& parents, double step) {
    std::vector<Point> points;
    for (const Point& parent : parents) {
      for (std::size_t child = 0; child < kChildren; ++child) {
        Point point = parent;
        for (std::size_t i = 0; i < point.size(); ++i) {
          if (surrogate_.space.parameters[i].kind != SurrogateParameter::Kind::kCategory) {
            point[i] = std::clamp(point[i] + step * random_.normal(), 0.0, 1.0);
          } else if (random_.uniform() < kRedrawn) {
            point[i] = random_.uniform();
          }
        }
        points.push_back(std::move(point));
      }
    }
    return points;
  }

  const Surrogate& surrogate_;
  const std::string& task_;
  const Objective& objective_;
  std::size_t metric_;
  double sign_;
  RandomStream random_{kReferenceSeed, "reference", 0};
};

// ---- The task

class SurrogateTask : public Task {
 public:
  SurrogateTask(std::shared_ptr<const Surrogate> surrogate, std::string task)
      : surrogate_(std::move(surrogate)),
        task_(std::move(task)),
        name_(surrogate_->name + "/" + task_),
        space_(surrogate_->space.search_space()),
        flat_space_(surrogate_->space.flat_space()) {}

  const std::string& name() const override { return name_; }
  const SearchSpace& space() const override { return space_; }
  const SearchSpace& flat_space() const override { return flat_space_; }
  std::vector<TaskCondition> conditions() const override {
    std::vector<TaskCondition> all;
    for (const SurrogateParameter& parameter : surrogate_->space.parameters) {
      for (const auto& [parent, values] : parameter.conditions) {
        all.push_back({parameter.name, parent, values});
      }
    }
    return all;
  }
  const std::vector<TaskMetric>& metrics() const override { return surrogate_->space.outputs; }
  std::uint64_t steps() const override { return surrogate_->steps; }
  std::unique_ptr<Curve> begin(const Config& config, Given&) const override {
    return std::make_unique<SurrogateCurve>(surrogate_, row_of(*surrogate_, task_, config));
  }
  std::vector<End> ends(const std::vector<Config>& configs, std::size_t metric) const override {
    return ends_of(*surrogate_, task_, configs, metric);
  }
  Reference reference(const Objective& objective) const override {
    const std::size_t metric = find_metric(*this, objective.metric);
    return ReferenceSearch(*surrogate_, task_, objective, metric).run();
  }

 private:
  std::shared_ptr<const Surrogate> surrogate_;
  std::string task_;
  std::string name_;
  SearchSpace space_;
  SearchSpace flat_space_;
};

}  // namespace

Surrogate::Surrogate(std::string its_name, SurrogateSpace its_space, Network its_network)
    : name(std::move(its_name)), space(std::move(its_space)), network(std::move(its_network)) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}/model.onnx: {}", name, why));
  };
  const auto expect = [&](const char* what, std::size_t found, std::size_t wanted) {
    if (found == wanted) return;
    refuse(fmt::format("it has {} {}, param_set.R {}", found, what, wanted));
  };
  expect("categories", network.categories(), space.category_columns.size());
  expect("numbers", network.numbers(), space.columns.size());
  expect("outputs", network.outputs(), space.outputs.size());
  for (std::size_t i = 0; i < space.category_columns.size(); ++i) {
    const std::string& column = space.category_columns[i];
    for (const auto& [choice, code] : space.codes.at(column)) {
      if (code >= 0 && code < network.category_limit(i)) continue;
      refuse(fmt::format("the code {} of {} '{}' is not one of its {}", code, column, choice,
                         network.category_limit(i)));
    }
  }
  for (const SurrogateParameter& budget : space.budgets) {
    if (budget.name != kEpoch || budget.high < 2 || budget.high > 1e6) continue;
    first_epoch = 2;
    steps = static_cast<std::uint64_t>(budget.high) - 1;
    epoch_column = static_cast<std::size_t>(
        std::find(space.columns.begin(), space.columns.end(), kEpoch) - space.columns.begin());
  }
}

std::vector<std::unique_ptr<Task>> tasks_of(std::shared_ptr<const Surrogate> surrogate) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const std::string& task : surrogate->space.tasks) {
    tasks.push_back(std::make_unique<SurrogateTask>(surrogate, task));
  }
  return tasks;
}

}  // namespace tune
