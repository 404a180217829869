// Calls on ZeroMQ's sockets as all of ours make them: never waiting, and whatever signals come.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

#include <zmq.hpp>

#include "core/platform/process.h"

namespace tune {

// The descriptor ZMQ_FD signals edges only, and sending consumes them. This one is readable as long
// as the socket may have input.
class InputSignal {
 public:
  InputSignal()
      : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    watch(event_.get());
  }
  explicit InputSignal(int socket_descriptor) : InputSignal() { watch(socket_descriptor); }
  void watch(int descriptor) {
    epoll_event watched{};
    watched.events = EPOLLIN;
    epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &watched);
  }
  void ignore(int descriptor) { epoll_ctl(poll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }
  int descriptor() const { return poll_.get(); }
  void raise() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(event_.get(), &one, sizeof one);
  }
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto taken = read(event_.get(), &count, sizeof count);
  }

 private:
  FileDescriptor event_;
  FileDescriptor poll_;
};

// Every call on a socket may be interrupted by a signal.
template <class Call>
auto uninterrupted(Call call) {
  while (true) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

inline void raise_if_readable(zmq::socket_t& socket, InputSignal& signal) {
  const int events = uninterrupted([&] { return socket.get(zmq::sockopt::events); });
  if ((events & ZMQ_POLLIN) != 0) signal.raise();
}

inline bool receive_part(zmq::socket_t& socket, zmq::message_t& part) {
  return uninterrupted([&] { return socket.recv(part, zmq::recv_flags::dontwait); }).has_value();
}

// False when the socket is full.
inline bool send_part(zmq::socket_t& socket, std::string_view bytes, zmq::send_flags flags) {
  zmq::message_t part(bytes.data(), bytes.size());
  return uninterrupted([&] { return socket.send(part, flags | zmq::send_flags::dontwait); })
      .has_value();
}

}  // namespace tune
