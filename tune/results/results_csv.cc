#include "tune/results/results_csv.h"

#include <utility>

#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/result_lines.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

void ResultsTable::add(std::string id, TrialStatus status, std::string_view last_line,
                       const Packed& config) {
  Row& row = rows_.emplace_back();
  row.status = status;
  if (!last_line.empty()) {
    row.result = pack(parse_json(last_line, "the last result of " + id)).bytes;
  }
  row.config = config.bytes;
  row.id = std::move(id);
  results_.learn(result_of(row));
  configs_.learn(config_of(row));
}

const ResultText& ResultsTable::result_of(const Row& row) {
  result_.clear();
  if (!row.result.empty()) result_.add_members(row.result, ResultField::kTrialId);
  return result_;
}

const ResultText& ResultsTable::config_of(const Row& row) {
  config_.clear();
  config_.add_members(row.config);
  return config_;
}

std::string ResultsTable::to_csv() {
  results_.arrange();
  std::string text = "trial_id,status";
  const auto part = [&text](const Columns& columns, auto&& append) {
    if (columns.empty()) return;
    text += ',';
    append();
  };
  part(results_, [&] { results_.append_header(text); });
  part(configs_, [&] { configs_.append_header(text, "config/"); });
  text += '\n';
  for (const Row& row : rows_) {
    text.append(row.id).append(1, ',').append(status_name(row.status));
    part(results_, [&] { results_.append_row(text, result_of(row)); });
    part(configs_, [&] { configs_.append_row(text, config_of(row)); });
    text += '\n';
  }
  return text;
}

void write_results_csv(const std::filesystem::path& file, const ExperimentSpec& spec,
                       const std::deque<Trial>& trials) {
  const std::string experiment = experiment_id_of(spec);
  ResultsTable table;
  for (const Trial& trial : trials) {
    std::string id = trial_id(experiment, trial.number);
    std::optional<std::string> line;
    if (trial.last) line = last_line(file.parent_path() / id / "result.json");
    table.add(std::move(id), trial.status, line.value_or(""), trial.config);
  }
  write_file_atomically(file, table.to_csv());
}

}  // namespace tune
