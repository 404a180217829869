// `objectives` and `constraints` of a sweep: as plain values, both ways, and what may be wrong with
// them.
#pragma once

#include <string>
#include <vector>

#include "core/value.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/run_options.h"

namespace tune {

// `objectives: [{metric: loss, mode: min}, {metric: accuracy}]`.
void read_objectives(OptionReader& reader, std::vector<Goal>& objectives);
// `constraints: [{metric: latency_ms, max: 20}]`.
void read_constraints(OptionReader& reader, std::vector<Constraint>& constraints);
Value objectives_to_value(const std::vector<Goal>& objectives);
Value constraints_to_value(const std::vector<Constraint>& constraints);

// Makes the only one of `objectives` the metric, and appends what is wrong with the others, with
// the constraints, and with both beside the rest of the options.
void check_objectives(RunOptions& options, std::vector<Complaint>& complaints);

// Whether there is a metric to make good.
bool has_objective(const RunOptions& options);
// The objective of these options, with no seed.
Objective objective_of(const RunOptions& options);

}  // namespace tune
