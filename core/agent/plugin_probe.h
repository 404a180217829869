// The contents of a plugin, asked of a zygote of its own (tune-worker) that loads it as a run
// would: side effects of loading its library happen there.
#pragma once

#include <string>
#include <vector>

#include "core/contract_values.h"

namespace tune {

// Takes as long as loading takes (LibTorch: 0.3 s). Does not throw for an unusable plugin: the
// error in the result says why.
ZygoteReady probe_plugin(const std::string& plugin);
// The same of any zygote's argv with "{control}" in it; `loads` is named while it takes long.
ZygoteReady probe_program(std::vector<std::string> command, const std::string& loads);

}  // namespace tune
