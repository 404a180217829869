#include "tune/view/experiment_blobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tune/results/result_lines.h"
#include "tune/results/result_scan.h"
#include "tune/view/columns_blob.h"

namespace tune::view {

namespace {

constexpr std::size_t kMaxCurves = 500;
constexpr std::size_t kCurvePoints = 256;
constexpr std::size_t kResultPoints = 4000;
constexpr std::size_t kResultMetrics = 512;

// ---- Columns of trials --------------------------------------------------------------------------

template <class T, class Get>
std::vector<T> gathered(const std::vector<std::uint32_t>& rows, const Get& get) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const std::uint32_t row : rows) values.push_back(static_cast<T>(get(row)));
  return values;
}

void add_field(ColumnsBlob& blob, const TrialTable& table, const std::string& name,
               const std::vector<std::uint32_t>& rows) {
  const auto at = [&](std::uint32_t row) -> const TrialRow& { return table.row(row); };
  using U32 = std::uint32_t;
  if (name == "number") blob.add(name, gathered<U32>(rows, [&](U32 r) { return at(r).number; }));
  if (name == "status") {
    blob.add(name, gathered<std::uint8_t>(rows, [&](U32 r) { return at(r).status; }));
  }
  if (name == "iterations") {
    blob.add(name, gathered<U32>(rows, [&](U32 r) { return at(r).iterations; }));
  }
  if (name == "attempts")
    blob.add(name, gathered<U32>(rows, [&](U32 r) { return at(r).attempts; }));
  if (name == "failures")
    blob.add(name, gathered<U32>(rows, [&](U32 r) { return at(r).failures; }));
  if (name == "started")
    blob.add(name, gathered<double>(rows, [&](U32 r) { return at(r).started; }));
  if (name == "ended") blob.add(name, gathered<double>(rows, [&](U32 r) { return at(r).ended; }));
}

std::optional<std::size_t> index_in(std::string_view name, std::size_t size) {
  std::size_t index = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, index);
  if (error != std::errc() || stop != end || index >= size) return std::nullopt;
  return index;
}

void add_parameter(ColumnsBlob& blob, const ParameterColumn& column, const std::string& name,
                   const std::vector<std::uint32_t>& rows) {
  if (column.is_words) {
    blob.add(name, gathered<std::uint32_t>(rows, [&](auto row) { return column.codes[row]; }));
    blob.add_words(column.words);
  } else {
    blob.add(name, gathered<double>(rows, [&](auto row) { return column.numbers[row]; }));
  }
}

void add_column(ColumnsBlob& blob, const TrialTable& table, const std::string& name,
                const std::vector<std::uint32_t>& rows) {
  const std::string_view view = name;
  if (view.size() > 1 && view[0] == 'p') {
    if (const auto index = index_in(view.substr(1), table.parameters().size())) {
      return add_parameter(blob, table.parameters()[*index], name, rows);
    }
  }
  if (view.size() > 2 && view[0] == 'm') {
    const auto index = index_in(view.substr(1, view.size() - 2), table.metrics().size());
    if (!index) return;
    const MetricColumn& metric = table.metrics()[*index];
    const char which = view.back();
    const std::vector<double>* values = which == 'l'   ? &metric.last
                                        : which == 'n' ? &metric.least
                                        : which == 'x' ? &metric.greatest
                                                       : nullptr;
    if (values == nullptr) return;
    return blob.add(name, gathered<double>(rows, [&](auto row) { return (*values)[row]; }));
  }
  add_field(blob, table, name, rows);
}

}  // namespace

Value header_of(const Experiment& experiment) {
  return Value{{"change", experiment.change()},
               {"layout", experiment.trials().layout()},
               {"trials", experiment.trials().size()}};
}

