// ExperimentLock: one driver at a time. A flock on a file; child processes that inherit the
// descriptor hold it too, so a new driver gets it only when every process of the old one is gone.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/platform/process.h"

namespace tune {

class ExperimentLock {
 public:
  using Told = std::function<void(const std::string& holders)>;
  // Creates the file when it is not there, and writes this process's number into it. Waits at most
  // so long for others, then throws Error (kBadInput) that names the processes holding it. `waits`
  // is told of them once, at once, when there is something to wait for. Lets heirs of a process
  // that is gone go on if they are stopped: they would hold it for good.
  ExperimentLock(const std::filesystem::path& file, std::chrono::milliseconds wait,
                 const Told& waits = {});

  int descriptor() const { return file_.get(); }  // for children to inherit
  // Whether the file of that name is the one that is held: not removed, renamed or made anew.
  bool is_at(const std::filesystem::path& file) const;
  static bool is_held(const std::filesystem::path& file);

 private:
  bool try_lock(const std::filesystem::path& file);
  void sign() const;
  void wake_orphans(const std::filesystem::path& file) const;

  FileDescriptor file_;
};

// Processes of this machine that have the file open, as far as this user may see.
std::vector<int> holders_of(const std::filesystem::path& file);
// Them but this one, the oldest by name: "process 12 (tune), 14 (redis-server) and 3 more".
std::string describe_holders(const std::filesystem::path& file);

}  // namespace tune
