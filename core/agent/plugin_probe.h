// What a plugin holds, asked of a zygote of its own (tune-worker) that loads it as a run would:
// whatever its library does when it is loaded happens there.
#pragma once

#include <string>

#include "core/contract_values.h"

namespace tune {

// Takes as long as loading takes (LibTorch: 0.3 s). Does not throw for a plugin that is no good:
// then the error says why.
ZygoteReady probe_plugin(const std::string& plugin);

}  // namespace tune
