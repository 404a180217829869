// A running Ray cluster as the engine of a pool: a detached actor an agent. Pure.
//
// The actor holds the CPUs and GPUs, has the allocation's name, and lives as long as its agent. A
// task of a placement group, the way of Ray's own libraries, ends with the program that has
// submitted it, and the group is known after that by its name alone: an agent that died would leave
// the group behind as if it still ran. A detached actor outlives the program that has made it, is
// listed by its name while it waits for room and while it runs, and is listed no more when its
// agent has ended. Its method `host` is answered once it has a place, which tells the two apart
// without Ray's dashboard.
#pragma once

#include "tune/drive/engine_words.h"
#include "tune/spec/pool_options.h"

namespace tune {

EngineWords ray_actors(const PoolOptions& pool, const EnginePlace& place);

}  // namespace tune
