#include "core/platform/other_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/platform/lock.h"

namespace tune {

// The descriptor first: should the number be given to another process meanwhile, that one does not
// have the file open.
std::optional<OtherProcess> OtherProcess::find(pid_t pid, const std::filesystem::path& file) {
  OtherProcess found(pid, process_descriptor(pid));
  if (!found.exit_.is_open() || found.has_ended()) return std::nullopt;
  if (!std::ranges::binary_search(holders_of(file), pid)) return std::nullopt;
  return found;
}

void OtherProcess::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, exit_.get(), number, nullptr, 0);
}

bool OtherProcess::has_ended(std::chrono::milliseconds patience) const {
  pollfd watched{exit_.get(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(patience.count())) == 1;
}

}  // namespace tune
