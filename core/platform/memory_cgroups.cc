#include "core/platform/memory_cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/node.h"
#include "core/platform/process.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGroupPrefix = "tune-";

// These files take one write each, and none can be created. Returns an empty text when the write
// was taken.
std::string put(const fs::path& file, const std::string& text) {
  const FileDescriptor open(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (open.is_open() && ::write(open.get(), text.data(), text.size()) >= 0) return {};
  return fmt::format("writing {} to {}: {}", text, file.string(), std::strerror(errno));
}

bool holds_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n';
    if (begins && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

// The number after "oom_kill " at the beginning of a line.
std::int64_t kills_in(std::string_view text) {
  constexpr std::string_view kName = "oom_kill ";
  std::size_t at = text.starts_with(kName) ? 0 : text.find("\noom_kill ");
  if (at == std::string_view::npos) return 0;
  at = text.find(kName, at) + kName.size();
  std::int64_t kills = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), kills);
  return kills;
}

}  // namespace

MemoryCgroups MemoryCgroups::find() {
  return find("/sys/fs/cgroup", read_if_there("/proc/self/cgroup"));
}

MemoryCgroups MemoryCgroups::find(const fs::path& mounts, std::string_view own) {
  MemoryCgroups groups;
  if (const auto path = cgroup_path(own, "memory")) {
    // Within a container the path may not exist here: the root is the container's own then.
    for (const fs::path& parent : {mounts / "memory" / path->substr(1), mounts / "memory"}) {
      if (fs::exists(parent / "memory.limit_in_bytes") && groups.try_below(parent, Version::kOne)) {
        return groups;
      }
    }
  }
  if (const auto path = cgroup_path(own, "")) {
    fs::path parent = mounts / path->substr(1);
    while (!fs::exists(parent / "cgroup.controllers") && parent != mounts)
      parent = parent.parent_path();
    const fs::path control = parent / "cgroup.subtree_control";
    // Refused where the group holds processes.
    if (!holds_word(read_if_there(control), "memory")) put(control, "+memory");
    if (groups.try_below(parent, Version::kTwo)) return groups;
    // Beside this process's group, but never out of a limit that a user has set.
    const std::string limit = read_if_there(parent / "memory.max");
    if (parent != mounts && limit.starts_with("max") &&
        groups.try_below(parent.parent_path(), Version::kTwo)) {
      return groups;
    }
  }
  if (groups.why_not_.empty()) groups.why_not_ = "there is no cgroup with a memory controller";
  return groups;
}

// Finds out by trying.
bool MemoryCgroups::try_below(const fs::path& parent, Version version) {
  parent_ = parent;
  version_ = version;
  if (version == Version::kTwo &&
      !holds_word(read_if_there(parent / "cgroup.subtree_control"), "memory")) {
    why_not_ = fmt::format("{} hands no memory controller on", parent.string());
    return false;
  }
  remove_stale();
  const std::string probe = "probe";
  why_not_ = make(probe, std::int64_t{1} << 40);
  remove(probe);
  return why_not_.empty();
}

// Removes groups of processes that were killed. A group in use cannot be removed.
void MemoryCgroups::remove_stale() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent_, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kGroupPrefix)) continue;
    const pid_t pid = std::atoi(name.c_str() + kGroupPrefix.size());
    if (pid > 1 && ::kill(pid, 0) != 0 && errno == ESRCH) ::rmdir(entry.path().c_str());
  }
}

fs::path MemoryCgroups::folder(const std::string& name) const {
  return parent_ / fmt::format("{}{}-{}", kGroupPrefix, ::getpid(), name);
}

std::string MemoryCgroups::make(const std::string& name, std::int64_t limit_bytes) const {
  const fs::path made = folder(name);
  if (::mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) {
    return fmt::format("making the cgroup {}: {}", made.string(), std::strerror(errno));
  }
  const std::string bytes = std::to_string(limit_bytes);
  if (version_ == Version::kOne) {
    const std::string failed = put(made / "memory.limit_in_bytes", bytes);
    put(made / "memory.memsw.limit_in_bytes", bytes);  // not there where swap is not counted
    return failed;
  }
  const std::string failed = put(made / "memory.max", bytes);
  put(made / "memory.swap.max", "0");
  put(made / "memory.oom.group", "1");  // the ranks of a trial end together
  return failed;
}

std::string MemoryCgroups::add(const std::string& name, pid_t pid) const {
  return put(folder(name) / "cgroup.procs", std::to_string(pid));
}

bool MemoryCgroups::was_exceeded(const std::string& name) const {
  const char* file = version_ == Version::kOne ? "memory.oom_control" : "memory.events";
  return kills_in(read_if_there(folder(name) / file)) > 0;
}

bool MemoryCgroups::remove(const std::string& name) const {
  return ::rmdir(folder(name).c_str()) == 0 || errno == ENOENT;
}

}  // namespace tune
