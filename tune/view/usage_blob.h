// One trial's use of processors, memory and GPUs (usage.jsonl of its folder), as columns.
#pragma once

#include <cstddef>
#include <string>

#include "tune/view/experiment.h"

namespace tune::view {

// Columns time, attempt, cpus (cores), memory_bytes and, for each GPU that the trial ever had,
// "busy N" (0 to 1) and "memory N" (bytes), NaN where it had not. The header's "gpus" has the
// numbers N. Thinned out beyond some thousand lines; a line that is damaged is left out.
std::string usage_blob(const Experiment& experiment, std::size_t row);

}  // namespace tune::view
