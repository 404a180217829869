// A socket of this host that listens, for servers that tests make.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

namespace tune::testing {

struct Listener {
  int socket = -1;  // the caller closes it
  int port = 0;     // a free one
};

inline Listener listen_on_this_host(int waiting) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, plain, size) != 0 || listen(listener, waiting) != 0 ||
      getsockname(listener, plain, &size) != 0) {
    throw std::runtime_error("no socket");
  }
  return {listener, ntohs(address.sin_port)};
}

}  // namespace tune::testing
