// Values that functions of a search space (sample_from) compute from other values. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/value.h"

namespace tune {

struct SampleFunction {
  std::string path;
  std::function<Value(const Config&)> function;
};

// Sets the values of `functions` in `config`, where each has its place already (null, say). Each is
// called once: in the order given, but before whatever reads its value. Throws Error (kBadInput)
// when functions need each other in a cycle, naming it, or when one throws.
void compute_functions(Config& config, const std::vector<SampleFunction>& functions);

}  // namespace tune
