// TrialTable: all trials of an experiment as columns: what a page draws. Each row remembers the
// change that touched it last, so that a reader is given only what is new to it. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/trial.h"
#include "core/value.h"

namespace tune::view {

// Limits of what is held, whatever the files say.
inline constexpr std::size_t kMaxColumns = 4096;      // parameters; metrics, each with three
inline constexpr std::size_t kMaxCells = 96u << 20;   // of all metrics together
inline constexpr std::size_t kMaxCurvePoints = 1024;  // of one trial's curve of the metric

// The metric by iteration. Longer ones keep every second point, then every fourth ...
class Curve {
 public:
  void add(float value);
  void clear() { *this = {}; }
  std::size_t size() const { return values_.size(); }
  std::uint64_t iteration(std::size_t point) const { return (point + 1) * stride_; }
  float value(std::size_t point) const { return values_[point]; }
  // The newest kept value at or before the iteration.
  std::optional<float> at(std::uint64_t iteration) const;

 private:
  std::vector<float> values_;
  std::uint64_t stride_ = 1;
  std::uint64_t seen_ = 0;
};

// One parameter. A column of numbers until a value is none: then a column of words.
struct ParameterColumn {
  std::string name;
  bool is_words = false;
  std::vector<double> numbers;            // NaN: not in this configuration
  std::vector<std::uint32_t> codes = {};  // of words; kNoWord: not in this configuration
  std::vector<std::string> words = {};
  std::unordered_map<std::string, std::uint32_t> index = {};  // of words; never iterated
};
inline constexpr std::uint32_t kNoWord = UINT32_MAX;

// One metric: a trial's newest value, and the least and greatest finite one. NaN: none.
struct MetricColumn {
  std::string name;
  std::vector<double> last, least, greatest;
};

struct TrialRow {
  std::uint32_t number = 0;
  TrialStatus status = TrialStatus::kPending;
  std::uint32_t iterations = 0;
  std::uint32_t attempts = 0;
  std::uint32_t failures = 0;
  double started = 0;  // unix seconds; 0: not yet
  double ended = 0;    // 0: not yet
  std::uint64_t change = 0;
};

class TrialTable {
 public:
  // `metric` is the one whose curves are kept; empty: none.
  explicit TrialTable(std::string metric) : metric_(std::move(metric)) {}

  std::size_t size() const { return rows_.size(); }
  const TrialRow& row(std::size_t row) const { return rows_[row]; }
  const Curve& curve(std::size_t row) const { return curves_[row]; }
  const std::vector<ParameterColumn>& parameters() const { return parameters_; }
  const std::vector<MetricColumn>& metrics() const { return metrics_; }
  const MetricColumn* metric() const;  // the experiment's; null: none reported yet
  // Grows with each new column, and when one becomes words: all rows are to be read anew then.
  std::uint64_t layout() const { return layout_; }
  std::uint64_t results() const { return results_; }
  bool left_columns_out() const { return left_out_; }

  std::optional<std::size_t> find(std::uint32_t number) const;
  // Numbers may come in any order; rows are in order of arrival. Every change is marked `change`.
  std::size_t add(std::uint32_t number, std::uint64_t change);
  TrialRow& touch(std::size_t row, std::uint64_t change);
  void set_config(std::size_t row, const Value& config, std::uint64_t change);
  void add_result(std::size_t row, std::string_view line, const std::string& where,
                  std::uint64_t change);
  void clear_results(std::size_t row, std::uint64_t change);

 private:
  // The metric of a number of that name, at the same place of the last line; none: it has none.
  struct Guess {
    std::string name;
    std::optional<std::size_t> metric;
  };

  std::optional<std::size_t> parameter(const std::string& name);
  std::optional<std::size_t> metric(std::string_view name, std::size_t hint);
  void set_parameter(ParameterColumn& column, std::size_t row, const Value& value);
  void turn_to_words(ParameterColumn& column);

  std::string metric_;
  std::vector<TrialRow> rows_;
  std::vector<Curve> curves_;
  std::unordered_map<std::uint32_t, std::size_t> index_;  // by number; never iterated
  std::vector<ParameterColumn> parameters_;
  std::map<std::string, std::size_t, std::less<>> parameter_index_;
  std::vector<MetricColumn> metrics_;
  std::map<std::string, std::size_t, std::less<>> metric_index_;
  std::vector<std::optional<Guess>> guesses_;  // of the last line's numbers
  std::uint64_t layout_ = 0;
  std::uint64_t results_ = 0;
  bool left_out_ = false;
};

}  // namespace tune::view
