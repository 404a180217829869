// PoolOptions as plain values, both ways, and what can be wrong with them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/resources.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/pool_options.h"

namespace tune {

// Takes the key `pool`; an absent one leaves the options as they are.
void read_pool(OptionReader& reader, PoolOptions& pool);
Value pool_to_value(const PoolOptions& pool);

// Mistakes that show without asking the engine. `request`: of one trial.
void check_pool(const PoolOptions& pool, const ResourceRequest& request,
                std::vector<Complaint>& complaints);

// Whether machines join: by the hand of a user, or of an engine.
bool takes_machines(const RunOptions& options);
// Whether the driver's own agent outlives its driver, for the next one to find it.
bool own_agent_stays(const RunOptions& options);
// Whether agents come, or come back, to a driver that listens for them.
bool awaits_agents(const RunOptions& options);
// Where the driver listens for agents that outlive it: as the options say, else where the engine's
// agents need it, else on this host alone.
std::string listens_at(const RunOptions& options);

// Agents at the same time, where the engine has so many hosts; 0: it chooses them.
int most_agents(const PoolOptions& pool, std::size_t hosts);
// An agent's share of the pool for trials. Without `pool.node` one trial's request.
NodeResources node_of(const PoolOptions& pool, const ResourceRequest& request);

}  // namespace tune
