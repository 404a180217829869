#include "core/platform/node.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/nvml.h"
#include "core/platform/process.h"

namespace tune {

namespace {

// The folders of this process's cgroup and its ancestors, innermost first. Of version 2 when
// `controller` is empty, else of that controller's hierarchy of version 1. Within a container the
// path may not exist here: its root, which is the container's own, comes last.
std::vector<std::filesystem::path> cgroup_folders(std::string_view controller) {
  const std::filesystem::path root = std::filesystem::path("/sys/fs/cgroup") / controller;
  std::vector<std::filesystem::path> folders;
  if (const auto below = cgroup_path(read_if_there("/proc/self/cgroup"), controller)) {
    for (std::filesystem::path path = below->substr(1); !path.empty(); path = path.parent_path()) {
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
  const auto lower = [&cpus](const std::string& quota) {
    if (const auto limit = cpus_of_quota(quota)) cpus = std::min(cpus, *limit);
  };
  for (const auto& folder : cgroup_folders("")) lower(read_if_there(folder / "cpu.max"));
  for (const auto& folder : cgroup_folders("cpu")) {  // quota and period in two files
    lower(read_if_there(folder / "cpu.cfs_quota_us") + " " +
          read_if_there(folder / "cpu.cfs_period_us"));
  }
  return cpus;
}

// The number after a name in a list of such pairs; 0 when the name is missing.
std::int64_t bytes_of_line(const std::string& text, const char* name) {
  const std::size_t begin = text.find(name);
  return begin == std::string::npos ? 0 : std::atoll(text.c_str() + begin + std::strlen(name));
}

}  // namespace

std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (!path.starts_with('/')) continue;
    if (names.empty() && controller.empty()) return std::string(path);
    while (!names.empty()) {
      const std::string_view name = names.substr(0, names.find(','));
      if (name == controller) return std::string(path);
      names.remove_prefix(std::min(name.size() + 1, names.size()));
    }
  }
  return std::nullopt;
}

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

namespace {

// The device that CUDA shows for a GPU named as a whole: for a split GPU its first instance.
Gpu shown(const PhysicalGpu& gpu, std::string device) {
  if (!gpu.mig.empty()) return {gpu.mig[0], gpu.name + " MIG", 0, gpu.mig[0]};
  return {std::move(device), gpu.name, gpu.memory_bytes, gpu.uuid};
}

std::vector<Gpu> all_gpus(const std::vector<PhysicalGpu>& all) {
  std::vector<Gpu> visible;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::string& id : all[i].mig) visible.push_back({id, all[i].name + " MIG", 0, id});
    if (all[i].mig.empty()) visible.push_back(shown(all[i], std::to_string(i)));
  }
  return visible;
}

// The GPU that one entry names: a number, a MIG id, or a UUID or the only one that begins with it.
std::optional<Gpu> find_gpu(const std::vector<PhysicalGpu>& all, std::string_view entry) {
  std::size_t index = 0;
  const auto read = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (read.ec == std::errc() && read.ptr == entry.data() + entry.size()) {
    if (index >= all.size()) return std::nullopt;
    return shown(all[index], std::to_string(index));
  }
  std::vector<Gpu> named;
  for (const PhysicalGpu& gpu : all) {
    if (entry.starts_with("GPU-") && gpu.uuid.starts_with(entry)) {
      named.push_back(shown(gpu, gpu.uuid));
    }
    for (const std::string& id : gpu.mig) {
      if (id == entry) named.push_back({id, gpu.name + " MIG", 0, id});
    }
  }
  return named.size() == 1 ? std::optional(named[0]) : std::nullopt;
}

