#include "core/agent/worker_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {
namespace {

[[noreturn]] void fail(const char* call) {
  throw Error(ErrorCode::kProcess,
              fmt::format("starting a worker: {}: {}", call, std::strerror(errno)));
}

}  // namespace

void WorkerSocket::send(const WorkerCommand& command) {
  append_frame(output_, encoded(command));
  flush();
}

void WorkerSocket::flush() {
  while (has_backlog()) {
    const ssize_t count = ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) break;  // it is dead; its end comes as the end of a process
    sent_ += static_cast<std::size_t>(count);
  }
  output_.clear();
  sent_ = 0;
}

WorkerSocket::Read WorkerSocket::read() {
  static char bytes[kReadBytes];
  for (;;) {
    const ssize_t count = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count > 0) {
      input_.append({bytes, static_cast<std::size_t>(count)});
      return Read::kData;
    }
    if (count < 0 && errno == EINTR) continue;
    const bool nothing = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    return nothing ? Read::kNothing : Read::kEnd;
  }
}

std::optional<WorkerEvent> WorkerSocket::next() {
  const auto frame = input_.next();
  if (!frame) return std::nullopt;
  return decoded<WorkerEvent>(*frame);
}

WorkerSocketPair worker_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace tune
