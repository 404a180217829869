#include "trainables/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tune {
void Channel::send(const WorkerEvent& event) {
  const std::lock_guard lock(sending_);
  output_.clear();
  encode(output_, event);
  const std::string_view payload = output_.bytes();
  char header[kFrameHeaderBytes];
  put_frame_header(header, payload.size());
  std::array<iovec, 2> parts{
      {{header, sizeof header}, {const_cast<char*>(payload.data()), payload.size()}}};
  std::size_t left = sizeof header + payload.size();
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  while (left > 0) {
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) ::_exit(kAgentGoneExitCode);
    left -= static_cast<std::size_t>(sent);
    for (auto rest = static_cast<std::size_t>(sent); iovec & part : parts) {
      const std::size_t taken = std::min(rest, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      rest -= taken;
    }
  }
}

WorkerCommand Channel::wait() {
  for (;;) {
    if (auto command = buffered()) return std::move(*command);
    receive(true);
  }
}

std::optional<WorkerCommand> Channel::poll() {
  if (auto command = buffered()) return command;
  if (!receive(false)) return std::nullopt;
  return buffered();
}

bool Channel::receive(bool wait) {
  char bytes[4u << 10];  // commands are short, and each page of a young stack is a fault
  for (;;) {
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, wait ? 0 : MSG_DONTWAIT);
    if (count > 0) {
      input_.append({bytes, static_cast<std::size_t>(count)});
      return true;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    ::_exit(kAgentGoneExitCode);
  }
}

bool Channel::is_another_alone() {
  while (receive(false)) {
  }
  while (auto command = next_command()) early_.push_back(std::move(*command));
  if (asks_ && !answer_) return true;
  const bool alone = !asks_ || *answer_;
  asks_ = true;
  answer_.reset();
  send(AskAlone{});
  return alone;
}

std::optional<WorkerCommand> Channel::buffered() {
  if (early_.empty()) return next_command();
  WorkerCommand command = std::move(early_.front());
  early_.pop_front();
  return command;
}

// Answers are not commands to those that wait for one.
std::optional<WorkerCommand> Channel::next_command() {
  while (const auto frame = input_.next()) {
    auto command = decoded<WorkerCommand>(*frame);
    const auto* others = std::get_if<OthersAlone>(&command);
    if (others == nullptr) return command;
    answer_ = others->any;
  }
  return std::nullopt;
}

}  // namespace tune
