// Kubernetes as an engine of a pool: one Job an agent, by kubectl. Pure.
//
// A plain Job for each agent, not one Job of many pods: its pool stops an agent by its name, and a
// queue such as Kueue admits them one by one. A Job of several pods picks its own victim when it is
// made smaller, and one of them that ends well ends it as a whole.
//
// The token is in a Secret of the experiment, which kubectl makes of nodes/join: so it is in no
// manifest and on no command line. All Jobs mount that one Secret as a file, so that pods that run
// see a replaced token, and the address of a driver that has moved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/drive/engine_words.h"
#include "tune/spec/pool_options.h"
#include "tune/spec/pool_words.h"

namespace tune {

// The file with the token in a pod.
inline constexpr const char* kTokenInPod = "/etc/tune/token";

EngineWords kubernetes_jobs(const PoolOptions& pool, const EnginePlace& place);

// The Job of the allocation that the values tell of, as YAML; `place.script` starts its agent.
std::string kubernetes_manifest(const PoolOptions& pool, const EnginePlace& place,
                                const PoolValues& values);

// The Jobs with such names in a list, with the states of their pods. A pod whose image cannot be
// had is hopeless.
std::vector<ListedAllocation> listed_by_kubernetes(std::string_view output,
                                                   std::string_view prefix);

}  // namespace tune
