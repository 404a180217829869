#include "tune/simulate/task_files.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/results/analysis.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/recorded_trials.h"
#include "tune/results/result_text.h"
#include "tune/simulate/curve_table.h"
#include "tune/simulate/surrogate_task.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 3;
constexpr std::uintmax_t kMaxCsvBytes = 256u << 20;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadInput, why);
}

std::string read_bounded(const fs::path& file, std::uintmax_t limit) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) refuse(fmt::format("reading {}: {}", file.string(), error.message()));
  if (size > limit)
    refuse(fmt::format("reading {}: it has more than {} bytes", file.string(), limit));
  return read_file(file);
}

// Of a folder as it was given: "." has a name, too.
std::string name_of(const fs::path& folder) {
  const fs::path full = fs::absolute(folder).lexically_normal();
  return (full.has_filename() ? full : full.parent_path()).filename().string();
}

using Tasks = std::vector<std::unique_ptr<Task>>;

void add_surrogate(const fs::path& folder, Tasks& tasks) {
  constexpr std::uintmax_t kMaxText = 16u << 20;
  const std::string model = (folder / "model.onnx").string();
  SurrogateSpace space({read_bounded(folder / "config_space.json", kMaxText),
                        read_bounded(folder / "param_set.R", kMaxText),
                        read_bounded(folder / "encoding.json", kMaxText), folder.string()});
  Network network(parse_onnx(read_bounded(model, kMaxOnnxBytes), model), model);
  auto surrogate =
      std::make_shared<Surrogate>(name_of(folder), std::move(space), std::move(network));
  for (auto& task : tasks_of(std::move(surrogate))) tasks.push_back(std::move(task));
}

bool holds_curves(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  return file.extension() == ".csv" && std::getline(stream, line) && is_curve_csv(line);
}

void add_tasks(const fs::path& folder, int depth, Tasks& tasks) {
  if (fs::exists(folder / "model.onnx")) add_surrogate(folder, tasks);
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry)) {
      if (depth < kMaxDepth) add_tasks(entry, depth + 1, tasks);
    } else if (holds_curves(entry)) {
      const std::string name = name_of(folder) + "/" + entry.stem().string();
      tasks.push_back(table_task(parse_curve_csv(read_bounded(entry, kMaxCsvBytes), name)));
    }
  }
}

// ---- Experiments

// The numbers of a result that its user reported.
std::vector<std::pair<std::string, double>> numbers_of(const Result& result) {
  std::vector<std::pair<std::string, double>> numbers;
  for (const auto& [path, value] : result.leaves()) {
    const bool is_own =
        result_field_index(path) == kResultFieldNames.size() && !path.starts_with("config/");
    if (is_own && value->is_number()) numbers.emplace_back(path, value->as<double>());
  }
  return numbers;
}

class ExperimentReader {
 public:
  explicit ExperimentReader(const fs::path& directory)
      : directory_(directory), analysis_(Analysis::load(directory)) {}

  RecordedTask read() {
    task_.name = directory_.string();
    task_.space = read_spec(directory_).options.config;
    task_.is_best_of_all_steps = true;
    const auto replaced = first_replaced(directory_);
    for (const TrialSummary& trial : analysis_.trials()) {
      const auto found = replaced.find(trial.id);
      add_row(trial, found != replaced.end() ? &found->second : nullptr);
    }
    if (task_.metrics.empty()) {
      refuse(fmt::format("{}: no trial reported a number", directory_.string()));
    }
    std::size_t longest = 0;
    for (const RecordedCurve& row : task_.rows) longest = std::max(longest, row.seconds.size());
    for (std::size_t i = 0; i < task_.rows.size(); ++i) {
      task_.rows[i].is_whole &= task_.rows[i].seconds.size() == longest;
      fill(task_.rows[i], numbers_[i]);
    }
    return std::move(task_);
  }

 private:
  using Numbers = std::map<std::size_t, double>;  // of a step, by their metric's place

  // What came before a replacement: after it the curve is of another model and configuration.
  void add_row(const TrialSummary& trial, const FirstReplaced* replaced) {
    RecordedCurve row;
    row.label = trial.id;
    row.config = replaced != nullptr ? replaced->before : trial.config();
    row.is_whole = replaced == nullptr;
    std::vector<Numbers>& steps = numbers_.emplace_back();
    for (const Result& result : trial.results()) {
      if (replaced != nullptr && steps.size() == replaced->iteration) break;
      Numbers& step = steps.emplace_back();
      for (const auto& [path, number] : numbers_of(result)) step[place_of(path)] = number;
      const double step_s = result.get_or("time_this_iter_s", 0.0);
      row.seconds.push_back(std::isfinite(step_s) && step_s > 0 ? step_s : 1e-9);
    }
    task_.rows.push_back(std::move(row));
  }
  std::size_t place_of(const std::string& path) {
    const auto [found, is_new] = places_.emplace(path, task_.metrics.size());
    if (is_new) task_.metrics.push_back({path, mode_of(path)});
    return found->second;
  }
  std::optional<Mode> mode_of(const std::string& path) const {
    if (path == analysis_.metric()) return analysis_.mode();
    const auto goal = std::ranges::find(analysis_.objectives(), path, &Goal::metric);
    if (goal == analysis_.objectives().end()) return std::nullopt;
    return goal->mode;
  }
  // All metrics are known now.
  void fill(RecordedCurve& row, const std::vector<Numbers>& steps) const {
    const std::size_t width = task_.metrics.size();
    row.values.assign(steps.size() * width, std::nan(""));
    row.absent.assign(row.values.size(), true);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const auto& [place, number] : steps[i]) {
        row.values[i * width + place] = number;
        row.absent[i * width + place] = false;
      }
    }
  }

  fs::path directory_;
  Analysis analysis_;
  RecordedTask task_;
  std::vector<std::vector<Numbers>> numbers_;  // a row each, a step each
  std::map<std::string, std::size_t> places_;
};

}  // namespace

std::vector<std::unique_ptr<Task>> tasks_in(const fs::path& directory) {
  if (!fs::is_directory(directory)) {
    refuse(fmt::format("reading tasks: there is no folder {}", directory.string()));
  }
  Tasks tasks;
  add_tasks(directory, 0, tasks);
  if (tasks.empty()) {
    refuse(
        fmt::format("reading tasks: {} has none, nor has a folder in it: a task is a folder with "
                    "model.onnx, config_space.json, param_set.R and encoding.json, or a CSV file "
                    "with columns <parameter>, ..., <metric>_0, <metric>_1, ...",
                    directory.string()));
  }
  return tasks;
}

std::unique_ptr<Task> task_of_experiment(const fs::path& directory) {
  return table_task(ExperimentReader(directory).read());
}

}  // namespace tune
