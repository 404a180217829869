// A configuration to be copied: into a sweep (YAML), a program (C++). Pure.
#pragma once

#include <string>

#include "core/value.h"

namespace tune::view {

// "lr: 0.1\nmodel:\n  layers: 2\n"
std::string as_yaml(const Value& config);
// "tune::Config{{\"lr\", 0.1}, {\"model\", {{\"layers\", 2}}}}"
std::string as_cpp(const Value& config);

}  // namespace tune::view
