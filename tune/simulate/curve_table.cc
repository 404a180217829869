#include "tune/simulate/curve_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/strings.h"
#include "schedulers/merit.h"
#include "tune/search/presets.h"
#include "tune/simulate/refusal.h"

namespace tune {

namespace {

constexpr std::size_t kMaxRows = 1'000'000;
constexpr std::size_t kMaxColumns = 10'000;
constexpr double kStepSigma = 0.5;
constexpr double kLogSpan = 1000;  // from which on a range is taken by its logarithm

// A value's place in its domain's unit interval; nothing for those without an order.
std::optional<double> place_in(const Domain& domain, const Value& value) {
  double low = 0;
  double high = 1;
  bool is_log = false;
  if (const auto* range = std::get_if<Domain::Uniform>(&domain.kind())) {
    low = range->low, high = range->high, is_log = range->log;
  } else if (const auto* range = std::get_if<Domain::Integer>(&domain.kind())) {
    low = static_cast<double>(range->low), high = static_cast<double>(range->high);
    is_log = range->log;
  } else if (const auto* normal = std::get_if<Domain::Normal>(&domain.kind())) {
    low = normal->mean - 2 * normal->sd, high = normal->mean + 2 * normal->sd;
  } else {
    return std::nullopt;
  }
  if (!value.is_number()) return std::nullopt;
  const double number = value.as<double>();
  if (is_log) return (std::log(number) - std::log(low)) / (std::log(high) - std::log(low));
  return (number - low) / (high - low);
}

// A configuration, domain by domain.
struct Place {
  std::optional<double> unit;
  Value value;  // without one; of a choice whose options hold domains: which of them
};
using Places = std::vector<Place>;

Places places_of(const Config& config, const std::vector<PlacedDomain>& domains) {
  Places places;
  for (const auto& [path, domain, condition] : domains) {
    const Value* value = config.find(path);
    const bool is_active =
        !condition || places[condition->choice].value == Value(condition->option);
    if (value == nullptr || !is_active) {
      places.emplace_back();
    } else if (const Domain::Choice* choice = domain->conditional()) {
      const std::vector<std::size_t> fitting = fitting_options(*choice, *value);
      places.push_back({{}, fitting.empty() ? *value : Value(fitting.front())});
    } else if (const auto unit = place_in(*domain, *value)) {
      places.push_back({unit, {}});
    } else {
      places.push_back({{}, *value});
    }
  }
  return places;
}

double distance(const Places& a, const Places& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].unit && b[i].unit) {
      const double apart = *a[i].unit - *b[i].unit;
      sum += apart * apart;
    } else {
      sum += a[i].value == b[i].value && a[i].unit == b[i].unit ? 0 : 1;
    }
  }
  return sum;
}

// `place`: of the row's values.
bool is_reported(const RecordedCurve& row, std::size_t place) {
  return row.absent.empty() || !row.absent.at(place);
}

class TableCurve : public Curve {
 public:
  TableCurve(const RecordedCurve& row, std::size_t metrics) : row_(row), metrics_(metrics) {}
  std::uint64_t length() const override { return row_.seconds.size(); }
  bool is_whole() const override { return row_.is_whole; }
  double seconds(std::uint64_t step) override { return row_.seconds.at(step - 1); }
  std::span<const double> values(std::uint64_t step) override {
    return std::span(row_.values).subspan((step - 1) * metrics_, metrics_);
  }
  bool reports(std::uint64_t step, std::size_t metric) const override {
    return is_reported(row_, (step - 1) * metrics_ + metric);
  }

 private:
  const RecordedCurve& row_;
  std::size_t metrics_;
};

class TableTask : public Task {
 public:
  explicit TableTask(RecordedTask recorded) : recorded_(std::move(recorded)) {
    std::erase_if(recorded_.rows, [](const RecordedCurve& row) { return row.seconds.empty(); });
    if (recorded_.rows.empty()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: there is no recorded trial with a result", recorded_.name));
    }
    for (const RecordedCurve& row : recorded_.rows) {
      steps_ = std::max<std::uint64_t>(steps_, row.seconds.size());
    }
    domains_ = recorded_.space.placed_domains();
    for (const RecordedCurve& row : recorded_.rows) {
      places_.push_back(places_of(row.config, domains_));
    }
  }

