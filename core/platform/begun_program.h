// A program whose start is not waited for: a file system that stalls may keep its file for long.
#pragma once

#include <sys/types.h>

#include <optional>

#include "core/platform/process.h"

namespace tune {

struct BegunProgram {
  pid_t pid = -1;
  FileDescriptor report;  // readable when it is known whether the program is executed
};
// As spawn(), but returns at once. When the program cannot be executed its process ends, and the
// caller waits for that.
BegunProgram begin_program(const SpawnOptions& options);  // Error (kProcess)
// 0: it is executed, or was killed before; else the errno of that. Nothing: it is not known yet.
std::optional<int> why_not_executed(const FileDescriptor& report);

}  // namespace tune
