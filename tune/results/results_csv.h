// results.csv: one row a trial with trial_id, status, its last result and its configuration. The
// last result is that of its result.json, so that the table is the same at the end and when made
// later.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/trial.h"
#include "tune/results/columns.h"
#include "tune/results/result_text.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class ResultsTable {
 public:
  // `last_line` is a line of result.json, empty for a trial that never reported.
  void add(std::string id, TrialStatus status, std::string_view last_line, const Packed& config);
  std::string to_csv();

 private:
  struct Row {
    std::string id;
    TrialStatus status;
    std::string result, config;  // packed, which is a fifth of their text with its places
  };
  const ResultText& result_of(const Row& row);  // until the next call
  const ResultText& config_of(const Row& row);

  std::deque<Row> rows_;
  Columns results_;
  Columns configs_;
  ResultText result_;
  ResultText config_{""};
};

// Whole or not at all. The trials' folders stand beside `file`. Throws Error (kIo) naming the file.
void write_results_csv(const std::filesystem::path& file, const ExperimentSpec& spec,
                       const std::deque<Trial>& trials);

}  // namespace tune
