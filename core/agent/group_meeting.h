// Where the ranks of each attempt on this node meet: the socket at which rank 0 listens, and the
// memory that all of them share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "core/platform/process.h"

namespace tune {

class GroupMeeting {
 public:
  // Of rank 0; it listens on the loopback. Throws Error.
  FileDescriptor listen(std::uint64_t attempt);
  std::optional<int> port(std::uint64_t attempt) const;
  // A descriptor of it for a rank; not open where the system has no such memory.
  FileDescriptor memory(std::uint64_t attempt);
  void forget(std::uint64_t attempt);

  static constexpr const char* kAddress = "127.0.0.1";

 private:
  std::map<std::uint64_t, int> ports_;
  std::map<std::uint64_t, FileDescriptor> memories_;
};

}  // namespace tune
