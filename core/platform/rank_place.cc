#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/mig.h"
#include "core/platform/node.h"
#include "core/platform/process.h"
#include "core/platform/rank_group.h"

namespace tune {

namespace {

// Of a list with a MIG instance each rank is given its own alone, as CUDA would show all of them
// the first. Nothing for a list that all may have.
std::optional<std::string> own_of_list(int local_rank) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> names = named_gpus(list == nullptr ? "" : list);
  const auto own = static_cast<std::size_t>(local_rank);
  if (own >= names.size() || std::ranges::none_of(names, is_mig_instance)) return std::nullopt;
  return names[own];
}

}  // namespace

std::map<std::string, std::string> rank_environment(const RankPlace& place, int local_rank) {
  const std::string rank = std::to_string(place.first_rank() + local_rank);
  const std::string ranks = std::to_string(place.local_ranks * place.nodes);
  std::map<std::string, std::string> environment = {
      {"RANK", rank},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"TUNE_DEVICE_INDEX", std::to_string(local_rank)},  // it may be a trial that starts ranks
      {"WORLD_SIZE", ranks},
      {"LOCAL_WORLD_SIZE", std::to_string(place.local_ranks)},
      {"GROUP_RANK", std::to_string(place.node)},
      {"GROUP_WORLD_SIZE", std::to_string(place.nodes)},
      {"ROLE_NAME", "default"},
      {"ROLE_RANK", rank},
      {"ROLE_WORLD_SIZE", ranks},
      {"MASTER_ADDR", place.master_address},
      {"MASTER_PORT", std::to_string(place.master_port)},
      // Where programs look whether they were started by torchrun. No agent holds a store for them:
      // rank 0 listens itself.
      {"TORCHELASTIC_RUN_ID", "none"},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
  };
  if (const auto own = own_of_list(local_rank)) {
    environment["CUDA_VISIBLE_DEVICES"] = *own;
    environment["TUNE_DEVICE_INDEX"] = std::to_string(0);
  }
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    environment["OMP_NUM_THREADS"] = std::to_string(place.threads);
  }
  return environment;
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
  // What an ended connection leaves behind is in nobody's way.
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
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
