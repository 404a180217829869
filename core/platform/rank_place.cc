#include "core/platform/rank_place.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/node.h"

namespace tune {

Environment started_rank_environment(const RankPlace& place, int local_rank) {
  const auto is_set = [](const std::string& name) { return std::getenv(name.c_str()) != nullptr; };
  Environment environment = rank_environment(place, local_rank, is_set);
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> gpus = named_gpus(list == nullptr ? "" : list);
  const auto own = static_cast<std::size_t>(local_rank);
  if (own < gpus.size() && std::ranges::any_of(gpus, is_mig_instance)) {
    add_gpus(environment, shown_gpus(gpus, own, 1));
  }
  return environment;
}

FileDescriptor memory_of_ranks() {
  static bool has_pidfds = false;
  if (!has_pidfds) {
    const FileDescriptor own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    has_pidfds = own.is_open();
  }
  return FileDescriptor(has_pidfds ? ::memfd_create("tune-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                   : -1);
}

Listener listen_at(const std::string& address, int port) {
  const auto refuse = [&](const std::string& cause, const char* remedy) {
    return Error(ErrorCode::kBadInput,
                 fmt::format("listening on {}:{}: {}: {}", address, port, cause, remedy));
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int answer = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (answer != 0) throw refuse(gai_strerror(answer), "give an address of the node of rank 0");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  FileDescriptor listener(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Remains of an ended connection do not block the port that is asked for. For any free port the
  // option is left out: the kernel would compare each port that it tries with such remains, 20 us.
  const int on = 1;
  if (port != 0) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0) {
    throw refuse(std::strerror(errno), errno == EADDRINUSE
                                           ? "another program has the port: give another one, or 0"
                                           : "give an address and a port of the node of rank 0");
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const int taken = bound.ss_family == AF_INET6
                        ? ntohs(reinterpret_cast<sockaddr_in6&>(bound).sin6_port)
                        : ntohs(reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return {std::move(listener), taken};
}

}  // namespace tune