std::string columns_blob(const Experiment& experiment, std::string_view list, std::uint64_t since) {
  const TrialTable& table = experiment.trials();
  std::vector<std::uint32_t> rows;
  rows.reserve(since > 0 ? 0 : table.size());
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (since == 0 || table.row(row).change > since)
      rows.push_back(static_cast<std::uint32_t>(row));
  }
  ColumnsBlob blob;
  if (since > 0) blob.add("rows", rows);
  std::set<std::string> added;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string name(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (added.insert(name).second) add_column(blob, table, name, rows);
  }
  Value header = header_of(experiment);
  header.set("since", since);
  return blob.finish(std::move(header));
}

// ---- Attempts -----------------------------------------------------------------------------------

std::string attempts_blob(const Experiment& experiment) {
  const History& history = experiment.history();
  const auto& attempts = history.attempts();
  const auto all = [&](auto get) {
    std::vector<decltype(get(attempts.front()))> values;
    values.reserve(attempts.size());
    for (const Attempt& attempt : attempts) values.push_back(get(attempt));
    return values;
  };
  ColumnsBlob blob;
  blob.add("trial", all([](const Attempt& a) { return a.trial; }));
  blob.add("attempt", all([](const Attempt& a) { return a.attempt; }));
  blob.add("started", all([](const Attempt& a) { return a.started; }));
  blob.add("ended", all([](const Attempt& a) { return a.ended; }));
  std::vector<std::string> nodes;
  for (const NodeView& node : history.nodes()) nodes.push_back(node.name);
  blob.add("node", all([](const Attempt& a) { return a.node; }));
  blob.add_words(nodes);
  blob.add("gpus", all([](const Attempt& a) { return a.gpus; }));
  blob.add_words(history.gpu_lists());
  blob.add("outcome", all([](const Attempt& a) { return a.outcome; }));
  blob.add_words(history.outcomes());
  Value header = header_of(experiment);
  header.set("first", history.first());
  header.set("last", history.last());
  return blob.finish(std::move(header));
}

// ---- Curves -------------------------------------------------------------------------------------

namespace {

struct Points {
  std::vector<std::uint32_t> iteration;
  std::vector<float> value;
};

// Keeps the last one, and of the others so many that few enough stay.
void thin_out(Points& points) {
  const std::size_t size = points.value.size();
  if (size <= kCurvePoints) return;
  Points thin;
  const std::size_t stride = (size + kCurvePoints - 1) / kCurvePoints;
  for (std::size_t i = (size - 1) % stride; i < size; i += stride) {
    thin.iteration.push_back(points.iteration[i]);
    thin.value.push_back(points.value[i]);
  }
  points = std::move(thin);
}

Points held_points(const Curve& curve) {
  Points points;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    points.iteration.push_back(static_cast<std::uint32_t>(curve.iteration(i)));
    points.value.push_back(curve.value(i));
  }
  return points;
}

Points read_points(const Experiment& experiment, std::size_t row, const std::string& metric) {
  Points points;
  const std::string where = "result.json of " + experiment.trial_id(row);
  for_each_line(experiment.trial_directory(row) / "result.json",
                [&](std::string_view line, std::size_t number) {
                  scan_numbers(line, where, [&](std::string_view name, double value) {
                    if (name != metric) return;
                    points.iteration.push_back(static_cast<std::uint32_t>(number));
                    points.value.push_back(static_cast<float>(value));
                  });
                });
  return points;
}

// The values by which trials are ranked: of the experiment's metric, or, where there are several
// objectives, of the one that is asked for.
struct Ranking {
  const MetricColumn& column;
  bool is_max;
  double worth(std::size_t row) const { return is_max ? column.greatest[row] : -column.least[row]; }
};

Ranking ranking_of(const Experiment& experiment, const CurvesAsked& asked) {
  const ExperimentHead& head = experiment.head();
  if (const MetricColumn* metric = experiment.trials().metric()) {
    return {*metric, head.mode == Mode::kMax};
  }
  const MetricColumn& column = experiment.trials().metrics()[asked.metric];
  const Value* objectives = head.spec.find("objectives");
  if (objectives == nullptr || !objectives->is_list()) return {column, true};
  for (const Value& one : objectives->list()) {
    if (one.get_or("metric", "") == column.name) return {column, one.get_or("mode", "") != "min"};
  }
  return {column, true};
}

