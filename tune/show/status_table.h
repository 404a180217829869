// The table of trials within the status block. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tune/results/reporter.h"

namespace tune {

// The result as the user reported it; null when there is none, or it is damaged.
Value last_result_of(const Trial& trial);

// Header, rule and one row a trial; columns of less weight are left out when the width (0: no
// limit) does not hold them all.
std::vector<std::string> render_table(const ExperimentStatus& status,
                                      const std::vector<const Trial*>& rows,
                                      const ReporterOptions& options,
                                      const std::vector<std::string>& metrics, std::size_t width);

// The same without layout and in full: the heads, then the cells of each trial.
std::vector<std::vector<std::string>> table_cells(const ExperimentStatus& status,
                                                  const std::vector<const Trial*>& rows,
                                                  const ReporterOptions& options,
                                                  const std::vector<std::string>& metrics);

}  // namespace tune