bool is_gpu_name(std::string_view entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  return !entry.empty() && entry.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<Gpu> visible_gpus(const std::vector<PhysicalGpu>& all,
                              const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return all_gpus(all);
  std::vector<Gpu> visible;
  std::string_view rest = *cuda_visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<Gpu> gpu = find_gpu(all, trimmed(rest.substr(0, comma)));
    if (!gpu) break;  // as CUDA does: entries after an invalid one are not seen
    if (std::find(visible.begin(), visible.end(), *gpu) != visible.end()) return {};
    visible.push_back(*gpu);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return visible;
}

std::vector<std::string> named_gpus(std::string_view cuda_visible_devices) {
  std::vector<std::string> names;
  while (!cuda_visible_devices.empty()) {
    const std::size_t comma = std::min(cuda_visible_devices.find(','), cuda_visible_devices.size());
    const std::string_view name = trimmed(cuda_visible_devices.substr(0, comma));
    if (!is_gpu_name(name)) break;
    names.emplace_back(name);
    cuda_visible_devices.remove_prefix(std::min(comma + 1, cuda_visible_devices.size()));
  }
  return names;
}

namespace {

constexpr const char* kVisibleVariable = "CUDA_VISIBLE_DEVICES";

}  // namespace

std::vector<Gpu> own_gpus() {
  const char* set = std::getenv(kVisibleVariable);
  return visible_gpus(list_gpus(), set ? std::optional<std::string>(set) : std::nullopt);
}

NodeResources discover_node(const NodeOverrides& overrides) {
  NodeResources node;
  node.cpu_units = to_units(overrides.cpus.value_or(quota_cpus()));
  node.memory_bytes = memory_use().total_bytes;
  if (!overrides.gpus) {
    node.gpus = own_gpus();
    return node;
  }
  const auto wanted = static_cast<std::size_t>(std::max(0.0, *overrides.gpus));
  if (wanted > 0) node.gpus = own_gpus();
  if (node.gpus.size() > wanted) node.gpus.resize(wanted);
  while (node.gpus.size() < wanted) {
    node.gpus.push_back({std::to_string(node.gpus.size()), "logical GPU", 0});
  }
  return node;
}

int gpu_count() {
  return static_cast<int>(own_gpus().size());
}

void name_visible_gpus() {
  if (std::getenv(kVisibleVariable) != nullptr) return;
  std::string names;
  for (const Gpu& gpu : own_gpus()) names += (names.empty() ? "" : ",") + gpu.device;
  if (names.empty()) return;
  setenv(kVisibleVariable, names.c_str(), 1);
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);  // by which NVML numbers them
}

MemoryUse memory_use() {
  const std::string text = read_if_there("/proc/meminfo");
  MemoryUse use;
  use.total_bytes = bytes_of_line(text, "MemTotal:") * 1024;
  use.used_bytes = use.total_bytes - bytes_of_line(text, "MemAvailable:") * 1024;
  const auto lower = [&use](const std::filesystem::path& folder, const char* limit_file,
                            const char* usage_file, const char* idle_cache) {
    const auto limit = bytes_of_limit(read_if_there(folder / limit_file));
    if (!limit || *limit >= use.total_bytes) return;
    const auto usage = bytes_of_limit(read_if_there(folder / usage_file)).value_or(0);
    // The kernel gives back idle pages of the page cache when memory is wanted.
    const auto idle = bytes_of_line(read_if_there(folder / "memory.stat"), idle_cache);
    use = {std::max<std::int64_t>(0, usage - idle), *limit};
  };
  for (const auto& folder : cgroup_folders("")) {
    lower(folder, "memory.max", "memory.current", "\ninactive_file ");
  }
  for (const auto& folder : cgroup_folders("memory")) {
    lower(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file ");
  }
  return use;
}

std::string hostname() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string boot_id() {
  std::string id = read_if_there("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

namespace {

std::string ip_text(const sockaddr* address) {
  char text[INET_ADDRSTRLEN] = {};
  const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
  return inet_ntop(AF_INET, &ipv4->sin_addr, text, sizeof text) != nullptr ? text : "";
}

// The address that a packet to the outside would carry. Connecting a datagram socket sends nothing.
std::string default_route_ip() {
  const FileDescriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in outside{};
  outside.sin_family = AF_INET;
  outside.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &outside.sin_addr);  // reserved for documentation (RFC 5737)
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&outside), sizeof outside) != 0) return {};
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  return ip_text(reinterpret_cast<const sockaddr*>(&own));
}

// The first interface that is up and not the loopback.
std::string interface_ip() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    found = ip_text(one->ifa_addr);
  }
  freeifaddrs(all);
  return found;
}

}  // namespace

std::string primary_ip() {
  std::string ip = default_route_ip();
  if (ip.empty()) ip = interface_ip();
  return ip.empty() ? "127.0.0.1" : ip;
}

}  // namespace tune
