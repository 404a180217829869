#include "tune/show/status_stream.h"

#include <chrono>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/show/status_table.h"

namespace tune {

namespace {

constexpr std::chrono::milliseconds kPause{500};  // between two blocks

Value to_value(const std::vector<std::vector<std::string>>& table) {
  Value::List rows;
  for (const auto& cells : table) rows.emplace_back(cells);
  return Value::make_list(std::move(rows));
}

}  // namespace

void StatusStream::status(const ExperimentStatus& status, bool final) {
  const bool is_due = shown_ < ExperimentTime::zero() || status.running_for - shown_ >= kPause;
  if (!final && (!is_due || !output_.is_idle())) return;
  shown_ = status.running_for;
  std::vector<std::string> lines;
  for (std::string& line : render_status(status, options_, memory_, {})) {
    if (!line.starts_with('|')) lines.push_back(std::move(line));
  }
  if (final) {
    for (const std::string& line : render_end(status)) lines.push_back(one_line(line));
  }
  const auto rows = choose_rows(status, static_cast<std::size_t>(options_.max_rows), rows_memory_);
  const Value told{{"lines", lines},
                   {"table", to_value(table_cells(status, rows, options_, memory_.metrics))},
                   {"final", final}};
  output_.write(to_json(told) + "\n");
}

void StatusStream::notice(const std::string& text) {
  output_.write(to_json(Value{{"notice", text}}) + "\n");
}

void StatusStream::failure(const Trial& trial, const std::string& trial_id,
                           const std::filesystem::path& file, bool retried) {
  notice(fmt::format("trial {} failed: {}{}, see {}", trial_id, (*trial.failure)->cause,
                     retried ? " (it is tried again)" : "", file.string()));
}

}  // namespace tune