  const std::string& name() const override { return recorded_.name; }
  const SearchSpace& space() const override { return recorded_.space; }
  const std::vector<TaskMetric>& metrics() const override { return recorded_.metrics; }
  std::uint64_t steps() const override { return steps_; }
  std::optional<std::uint64_t> most_trials() const override { return recorded_.rows.size(); }
  std::unique_ptr<Curve> begin(const Config& config, Given& given) const override;
  Reference reference(const Objective& objective) const override;

 private:
  std::size_t last_step_with(const std::vector<std::size_t>& metrics,
                             const RecordedCurve& row) const;

  RecordedTask recorded_;
  std::uint64_t steps_ = 0;
  std::vector<PlacedDomain> domains_;
  std::vector<Places> places_;  // of the rows
};

std::unique_ptr<Curve> TableTask::begin(const Config& config, Given& given) const {
  const Places wanted = places_of(config, domains_);
  std::optional<std::size_t> nearest;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < recorded_.rows.size(); ++i) {
    if (given.rows.contains(i)) continue;
    const double apart = distance(wanted, places_[i]);
    if (nearest && !(apart < least)) continue;
    nearest = i;
    least = apart;
  }
  if (!nearest) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: all of its {} recorded trials are given",
                                                  recorded_.name, recorded_.rows.size()));
  }
  given.rows.insert(*nearest);
  return std::make_unique<TableCurve>(recorded_.rows[*nearest], recorded_.metrics.size());
}

// Counted from 1; 0: none reported them all.
std::size_t TableTask::last_step_with(const std::vector<std::size_t>& metrics,
                                      const RecordedCurve& row) const {
  const std::size_t width = recorded_.metrics.size();
  std::size_t step = row.seconds.size();
  const auto has = [&](std::size_t metric) {
    return is_reported(row, (step - 1) * width + metric);
  };
  while (step > 0 && !std::ranges::all_of(metrics, has)) --step;
  return step;
}

Reference TableTask::reference(const Objective& objective) const {
  const std::size_t metric = find_metric(*this, objective.metric);
  std::vector<std::size_t> needed;
  for (const std::string& name : metrics_of(objective)) needed.push_back(find_metric(*this, name));
  const double sign = objective.mode == Mode::kMax ? 1 : -1;
  const std::size_t width = recorded_.metrics.size();
  // Larger is better.
  const auto worth = [&](const RecordedCurve& row, std::size_t step) {
    const auto values = std::span(row.values).subspan(step * width, width);
    const double value = sign * values[metric];
    const bool counts =
        std::isfinite(value) && keeps_constraints(objective, recorded_.metrics, values);
    return counts ? value : kWorstEnd;
  };
  std::vector<double> last;
  std::vector<double> seconds;
  double best = kWorstEnd;
  for (const RecordedCurve& row : recorded_.rows) {
    double whole = 0;
    for (const double step : row.seconds) whole += step;
    seconds.push_back(whole);
    const std::size_t steps = last_step_with(needed, row);
    if (steps == 0) continue;  // it was ended before its first value
    last.push_back(worth(row, steps - 1));
    const std::size_t first = recorded_.is_best_of_all_steps ? 0 : steps - 1;
    for (std::size_t step = first; step < steps; ++step) best = std::max(best, worth(row, step));
  }
  if (last.empty()) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: no step reported all of {}", recorded_.name,
                                                  join(metrics_of(objective), ", ")));
  }
  Reference reference;
  reference.optimum = sign * best;
  reference.median = sign * median_of_kept(objective, recorded_.name, std::move(last));
  reference.training_s = median_of(std::move(seconds));
  return reference;
}

// ---- CSV

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t from = 0; from <= line.size();) {
    const std::size_t comma = std::min(line.find(',', from), line.size());
    cells.push_back(line.substr(from, comma - from));
    from = comma + 1;
  }
  if (!cells.empty() && cells.back().ends_with('\r')) cells.back().pop_back();
  return cells;
}

