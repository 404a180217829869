// The nodes of an experiment as JSON: who is there with what load, and why trials wait.
#pragma once

#include "core/value.h"
#include "tune/view/experiment.h"

namespace tune::view {

// {"nodes": [{..., "running", "cpus_held" and "gpus_held" (by trials that run), "cpus_used" and
// "memory_used" (measured, null without usage.jsonl)}], "waiting": trials, "allocations":
// [{"number", "state", "id", "host", "reason", "asked", "since"}], "pool": its engine or "",
// "why_paused"}. Reads the last line of usage.jsonl of each trial that runs, some hundred at most.
Value nodes_of(const Experiment& experiment);

}  // namespace tune::view
