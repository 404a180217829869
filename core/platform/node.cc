#include "core/platform/node.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/nvml.h"

namespace tune {

namespace {

std::string read_if_there(const std::filesystem::path& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

// The folder of this process's cgroup in the unified hierarchy and its ancestors, innermost first.
std::vector<std::filesystem::path> cgroup_folders() {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::vector<std::filesystem::path> folders;
  const std::string text = read_if_there("/proc/self/cgroup");
  const std::size_t begin = text.find("0::/");
  if (begin != std::string::npos) {
    std::string below = text.substr(begin + 4, text.find('\n', begin) - begin - 4);
    for (std::filesystem::path path = below; !path.empty(); path = path.parent_path()) {
      folders.push_back(root / path);
    }
  }
  folders.push_back(root);
  return folders;
}

double affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

double quota_cpus() {
  double cpus = affinity_cpus();
  for (const auto& folder : cgroup_folders()) {
    if (const auto quota = cpus_of_quota(read_if_there(folder / "cpu.max"))) {
      cpus = std::min(cpus, *quota);
    }
  }
  // Version 1 of cgroups keeps quota and period in two files.
  const std::string quota = read_if_there("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string period = read_if_there("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (const auto limit = cpus_of_quota(quota + " " + period)) cpus = std::min(cpus, *limit);
  return cpus;
}

std::int64_t meminfo_bytes(std::string_view text, std::string_view name) {
  const std::size_t begin = text.find(name);
  if (begin == std::string_view::npos) return 0;
  return std::atoll(text.data() + begin + name.size()) * 1024;
}

}  // namespace

std::optional<double> cpus_of_quota(std::string_view cpu_max) {
  double quota = 0, period = 0;
  const char* end = cpu_max.data() + cpu_max.size();
  const auto first = std::from_chars(cpu_max.data(), end, quota);
  if (first.ec != std::errc() || quota <= 0) return std::nullopt;  // "max", "-1" or nothing
  const char* next = first.ptr;
  while (next != end && (*next == ' ' || *next == '\n')) ++next;
  if (std::from_chars(next, end, period).ec != std::errc() || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<std::int64_t> bytes_of_limit(std::string_view text) {
  std::int64_t bytes = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), bytes);
  // Version 1 says "no limit" by a number near 2^63.
  if (read.ec != std::errc() || bytes <= 0 || bytes > (std::int64_t{1} << 60)) return std::nullopt;
  return bytes;
}

std::vector<Gpu> visible_gpus(const std::vector<PhysicalGpu>& all,
                              const std::optional<std::string>& cuda_visible_devices) {
  std::vector<Gpu> visible;
  if (!cuda_visible_devices) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      // A split GPU shows only its first instance to a program; each is offered by its own id.
      for (const std::string& id : all[i].mig) visible.push_back({id, all[i].name + " MIG", 0});
      if (all[i].mig.empty()) {
        visible.push_back({std::to_string(i), all[i].name, all[i].memory_bytes});
      }
    }
    return visible;
  }
  const auto find = [&all](std::string_view entry) -> std::optional<Gpu> {
    std::size_t index = 0;
    const auto read = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    if (read.ec == std::errc() && read.ptr == entry.data() + entry.size()) {
      if (index >= all.size()) return std::nullopt;
      return Gpu{std::string(entry), all[index].name, all[index].memory_bytes};
    }
    for (const PhysicalGpu& gpu : all) {
      const bool named = entry.size() > 4 && gpu.uuid.starts_with(entry);
      if (named) return Gpu{gpu.uuid, gpu.name, gpu.memory_bytes};
      for (const std::string& id : gpu.mig) {
        if (id == entry) return Gpu{id, gpu.name + " MIG", 0};
      }
    }
    return std::nullopt;
  };
  std::string_view rest = *cuda_visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view entry = rest.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    const std::optional<Gpu> gpu = find(entry);
    if (!gpu) break;  // as CUDA does: what follows an invalid entry is not seen
    visible.push_back(*gpu);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return visible;
}

namespace {

std::vector<Gpu> own_gpus() {
  const char* set = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible_gpus(list_gpus(), set ? std::optional<std::string>(set) : std::nullopt);
}

}  // namespace

NodeResources discover_node(const NodeOverrides& overrides) {
  NodeResources node;
  node.cpu_units = to_units(overrides.cpus.value_or(quota_cpus()));
  node.memory_bytes = memory_use().total_bytes;
  node.gpus = own_gpus();
  if (overrides.gpus) {
    const auto wanted = static_cast<std::size_t>(std::max(0.0, *overrides.gpus));
    if (node.gpus.size() > wanted) node.gpus.resize(wanted);
    while (node.gpus.size() < wanted) {
      node.gpus.push_back({std::to_string(node.gpus.size()), "logical GPU", 0});
    }
  }
  return node;
}

int gpu_count() { return static_cast<int>(own_gpus().size()); }

MemoryUse memory_use() {
  const std::string text = read_if_there("/proc/meminfo");
  MemoryUse use;
  use.total_bytes = meminfo_bytes(text, "MemTotal:");
  use.used_bytes = use.total_bytes - meminfo_bytes(text, "MemAvailable:");
  for (const auto& folder : cgroup_folders()) {
    const auto limit = bytes_of_limit(read_if_there(folder / "memory.max"));
    if (!limit || *limit >= use.total_bytes) continue;
    use.total_bytes = *limit;
    use.used_bytes = bytes_of_limit(read_if_there(folder / "memory.current")).value_or(0);
  }
  return use;
}

std::string hostname() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string primary_ip() {
  ifaddrs* all = nullptr;
  std::string found = "127.0.0.1";
  if (getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) {
      found = text;
      break;
    }
  }
  freeifaddrs(all);
  return found;
}

}  // namespace tune
