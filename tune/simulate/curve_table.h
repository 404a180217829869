// CurveTable: recorded trainings as a task: each row is a configuration with the curve it gave. A
// TaskSet table is one, an earlier experiment another. Pure.
//
// A sweep proposes configurations that no row has. It is answered with the nearest row of the unit
// cube that no earlier trial of this sweep got. So random search draws from the rows without
// repeating any, and a searcher that models the space gets what was recorded near its proposal.
// Giving the nearest row again and again would let a sweep have more trials than were recorded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tune/simulate/task.h"

namespace tune {

struct RecordedCurve {
  std::string label;  // of the row, to be shown
  Config config;
  std::vector<double> values;   // step after step, one a metric each; NaN where it is absent
  std::vector<double> seconds;  // of each step
  bool is_whole = true;         // false: it was ended early
  // As values: whether the step did not report that metric. Empty: each step reported all.
  std::vector<bool> absent = {};
};

struct RecordedTask {
  std::string name;
  SearchSpace space;
  std::vector<TaskMetric> metrics;
  std::vector<RecordedCurve> rows;
  // Whether the optimum is the best value of any step, as the best so far of a sweep is; no regret
  // is below 0 then. Else it is that of last values alone, as of surrogates: figures of bench/ on
  // tables are by it.
  bool is_best_of_all_steps = false;
};

// Throws Error (kBadInput) when there is no row with a step.
std::unique_ptr<Task> table_task(RecordedTask recorded);

// TaskSet's form: a line of names, hyperparameters first, then <metric>_0, <metric>_1 ...; then a
// row a line. Hyperparameters range from the least to the largest that a row has; by the logarithm
// where that spans three orders of magnitude. No times were recorded: a row's steps take all the
// same time, log-normal over the rows (median 1 s, sigma 0.5), fixed by its number.
RecordedTask parse_curve_csv(const std::string& text, const std::string& name);
// Whether the file's first line is that of such a table.
bool is_curve_csv(const std::string& first_line);

}  // namespace tune