// The number of columns at the end that are <metric>_0, <metric>_1 ...; the metric's name in
// `metric`.
std::size_t curve_columns(const std::vector<std::string>& names, std::string& metric) {
  const auto first = std::find_if(names.begin(), names.end(),
                                  [](const std::string& name) { return name.ends_with("_0"); });
  if (first == names.end() || first->size() < 3) return 0;
  metric = first->substr(0, first->size() - 2);
  std::size_t count = 0;
  for (auto name = first; name != names.end(); ++name, ++count) {
    if (*name != fmt::format("{}_{}", metric, count)) return 0;
  }
  return count;
}

struct Line {
  const std::string& file;
  std::size_t number;
};

double number_in(const std::string& cell, const Line& line) {
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    refuse_file(line.file,
                fmt::format("line {}: '{}' is not a number", line.number, cell.substr(0, 40)));
  }
  return number;
}

RecordedCurve read_row(const std::vector<std::string>& cells, const std::vector<std::string>& names,
                       std::size_t steps, const Line& line) {
  if (cells.size() != names.size() + steps) {
    refuse_file(line.file, fmt::format("line {} has {} cells instead of {}", line.number,
                                       cells.size(), names.size() + steps));
  }
  RecordedCurve row;
  row.label = fmt::format("line {}", line.number);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double value = number_in(cells[i], line);
    if (!std::isfinite(value)) {
      refuse_file(line.file, fmt::format("line {}: {} is not finite", line.number, names[i]));
    }
    row.config.set(names[i], value);
  }
  for (std::size_t i = names.size(); i < cells.size(); ++i) {
    row.values.push_back(number_in(cells[i], line));
  }
  RandomStream random(0, "step time", line.number);
  row.seconds.assign(steps, std::exp(kStepSigma * random.normal()));
  return row;
}

std::optional<Mode> mode_by_name(const std::string& metric) {
  for (const char* word : {"loss", "error", "entropy"}) {
    if (metric.find(word) != std::string::npos) return Mode::kMin;
  }
  for (const char* word : {"acc", "auc", "score"}) {
    if (metric.find(word) != std::string::npos) return Mode::kMax;
  }
  return std::nullopt;
}

// Constants where all rows have one value.
SearchSpace space_of(const std::vector<std::string>& names,
                     const std::vector<RecordedCurve>& rows) {
  SearchSpace space;
  for (const std::string& name : names) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const RecordedCurve& row : rows) {
      const double value = row.config.get<double>(name);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    if (low == high) {
      space.set(name, Value(low));
    } else if (low > 0 && high / low >= kLogSpan) {
      space.set(name, loguniform(low, high));
    } else {
      space.set(name, uniform(low, high));
    }
  }
  return space;
}

}  // namespace

std::unique_ptr<Task> table_task(RecordedTask recorded) {
  return std::make_unique<TableTask>(std::move(recorded));
}

bool is_curve_csv(const std::string& first_line) {
  std::string metric;
  const std::vector<std::string> names = cells_of(first_line);
  const std::size_t steps = curve_columns(names, metric);
  return steps > 0 && steps < names.size();
}

RecordedTask parse_curve_csv(const std::string& text, const std::string& name) {
  RecordedTask task{name, {}, {}, {}};
  std::vector<std::string> names;
  std::size_t steps = 0;
  std::size_t line = 0;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::vector<std::string> cells = cells_of(text.substr(from, end - from));
    from = end + 1;
    if (++line > kMaxRows) refuse_file(name, fmt::format("it has more than {} lines", kMaxRows));
    if (line > 1) {
      task.rows.push_back(read_row(cells, names, steps, {name, line}));
      continue;
    }
    std::string metric;
    steps = curve_columns(cells, metric);
    if (steps == 0 || steps == cells.size() || cells.size() > kMaxColumns) {
      refuse_file(name, "its first line is not <parameter>, ..., <metric>_0, <metric>_1, ...");
    }
    task.metrics = {{metric, mode_by_name(metric)}};
    names.assign(cells.begin(), cells.end() - static_cast<std::ptrdiff_t>(steps));
  }
  if (task.rows.empty()) refuse_file(name, "it has no row");
  task.space = space_of(names, task.rows);
  return task;
}

}  // namespace tune
