// What an engine's list says that is not so.
#pragma once

#include <vector>

#include "core/random.h"
#include "simulator/simulated_pool.h"
#include "tune/drive/pool_machine.h"

namespace tune::simulator {

inline constexpr const char* kWrongId = "of another";  // no job of this pool has it

// The last one is not as it is, or not alone.
void deceive(std::vector<ListedAllocation>& listed, RandomStream& random, PoolTally& tally);

}  // namespace tune::simulator