// The best ones, best first, then some of all.
std::vector<std::uint32_t> chosen_rows(const Experiment& experiment, const CurvesAsked& asked) {
  const std::size_t size = experiment.trials().size();
  const std::size_t best = std::min<std::size_t>(asked.best, kMaxCurves);
  const std::size_t sample = std::min<std::size_t>(asked.sample, kMaxCurves - best);
  const Ranking ranking = ranking_of(experiment, asked);
  std::vector<std::pair<double, std::uint32_t>> ranked;
  for (std::size_t row = 0; row < size; ++row) {
    const double worth = ranking.worth(row);
    if (std::isfinite(worth)) ranked.emplace_back(-worth, row);
  }
  const std::size_t kept = std::min(best, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept),
                    ranked.end());
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < kept; ++i) rows.push_back(ranked[i].second);
  const std::set<std::uint32_t> held(rows.begin(), rows.end());
  for (std::size_t i = 0; i < std::min(sample, size); ++i) {
    const auto row = static_cast<std::uint32_t>(i * size / std::min(sample, size));
    if (!held.contains(row)) rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::string curves_blob(const Experiment& experiment, const CurvesAsked& asked) {
  const TrialTable& table = experiment.trials();
  if (asked.metric >= table.metrics().size()) return ColumnsBlob().finish(header_of(experiment));
  const std::string& metric = table.metrics()[asked.metric].name;
  const std::vector<std::uint32_t> rows = chosen_rows(experiment, asked);
  std::vector<std::uint32_t> ends;
  Points all;
  for (const std::uint32_t row : rows) {
    Points points = metric == experiment.head().metric ? held_points(table.curve(row))
                                                       : read_points(experiment, row, metric);
    thin_out(points);
    all.iteration.insert(all.iteration.end(), points.iteration.begin(), points.iteration.end());
    all.value.insert(all.value.end(), points.value.begin(), points.value.end());
    ends.push_back(static_cast<std::uint32_t>(all.value.size()));
  }
  ColumnsBlob blob;
  blob.add("row", rows);
  blob.add("end", ends);
  blob.add("iteration", all.iteration);
  blob.add("value", all.value);
  return blob.finish(header_of(experiment));
}

std::string results_blob(const Experiment& experiment, std::size_t row) {
  const std::size_t lines = experiment.trials().row(row).iterations;
  const std::size_t stride = std::max<std::size_t>(1, (lines + kResultPoints - 1) / kResultPoints);
  std::vector<std::uint32_t> iterations;
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<std::pair<std::string, std::vector<double>>> columns;
  const std::string where = "result.json of " + experiment.trial_id(row);
  const auto take = [&](std::string_view line, std::size_t number) {
    if (number % stride != 0 && number != lines) return;
    scan_numbers(line, where, [&](std::string_view name, double value) {
      auto found = index.find(name);
      if (found == index.end()) {
        if (columns.size() == kResultMetrics || name == "done" || name == "pid") return;
        found = index.emplace(name, columns.size()).first;
        columns.emplace_back(name, std::vector<double>());
      }
      auto& values = columns[found->second].second;
      values.resize(iterations.size(), std::numeric_limits<double>::quiet_NaN());
      values.push_back(value);
    });
    iterations.push_back(static_cast<std::uint32_t>(number));
  };
  for_each_line(experiment.trial_directory(row) / "result.json", take);
  ColumnsBlob blob;
  blob.add("iteration", iterations);
  Value::List names;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].second.resize(iterations.size(), std::numeric_limits<double>::quiet_NaN());
    blob.add("v" + std::to_string(i), columns[i].second);
    names.emplace_back(columns[i].first);
  }
  Value header = header_of(experiment);
  header.set("names", Value::make_list(std::move(names)));
  return blob.finish(std::move(header));
}

}  // namespace tune::view
