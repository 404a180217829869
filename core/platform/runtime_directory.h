// RuntimeDirectory: the folder of sockets. A 0700 folder with a short path (a socket's path may
// have 107 bytes) under $XDG_RUNTIME_DIR, else the temporary folder; never in the results folder.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "core/platform/process.h"

namespace tune {

class RuntimeDirectory {
 public:
  // Makes a new one; folders that dead processes of this user left behind are removed. Throws Error
  // (kIo) when none can be made.
  RuntimeDirectory();
  ~RuntimeDirectory();  // removes it, in the process that made it only
  RuntimeDirectory(const RuntimeDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // While a process has it open, the folder is in use and the claims in it hold.
  int lock_descriptor() const { return lock_.get(); }

 private:
  std::filesystem::path path_;
  pid_t owner_ = 0;
  FileDescriptor lock_;  // on the folder itself: in use as long as anybody holds it
};

// Whether that is a runtime folder of this user that a process holds.
bool is_live_runtime_directory(const std::filesystem::path& folder);
// Those in `base`.
std::vector<std::filesystem::path> live_runtime_directories(const std::filesystem::path& base);

}  // namespace tune
