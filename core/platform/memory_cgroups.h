// MemoryCgroups: a limit on the memory of a few processes together, by a cgroup of version 1 or 2.
// The kernel ends processes of a group that needs more, and no others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tune {

class MemoryCgroups {
 public:
  // The groups lie below this process's own cgroup. With version 2 they lie beside it where its
  // parent has handed memory on, as a cgroup that holds processes may not have such children.
  // Groups that earlier processes left behind are removed. `mounts` and `own` stand for
  // /sys/fs/cgroup and /proc/self/cgroup.
  static MemoryCgroups find(const std::filesystem::path& mounts, std::string_view own);
  static MemoryCgroups find();  // on this machine

  // The reason why no limit can be set here; empty: it can.
  const std::string& why_not() const { return why_not_; }

  // Makes a group of that name, unique in this process, with a limit. Returns the cause of a
  // failure; empty: done.
  std::string make(const std::string& name, std::int64_t limit_bytes) const;
  std::string add(const std::string& name, pid_t pid) const;
  // Whether the kernel has ended a process of the group because the group needed more.
  bool was_exceeded(const std::string& name) const;
  // False while processes of the group are not reaped.
  bool remove(const std::string& name) const;

 private:
  enum class Version : std::uint8_t { kOne, kTwo };
  MemoryCgroups() = default;
  bool try_below(const std::filesystem::path& parent, Version version);
  void remove_stale() const;
  std::filesystem::path folder(const std::string& name) const;

  std::filesystem::path parent_;
  Version version_ = Version::kTwo;
  std::string why_not_;
};

}  // namespace tune
