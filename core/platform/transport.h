// Agent to driver over ZeroMQ: DEALER to ROUTER, each pair with a Link (core/link.h) on top, so
// that events and commands arrive once and in order over reconnects. Never blocks; one thread each.
//
// No queue grows without an end: a socket takes a named number of frames a peer; a frame that it
// refuses stays with the Link; and the agent's credit bounds the content of an agent's Link. A side
// that stands still is sent everything once, and then heartbeats until its queue is full.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/ids.h"
#include "core/peers.h"

namespace tune {

class DriverEndpoint {
 public:
  // Binds ("ipc:///path"). Throws Error (kProcess). `epoch` is the driver's.
  DriverEndpoint(const std::string& address, std::uint64_t epoch);
  ~DriverEndpoint();

  // Readable while there may be something to receive.
  int descriptor() const;

  // Fresh events, those of one agent in order. Agents are numbered as they are first heard.
  std::vector<Peers::Told> receive(std::chrono::nanoseconds now);
  // Everything that the agent told up to there is in the journal and need not come again.
  void acknowledge(AgentNumber agent, Link::Position through);
  void send(AgentNumber agent, const Command& command);  // queued until flush
  // Sends queued and missed messages, acknowledgements and heartbeats, as far as the socket takes
  // them.
  void flush(std::chrono::nanoseconds now);

  const Peers& peers() const;

 private:
  struct Socket;
  std::unique_ptr<Socket> socket_;
};

class AgentEndpoint {
 public:
  // Connects, again and again until there is a driver. `identity` is unique among agents.
  AgentEndpoint(const std::string& address, const std::string& identity);
  ~AgentEndpoint();

  int descriptor() const;
  void send(const AgentEvent& event);  // queued until flush
  std::vector<Command> receive();
  void flush(std::chrono::nanoseconds now);
  // Events that the driver has not acknowledged: the agent's credit is spent at kAgentCredit.
  std::size_t unacknowledged_bytes() const;
  std::size_t handed_bytes() const;  // all that the socket ever took
  // The time of the flush after which the driver was last heard.
  std::chrono::nanoseconds last_heard() const;
  const std::string& last_complaint() const;  // as the driver's

 private:
  struct Socket;
  std::unique_ptr<Socket> socket_;
};

inline constexpr std::size_t kAgentCreditBytes = 4u << 20;

}  // namespace tune
