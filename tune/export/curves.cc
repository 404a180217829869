#include "tune/export/curves.h"

#include "tune/results/result_text.h"

namespace tune {

bool makes_a_curve(std::string_view path) {
  return result_field_index(path) == kResultFieldNames.size() || path == "time_total_s" ||
         path == "time_this_iter_s" || path == "timesteps_total";
}

}  // namespace tune
