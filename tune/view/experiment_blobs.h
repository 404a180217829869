// The columns of an experiment's pictures. Pure but for curves and results of metrics whose curves
// are not held, which are read from the trials' files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/value.h"
#include "tune/view/experiment.h"

namespace tune::view {

// The fields in the header of each: by which change, of how many trials.
Value header_of(const Experiment& experiment);

// `list`: "status,p0,m1l" with comma: a field of a trial (number, status, iterations, attempts,
// failures, started, ended), pN a parameter, mNl, mNn and mNx the last, least and greatest value of
// a metric. Names that are not there are left out. `since` > 0: only rows that changed after it,
// with a column "rows".
std::string columns_blob(const Experiment& experiment, std::string_view list, std::uint64_t since);

std::string attempts_blob(const Experiment& experiment);

struct CurvesAsked {
  std::uint64_t metric = 0;  // number of the metric
  std::uint64_t best = 0;    // of the best trials so many,
  std::uint64_t sample = 0;  // and of all so many
};
std::string curves_blob(const Experiment& experiment, const CurvesAsked& asked);

// All numbers that one trial reported, by iteration; thinned out beyond some thousand.
std::string results_blob(const Experiment& experiment, std::size_t row);

}  // namespace tune::view
