// NVIDIA's management library, loaded at run time when it is there.
#pragma once

#include <vector>

#include "core/platform/node.h"

namespace tune {

// Every GPU of the machine; empty when there is no driver.
std::vector<PhysicalGpu> list_gpus();

}  // namespace tune
