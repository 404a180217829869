#include "core/agent/group_meeting.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <utility>

#include "core/platform/rank_place.h"

namespace tune {

FileDescriptor GroupMeeting::listen(std::uint64_t attempt) {
  Listener listener = listen_at(kAddress, 0);
  ports_[attempt] = listener.port;
  return std::move(listener.socket);
}

std::optional<int> GroupMeeting::port(std::uint64_t attempt) const {
  const auto found = ports_.find(attempt);
  return found == ports_.end() ? std::nullopt : std::optional(found->second);
}

FileDescriptor GroupMeeting::memory(std::uint64_t attempt) {
  FileDescriptor& memory = memories_[attempt];
  if (!memory.is_open()) memory = memory_of_ranks();
  return FileDescriptor(memory.is_open() ? ::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0) : -1);
}

void GroupMeeting::forget(std::uint64_t attempt) {
  ports_.erase(attempt);
  memories_.erase(attempt);
}

}  // namespace tune
