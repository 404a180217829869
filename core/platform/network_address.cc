#include "core/platform/network_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace tune {
namespace {

// TEST-NET-2, which is nobody's and lies behind the default route.
constexpr const char* kSomewhereElse = "198.51.100.1";

// The kernel chooses a socket's own address when it is told where the socket goes to.
std::string source_towards(const addrinfo& to) {
  const int socket = ::socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char text[NI_MAXHOST] = "";
  auto* address = reinterpret_cast<sockaddr*>(&own);
  const bool is_known =
      ::connect(socket, to.ai_addr, to.ai_addrlen) == 0 &&
      ::getsockname(socket, address, &size) == 0 &&
      ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
  ::close(socket);
  return is_known ? text : std::string();
}

std::string source_towards(const std::string& address, int port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (std::string source = source_towards(*one); !source.empty()) return source;
  }
  return {};
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

std::string own_address_towards(const std::string& address, int port) {
  const std::string source = source_towards(address, port);
  if (!source.empty() && !is_loopback(source)) return source;
  const std::string outside = source_towards(kSomewhereElse, port);
  return outside.empty() ? source : outside;
}

}  // namespace tune
