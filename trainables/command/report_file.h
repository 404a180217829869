// A file that a program appends lines to, read as it grows. It need not be there yet, and may be
// begun anew or replaced meanwhile: then it is read from its beginning.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/platform/process.h"
#include "trainables/command/line_buffer.h"

namespace tune {

class ReportFile {
 public:
  // A file that an earlier attempt has left there is moved aside, as the program begins anew:
  // "metrics.jsonl.a1" after attempt 1. Throws AttemptFailure when it cannot be.
  ReportFile(std::filesystem::path path, std::uint32_t attempt);

  // Reads on; false when there is nothing new. To be called when next() of lines() gives none.
  bool read();
  LineBuffer& lines() { return lines_; }

 private:
  bool open_again();

  std::filesystem::path path_;
  FileDescriptor file_;
  ino_t inode_ = 0;
  std::uint64_t offset_ = 0;
  std::string bytes_;
  LineBuffer lines_;
};

}  // namespace tune
