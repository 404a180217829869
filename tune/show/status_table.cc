#include "tune/show/status_table.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/result_view.h"
#include "schedulers/merit.h"
#include "tune/results/result_fields.h"
#include "tune/results/result_text.h"
#include "tune/show/status_block.h"
#include "tune/spec/objectives.h"

namespace tune {

namespace {

constexpr std::size_t kOtherMetrics = 3;
constexpr std::size_t kFirstParameters = 2;  // those that weigh more than other metrics
constexpr std::size_t kMaxCellWidth = 40;

struct Column {
  std::string name;
  int weight = 0;  // those of less are left out first
  bool right = false;
  std::vector<std::string> cells = {};
  std::size_t width = 0;
};

std::string short_name(const std::string& metric) {
  static const std::map<std::string, std::string> kShort = {{"mean_accuracy", "acc"},
                                                            {"mean_loss", "loss"},
                                                            {"training_iteration", "iter"},
                                                            {"time_total_s", "total time (s)"}};
  const auto found = kShort.find(metric);
  return found == kShort.end() ? metric : found->second;
}

std::string cell_text(const Value& value) {
  if (value.type() == Value::Type::kFloat) return fmt::format("{:.6g}", value.number());
  return fitted(one_line(value.is_string() ? value.string() : value.dump()), kMaxCellWidth);
}

// A number by ResultView's rule, else the value as it was reported.
std::string result_cell(const Value& result, const Trial& trial, const std::string& path) {
  const Value* reported = result.find(path);
  const bool is_number = reported != nullptr && reported->is_number();
  if (!is_number && trial.last) {
    if (const auto own = framework_field(*trial.last, path)) return cell_text(*own);
  }
  return reported == nullptr ? "" : cell_text(*reported);
}

// Names of the metric columns, in their order.
std::vector<std::string> metric_columns(const ExperimentStatus& status,
                                        const ReporterOptions& options,
                                        const std::vector<std::string>& reported_last) {
  if (!options.metrics.empty()) return options.metrics;
  std::vector<std::string> reported = reported_last;
  const std::string& metric = status.options.metric;
  const bool has_metric = std::any_of(status.trials.begin(), status.trials.end(),
                                      [](const Trial& trial) { return trial.metric.has_value(); });
  if (has_metric && std::find(reported.begin(), reported.end(), metric) == reported.end()) {
    reported.push_back(metric);
  }
  std::vector<std::string> columns;
  for (const char* usual : {"mean_accuracy", "mean_loss"}) {
    if (std::find(reported.begin(), reported.end(), usual) != reported.end()) {
      columns.push_back(usual);
    }
  }
  columns.insert(columns.end(), {"training_iteration", "time_total_s"});
  std::vector<std::string> others;
  for (const std::string& name : reported) {
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) others.push_back(name);
  }
  // The metric that decides has its place among the first; several all have one.
  const std::vector<std::string> deciding = metrics_of(objective_of(status.options));
  const auto decides = [&](const std::string& name) {
    return std::find(deciding.begin(), deciding.end(), name) != deciding.end();
  };
  const auto count = std::count_if(others.begin(), others.end(), decides);
  std::size_t room = kOtherMetrics - std::min(kOtherMetrics, static_cast<std::size_t>(count));
  std::erase_if(others, [&](const std::string& name) {
    if (decides(name)) return false;
    if (room == 0) return true;
    --room;
    return false;
  });
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

std::vector<std::string> parameter_columns(const ExperimentStatus& status,
                                           const ReporterOptions& options) {
  if (!options.parameters.empty()) return options.parameters;
  return status.options.config.searched_paths();
}

// Where it runs, or ran at last, if that node is still there; empty: it is not known.
std::string node_of(const ExperimentStatus& status, const Trial& trial) {
  if (trial.placement) {
    const auto runs_on = status.nodes.find(trial.placement->agent);
    return runs_on == status.nodes.end() ? "" : runs_on->second;
  }
  const auto ran_on = status.hosts.find(trial.location.substr(0, trial.location.rfind(':')));
  return ran_on == status.hosts.end() ? "" : ran_on->second;
}

void add_trial_columns(const ExperimentStatus& status, const std::vector<const Trial*>& rows,
                       std::vector<Column>& columns) {
  const std::string prefix = status.trainable + "_";
  const std::string experiment = status.experiment_id;
  Column name{.name = "Trial name", .weight = 1000};
  Column state{.name = "status", .weight = 999};
  Column location{.name = "loc", .weight = 0};
  Column node{.name = "node", .weight = 650};
  for (const Trial* trial : rows) {
    const auto& front = status.pareto;
    const bool is_in_front = std::find(front.begin(), front.end(), trial->number) != front.end();
    name.cells.push_back(prefix + trial_id(experiment, trial->number) + (is_in_front ? " *" : ""));
    state.cells.push_back(status_name(trial->status));
    location.cells.push_back(trial->location);
    node.cells.push_back(node_of(status, *trial));
  }
  columns = {std::move(name), std::move(state), std::move(location)};
  if (status.nodes.size() > 1) columns.push_back(std::move(node));
}

void add_parameters(const std::vector<std::string>& paths, const std::vector<const Trial*>& rows,
                    std::vector<Column>& columns) {
  const std::size_t first = columns.size();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const int weight = (i < kFirstParameters ? 700 : 300) - static_cast<int>(i);
    columns.push_back({.name = one_line(paths[i]), .weight = weight, .right = true});
  }
  for (const Trial* trial : rows) {
    const Value config = unpack(trial->config);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const Value* value = config.find(paths[i]);
      const bool is_shown = value != nullptr && !(value->is_map() && any_below(paths, paths[i]));
      columns[first + i].cells.push_back(is_shown ? cell_text(*value) : "");
    }
  }
}

