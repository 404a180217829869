// The two ends of a transport with their loops, for tests.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/platform/transport.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {

inline std::string text_of(const AgentEvent& event) {
  return std::get<Warning>(event).text;
}

// A driver's end that may be made anew, and what it received.
struct Driver {
  explicit Driver(const TemporaryFolder& folder)
      : address("ipc://" + folder.path().string() + "/d") {}

  void start(std::uint64_t epoch) { endpoint = std::make_unique<DriverEndpoint>(address, epoch); }
  void end() { endpoint.reset(), positions.clear(); }
  // One turn of its loop: waits a little for input.
  void turn(bool journals = true) {
    turn([] {}, journals);
  }
  void turn(const std::function<void()>& journal, bool journals = true) {
    pollfd watched{endpoint->descriptor(), POLLIN, 0};
    ::poll(&watched, 1, 1);
    for (const Peers::Told& told : endpoint->receive(now)) {
      received.push_back(text_of(told.event));
      last_agent = told.agent;
      positions[told.agent] = told.position;
    }
    journal();
    for (const auto& [agent, position] : positions) {
      if (journals) endpoint->acknowledge(agent, position);
    }
    endpoint->flush(now += std::chrono::milliseconds(1));
  }

  std::string address;
  std::unique_ptr<DriverEndpoint> endpoint;
  std::vector<std::string> received;
  AgentNumber last_agent;
  std::map<AgentNumber, Link::Position> positions;
  std::chrono::nanoseconds now{};
};

struct Agent {
  explicit Agent(const Driver& driver, const char* identity = "node-1")
      : Agent(driver.address, identity) {}
  explicit Agent(const std::string& address, const char* identity = "node-1")
      : endpoint(address, identity) {}

  void say(const std::string& text) { endpoint.send(Warning{text}); }
  void turn(std::chrono::nanoseconds step = std::chrono::milliseconds(1)) {
    pollfd watched{endpoint.descriptor(), POLLIN, 0};
    ::poll(&watched, 1, 1);
    turn_at_once(step);
  }
  void turn_at_once(std::chrono::nanoseconds step) {
    for (const Command& command : endpoint.receive()) {
      received.push_back(std::get<Continue>(command).trial.value);
    }
    endpoint.flush(now += step);
  }

  AgentEndpoint endpoint;
  std::vector<std::uint32_t> received;
  std::chrono::nanoseconds now{};
};

inline Command numbered(std::uint32_t number) {
  return Continue{{number}, {1}, {}};
}

}  // namespace tune::testing
