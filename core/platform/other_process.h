// OtherProcess: a process that this one has not started. It is known by a descriptor, so that no
// other process is ever taken for it; its exit status is its parent's to know.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

#include "core/platform/process.h"

namespace tune {

class OtherProcess {
 public:
  // The process of that number, if it has that file open. Nothing: it is gone, or is another one.
  static std::optional<OtherProcess> find(pid_t pid, const std::filesystem::path& file);

  pid_t pid() const { return pid_; }
  int descriptor() const { return exit_.get(); }  // readable once it has ended
  void signal(int number) const;
  // Whether it has ended, after waiting at most this long.
  bool has_ended(std::chrono::milliseconds patience = {}) const;

 private:
  OtherProcess(pid_t pid, FileDescriptor exit) : pid_(pid), exit_(std::move(exit)) {}

  pid_t pid_;
  FileDescriptor exit_;
};

}  // namespace tune
