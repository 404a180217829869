// The fields that are added to every worker's report: the one rule for the files of a trial and for
// results.csv.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/trial.h"
#include "tune/results/result_text.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// The parts of a result that its report does not hold.
struct ResultOrigin {
  std::string_view trial_id;
  std::string_view experiment_tag;
  bool done = false;        // the trial ends with this result
  std::int64_t second = 0;  // wall time, unix
  std::string_view date;    // the same, as local_date has it
  std::string_view hostname;
  std::string_view node_ip;
  std::int64_t pid = 0;
};

// Makes `text` the result with every field that the user did not report; `done` is always added,
// whatever the user reported. A result that its worker has damaged has the fields alone. Skipped
// fields stand in no cell.
void make_result(ResultText& text, const Reported& report, const ResultOrigin& origin,
                 ResultFields skipped = {});

std::int64_t unix_second(WallTime wall);
std::string local_date(std::int64_t second);  // "2026-11-21_11-38-00"
// The last one is kept: most results come in the same second as the one before.
class LocalDates {
 public:
  const std::string& of(std::int64_t second);

 private:
  std::int64_t second_ = -1;
  std::string date_;
};

// "10.0.0.3:4711" (the address may hold colons itself).
std::pair<std::string_view, std::int64_t> split_location(std::string_view location);

// "3_lr=0.1,act=relu": the number of a trial and what was searched.
class ExperimentTags {
 public:
  explicit ExperimentTags(const ExperimentSpec& spec);
  std::string of(TrialNumber trial, const Packed& config) const;

 private:
  std::vector<std::string> searched_;  // key paths
};

// Whether one of the key paths lies below this one. What is in a map at it is then shown there.
bool any_below(const std::vector<std::string>& paths, std::string_view path);

}  // namespace tune
