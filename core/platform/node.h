// The resources of this node: the CPUs and memory of its affinity and cgroup, the GPUs within the
// CUDA_VISIBLE_DEVICES it was started with. Found without touching CUDA.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/resources.h"

namespace tune {

struct NodeOverrides {
  std::optional<double> cpus;  // logical numbers instead of the node's own
  std::optional<double> gpus;
};
NodeResources discover_node(const NodeOverrides& overrides);
// GPUs within CUDA_VISIBLE_DEVICES; none when there is no driver.
std::vector<Gpu> own_gpus();
int gpu_count();
// Sets CUDA_VISIBLE_DEVICES to this node's GPUs where it is not set, and CUDA_DEVICE_ORDER:
// processes started from now on number the GPUs as this one does. Without GPUs nothing is set.
void name_visible_gpus();

struct MemoryUse {
  std::int64_t used_bytes = 0;
  std::int64_t total_bytes = 0;
};
MemoryUse memory_use();  // of the cgroup when it has a limit, else of the machine
std::string hostname();
std::string boot_id();     // of the kernel that runs here, since its start; empty: unknown
std::string primary_ip();  // of the default route, else of any interface, else 127.0.0.1

// ---- Parsing, without the machine ---------------------------------------------------------------

// A GPU as NVML lists it; `mig` holds the ids of its MIG instances when it is split.
struct PhysicalGpu {
  std::string uuid;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::vector<std::string> mig;
};
// The GPUs that CUDA would show, in its order. Entries are numbers, UUIDs and prefixes of them, and
// MIG ids. An entry that names no GPU, or several, ends the list; a GPU given twice empties it. Not
// set: all GPUs; empty: none.
std::vector<Gpu> visible_gpus(const std::vector<PhysicalGpu>& all,
                              const std::optional<std::string>& cuda_visible_devices);
// The entries of such a list, whether these GPUs exist or not. An entry that is not a number, UUID
// or MIG id ends it, such as the "-1" that often means none.
std::vector<std::string> named_gpus(std::string_view cuda_visible_devices);
// The path of a controller's hierarchy in what /proc/self/cgroup says; of version 2 when the
// controller is empty.
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller);
// CPUs of a cgroup quota: "max 100000" or "150000 100000" (v2 cpu.max). Nothing: no limit.
std::optional<double> cpus_of_quota(std::string_view cpu_max);
// Bytes of a cgroup limit: "max" or a number. Nothing: no limit.
std::optional<std::int64_t> bytes_of_limit(std::string_view text);

}  // namespace tune
