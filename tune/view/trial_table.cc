#include "tune/view/trial_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/json.h"
#include "core/strings.h"
#include "tune/results/result_scan.h"

namespace tune::view {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Fields that are added to every result and tell nothing of the search.
bool is_bookkeeping(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "done", "time_this_iter_s",  "time_since_restore", "iterations_since_restore",
      "pid",  "training_iteration"};
  for (const std::string_view one : kNames) {
    if (one == name) return true;
  }
  return false;
}

std::string word_of(double number) {
  std::string text;
  constexpr double kExact = 9007199254740992;  // 2^53
  if (number == std::trunc(number) && std::fabs(number) < kExact) {
    append_integer(text, static_cast<std::int64_t>(number));
  } else {
    append_number(text, number);
  }
  return text;
}

std::string word_of(const Value& value) {
  if (value.is_string()) return value.string();
  return value.is_number() ? word_of(value.number()) : value.dump();
}

std::uint32_t code_of(ParameterColumn& column, std::string word) {
  const auto [found, is_new] =
      column.index.try_emplace(std::move(word), static_cast<std::uint32_t>(column.words.size()));
  if (is_new) column.words.push_back(found->first);
  return found->second;
}

}  // namespace

void Curve::add(float value) {
  if (++seen_ % stride_ != 0) return;
  values_.push_back(value);
  if (values_.size() <= kMaxCurvePoints) return;
  // Points 1, 3, 5 ... are those whose iteration the doubled stride divides.
  const std::size_t kept = values_.size() / 2;
  for (std::size_t i = 0; i < kept; ++i) values_[i] = values_[2 * i + 1];
  values_.resize(kept);
  stride_ *= 2;
}

std::optional<float> Curve::at(std::uint64_t iteration) const {
  const std::uint64_t points = iteration / stride_;
  if (points == 0 || iteration > seen_ || values_.empty()) return std::nullopt;
  return values_[std::min<std::uint64_t>(points, values_.size()) - 1];
}

const MetricColumn* TrialTable::metric() const {
  const auto found = metric_index_.find(metric_);
  return found == metric_index_.end() ? nullptr : &metrics_[found->second];
}

std::optional<std::size_t> TrialTable::find(std::uint32_t number) const {
  const auto found = index_.find(number);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

std::size_t TrialTable::add(std::uint32_t number, std::uint64_t change) {
  if (const auto known = find(number)) return *known;
  const std::size_t row = rows_.size();
  rows_.push_back({.number = number, .change = change});
  curves_.emplace_back();
  index_.emplace(number, row);
  for (ParameterColumn& column : parameters_) {
    if (column.is_words) {
      column.codes.push_back(kNoWord);
    } else {
      column.numbers.push_back(kNan);
    }
  }
  for (MetricColumn& column : metrics_) {
    for (auto* values : {&column.last, &column.least, &column.greatest}) values->push_back(kNan);
  }
  return row;
}

TrialRow& TrialTable::touch(std::size_t row, std::uint64_t change) {
  rows_[row].change = change;
  return rows_[row];
}

// ---- Configurations -----------------------------------------------------------------------------

void TrialTable::set_config(std::size_t row, const Value& config, std::uint64_t change) {
  touch(row, change);
  for (ParameterColumn& column : parameters_) {  // an earlier configuration's
    if (column.is_words) {
      column.codes[row] = kNoWord;
    } else {
      column.numbers[row] = kNan;
    }
  }
  for (const auto& [path, value] : config.leaves()) {
    if (const auto column = parameter(path)) set_parameter(parameters_[*column], row, *value);
  }
}

std::optional<std::size_t> TrialTable::parameter(const std::string& name) {
  if (const auto found = parameter_index_.find(name); found != parameter_index_.end()) {
    return found->second;
  }
  if (parameters_.size() >= kMaxColumns) {
    left_out_ = true;
    return std::nullopt;
  }
  ++layout_;
  parameters_.push_back({.name = name, .numbers = std::vector<double>(rows_.size(), kNan)});
  parameter_index_[name] = parameters_.size() - 1;
  return parameters_.size() - 1;
}

void TrialTable::set_parameter(ParameterColumn& column, std::size_t row, const Value& value) {
  if (!column.is_words && value.is_number()) {
    column.numbers[row] = value.number();
    return;
  }
  if (!column.is_words) turn_to_words(column);
  column.codes[row] = code_of(column, word_of(value));
}

void TrialTable::turn_to_words(ParameterColumn& column) {
  ++layout_;
  column.is_words = true;
  column.codes.reserve(rows_.size());
  for (const double number : column.numbers) {
    column.codes.push_back(std::isnan(number) ? kNoWord : code_of(column, word_of(number)));
  }
  column.numbers = {};
}

// ---- Results ------------------------------------------------------------------------------------

std::optional<std::size_t> TrialTable::metric(std::string_view name, std::size_t hint) {
  if (hint < guesses_.size() && guesses_[hint] && guesses_[hint]->name == name) {
    return guesses_[hint]->metric;
  }
  guesses_.resize(std::max(guesses_.size(), hint + 1));
  const auto guess = [&](std::optional<std::size_t> metric) {
    guesses_[hint] = Guess{std::string(name), metric};
    return metric;
  };
  const auto found = metric_index_.find(name);
  if (found != metric_index_.end()) return guess(found->second);
  if (is_bookkeeping(name)) return guess(std::nullopt);
  if (metrics_.size() >= kMaxColumns || 3 * (metrics_.size() + 1) * rows_.size() > kMaxCells) {
    left_out_ = true;
    return std::nullopt;
  }
  ++layout_;
  const std::vector<double> none(rows_.size(), kNan);
  metrics_.push_back({std::string(name), none, none, none});
  metric_index_[std::string(name)] = metrics_.size() - 1;
  return guess(metrics_.size() - 1);
}

void TrialTable::add_result(std::size_t row, std::string_view line, const std::string& where,
                            std::uint64_t change) {
  std::size_t position = 0;
  float primary = std::numeric_limits<float>::quiet_NaN();
  scan_numbers(line, where, [&](std::string_view name, double value) {
    const auto at = metric(name, position++);
    if (name == metric_) primary = static_cast<float>(value);
    if (!at) return;
    MetricColumn& column = metrics_[*at];
    column.last[row] = value;
    if (!std::isfinite(value)) return;
    // Written so that a number takes the place of NaN.
    if (!(value >= column.least[row])) column.least[row] = value;
    if (!(value <= column.greatest[row])) column.greatest[row] = value;
  });
  if (!metric_.empty()) curves_[row].add(primary);
  ++touch(row, change).iterations;
  ++results_;
}

void TrialTable::clear_results(std::size_t row, std::uint64_t change) {
  TrialRow& cleared = touch(row, change);
  results_ -= cleared.iterations;
  cleared.iterations = 0;
  curves_[row].clear();
  for (MetricColumn& column : metrics_) {
    column.last[row] = column.least[row] = column.greatest[row] = kNan;
  }
}

}  // namespace tune::view
