// A driver that machines may join over tcp, a machine that does, and bare connections, for tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/platform/join_keys.h"
#include "platform/endpoints.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {

using Texts = std::vector<std::string>;

// A driver that listens at this machine's own address, and its token.
struct OpenDriver : Driver {
  // With the keys and the port of another one, that has ended.
  explicit OpenDriver(const TemporaryFolder& folder, const std::string& mark = {},
                      const OpenDriver* former = nullptr, std::uint64_t epoch = 1)
      : Driver(folder) {
    if (former != nullptr) keys = former->keys;
    start(epoch);
    port = endpoint->listen({"127.0.0.1"}, former == nullptr ? 0 : former->port, keys, mark);
    keys.addresses = {with_port("127.0.0.1", port)};
  }
  JoinToken token() const { return token_of(keys, "0a1b2"); }
  void take_refused() {
    for (std::string& text : endpoint->take_refused()) refused.push_back(std::move(text));
  }

  JoinKeys keys = make_keys();
  int port = 0;
  Texts refused;
};

struct Joined {
  explicit Joined(const JoinToken& token, const char* name = "node-1") : endpoint(token, name) {}
  explicit Joined(const char* name) : endpoint(AgentEndpoint::JoinsLater{}, name) {}
  void turn() {
    for (const Command& command : endpoint.receive()) {
      received.push_back(std::get<Continue>(command).trial.value);
    }
    endpoint.flush(now += std::chrono::milliseconds(1));
  }
  AgentEndpoint endpoint;
  std::vector<std::uint32_t> received;
  std::chrono::nanoseconds now{};
};

// Whether it is heard while both go on.
inline bool is_heard(OpenDriver& driver, Joined& machine, const std::string& text) {
  machine.endpoint.send(Warning{text});
  return eventually([&] {
    machine.turn();
    driver.turn();
    driver.take_refused();
    return !driver.received.empty() && driver.received.back() == text;
  });
}

// To a port of this host; -1: it is not taken.
inline int connected_socket(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace tune::testing
