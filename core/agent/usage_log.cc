#include "core/agent/usage_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <memory>

#include <fmt/format.h>

#include "core/platform/process.h"

namespace tune {

namespace {

// Appends the line to a file of the folder, when both are plain; returns the pace from now on.
Duration append(const std::filesystem::path& folder, const std::string& line) {
  const std::filesystem::path file = folder / kUsageFile;
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const FileDescriptor opened(::open(file.c_str(), flags, 0644));
  struct stat status {};
  if (!opened.is_open() || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return UsageLog::kEvery;
  }
  const auto size = static_cast<std::uintmax_t>(status.st_size);
  const ssize_t written = ::write(opened.get(), line.data(), line.size());
  const bool is_cut = written >= 0 && static_cast<std::size_t>(written) < line.size();
  if (is_cut) static_cast<void>(::ftruncate(opened.get(), status.st_size) == 0);  // a full disk
  return UsageLog::kEvery * (1LL << std::min<std::uintmax_t>(size / UsageLog::kBytesAtOnePace, 30));
}

}  // namespace

UsageLog::UsageLog(GroupMeter meter, ReadGpu read_gpu)
    : meter_(std::move(meter)), read_gpu_(std::move(read_gpu)) {
  if (read_gpu_) return;
  read_gpu_ = [gpus = std::make_shared<GpuMeter>()](const std::string& uuid) {
    return gpus->read(uuid);
  };
}

void UsageLog::look(Duration now, WallTime wall,
                    const std::map<std::uint64_t, UsedBy>& attempts) noexcept try {
  std::erase_if(since_, [&](const auto& one) { return !attempts.contains(one.first); });
  std::set<pid_t> groups;
  for (const auto& [key, one] : attempts) groups.insert(one.groups.begin(), one.groups.end());
  const std::map<pid_t, GroupUsage> usage = meter_.read(groups);
  for (const auto& [key, one] : attempts) {
    const auto [at, is_new] = since_.try_emplace(key);
    Since& since = at->second;
    if (is_new) since.begun = one.begun, since.due = one.begun + kEvery / 2;
    add(since, one, usage);
    if (now < since.due || now <= since.begun) continue;
    const Duration pace = append(one.folder, line(since, one, now, wall));
    since = {
        .begun = now, .due = now + pace - kEvery / 2, .cpu = {}, .memory_bytes = 0, .gpus = {}};
  }
} catch (const std::exception&) {  // no memory, say
}

void UsageLog::add(Since& since, const UsedBy& one, const std::map<pid_t, GroupUsage>& usage) {
  std::int64_t memory_bytes = 0;
  for (const pid_t group : one.groups) {
    const auto found = usage.find(group);
    if (found == usage.end()) continue;
    since.cpu += found->second.cpu;
    memory_bytes += found->second.memory_bytes;
  }
  since.memory_bytes = std::max(since.memory_bytes, memory_bytes);
  for (const auto& [index, uuid] : one.gpus) {
    const std::optional<GpuLoad> load = read_gpu_(uuid);
    if (!load) continue;
    Gpu& gpu = since.gpus[index];
    if (load->busy) gpu.busy.add(*load->busy);
    gpu.memory_bytes = std::max(gpu.memory_bytes, load->memory_bytes);
  }
}

std::string UsageLog::line(const Since& since, const UsedBy& one, Duration now, WallTime wall) {
  std::string text = fmt::format(
      R"({{"time":{:.3f},"attempt":{},"cpus":{:.3g},"memory_bytes":{})", seconds(wall),
      one.attempt.value, seconds(since.cpu) / seconds(now - since.begun), since.memory_bytes);
  const char* before = R"(,"gpus":[)";
  for (const auto& [index, gpu] : since.gpus) {
    text += fmt::format(R"({}{{"gpu":{},)", std::exchange(before, ","), index);
    if (gpu.busy.count > 0) {
      text += fmt::format(R"("busy":{:.3g},)", gpu.busy.value / gpu.busy.count);
    }
    text += fmt::format(R"("memory_bytes":{}}})", gpu.memory_bytes);
  }
  return text + (since.gpus.empty() ? "}\n" : "]}\n");
}

}  // namespace tune