void add_metrics(const ExperimentStatus& status, const std::vector<std::string>& paths,
                 const std::vector<const Trial*>& rows, std::vector<Column>& columns) {
  const std::size_t first = columns.size();
  const std::vector<std::string> deciding = metrics_of(objective_of(status.options));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string& path = paths[i];
    int weight = 500 - static_cast<int>(i);
    if (path == "time_total_s") weight = 400;
    if (path == "mean_accuracy" || path == "mean_loss" || path == "training_iteration")
      weight = 800;
    if (std::find(deciding.begin(), deciding.end(), path) != deciding.end()) weight = 900;
    columns.push_back({.name = one_line(short_name(path)), .weight = weight, .right = true});
  }
  for (const Trial* trial : rows) {
    const Value result = last_result_of(*trial);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      std::string cell = result_cell(result, *trial, paths[i]);
      if (cell.empty() && trial->metric && paths[i] == status.options.metric) {
        cell = cell_text(Value(*trial->metric));  // reported before, as not every result has one
      }
      columns[first + i].cells.push_back(std::move(cell));
    }
  }
}

// "| " before, " | " between, " |" after.
std::size_t table_width(const std::vector<Column>& columns) {
  std::size_t width = 1;
  for (const Column& column : columns) width += column.width + 3;
  return width;
}

void fit(std::vector<Column>& columns, std::size_t width) {
  while (width > 0 && columns.size() > 2 && table_width(columns) > width) {
    columns.erase(
        std::min_element(columns.begin(), columns.end(),
                         [](const Column& a, const Column& b) { return a.weight < b.weight; }));
  }
}

std::string padded(const std::string& text, const Column& column) {
  const std::string blanks(column.width - text_width(text), ' ');
  return column.right ? blanks + text : text + blanks;
}

}  // namespace

namespace {

std::vector<Column> columns_of(const ExperimentStatus& status,
                               const std::vector<const Trial*>& rows,
                               const ReporterOptions& options,
                               const std::vector<std::string>& metrics) {
  std::vector<Column> columns;
  add_trial_columns(status, rows, columns);
  add_parameters(parameter_columns(status, options), rows, columns);
  add_metrics(status, metric_columns(status, options, metrics), rows, columns);
  return columns;
}

}  // namespace

std::vector<std::vector<std::string>> table_cells(const ExperimentStatus& status,
                                                  const std::vector<const Trial*>& rows,
                                                  const ReporterOptions& options,
                                                  const std::vector<std::string>& metrics) {
  std::vector<std::vector<std::string>> cells(rows.size() + 1);
  for (const Column& column : columns_of(status, rows, options, metrics)) {
    cells[0].push_back(column.name);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      cells[row + 1].push_back(column.cells[row]);
    }
  }
  return cells;
}

Value last_result_of(const Trial& trial) try {
  return trial.last ? unpack(trial.last->result) : Value();
} catch (const Error&) {
  return {};
}

std::vector<std::string> render_table(const ExperimentStatus& status,
                                      const std::vector<const Trial*>& rows,
                                      const ReporterOptions& options,
                                      const std::vector<std::string>& metrics, std::size_t width) {
  std::vector<Column> columns = columns_of(status, rows, options, metrics);
  for (Column& column : columns) {
    column.width = text_width(column.name);
    for (const std::string& cell : column.cells) {
      column.width = std::max(column.width, text_width(cell));
    }
  }
  fit(columns, width);

  std::vector<std::string> lines(rows.size() + 2, "|");
  for (const Column& column : columns) {
    const char* joint = &column == &columns.back() ? "|" : "+";
    lines[0] += fmt::format(" {} |", padded(column.name, column));
    lines[1] += std::string(column.width + 2, '-') + joint;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      lines[row + 2] += fmt::format(" {} |", padded(column.cells[row], column));
    }
  }
  return lines;
}

}  // namespace tune
