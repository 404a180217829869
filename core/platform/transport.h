// Agent to driver over ZeroMQ: DEALER to ROUTER, each pair with a Link (core/link.h) on top, so
// that events and commands arrive once and in order over reconnects. Never blocks; one thread each.
//
// No queue grows without an end: a socket takes a named number of frames a peer; a frame that it
// refuses stays with the Link; and the agent's credit bounds the content of an agent's Link. A side
// that stands still is sent everything once, and then heartbeats until its queue is full.
//
// The driver's own agent speaks over a unix socket that only this user can open, if it ends with
// its driver. Machines that join, and an own agent that does not, speak over tcp, encrypted and
// known by keys (CURVE), and a gate admits those that have the join key; there is no tcp without
// keys.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/ids.h"
#include "core/join_token.h"
#include "core/peers.h"
#include "core/platform/join_keys.h"

namespace tune {

class DriverEndpoint {
 public:
  // Binds ("ipc:///path"). Throws Error (kProcess), and (kBadInput) for tcp. `epoch` is the
  // driver's.
  DriverEndpoint(const std::string& address, std::uint64_t epoch);
  ~DriverEndpoint();

  // Listens for machines that join at these addresses of this machine ("10.0.0.1") as well, all
  // with the same port; 0: one that is free. Returns the port. Once; after an Error (kProcess)
  // again. `mark` names the experiment to them, as keys may be those of several; empty: it has no
  // name.
  int listen(const std::vector<std::string>& addresses, int port, const JoinKeys& keys,
             const std::string& mark = {});
  // From now on machines join with this key; those that have joined stay.
  void admit(const std::string& join_public_key);
  void admit_also(const std::string& join_public_key);  // until the next admit()
  // Connections and machines that were refused since the last call, for people; each once.
  std::vector<std::string> take_refused();

  // Readable while there may be something to receive.
  int descriptor() const;

  // As Peers::expect, before the first receive().
  void expect(AgentNumber agent, const std::string& identity, std::uint64_t heard,
              std::chrono::nanoseconds now);
  // Fresh events, those of one agent in order. Agents are numbered as they are first heard. What
  // follows the frame that fills `room` bytes stays in the sockets.
  std::vector<Peers::Told> receive(std::chrono::nanoseconds now, std::size_t room = kAllRoom);
  static constexpr std::size_t kAllRoom = ~std::size_t{0};
  // Everything that the agent told up to there is in the journal and need not come again.
  void acknowledge(AgentNumber agent, Link::Position through);
  void send(AgentNumber agent, const Command& command);  // queued until flush
  bool has_all(AgentNumber agent) const;                 // it has acknowledged every command
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
  // Connects, again and again until there is a driver. `identity` is unique among agents. Throws
  // Error (kBadInput) for tcp.
  AgentEndpoint(const std::string& address, const std::string& identity);
  // The same by a token, at the first of its addresses that answers. `name` is unique as well.
  AgentEndpoint(const JoinToken& token, const std::string& name);
  // The same, when join_by() tells the token.
  struct JoinsLater {};
  AgentEndpoint(JoinsLater, const std::string& name);
  // Connects by this token from now on, as the same agent. Throws Error (kBadInput).
  void join_by(const JoinToken& token);
  ~AgentEndpoint();

  int descriptor() const;
  void send(const AgentEvent& event);  // queued until flush
  // Of the experiment's drivers: of one that says another mark than the first nothing is heard.
  std::vector<Command> receive();
  void flush(std::chrono::nanoseconds now);
  // Events that the driver has not acknowledged: the agent's credit is spent at kAgentCreditBytes.
  std::size_t unacknowledged_bytes() const;
  std::size_t handed_bytes() const;  // all that the socket ever took
  // The time of the flush after which the driver was last heard.
  std::chrono::nanoseconds last_heard() const;
  const std::string& last_complaint() const;  // as the driver's
  // The reason why the driver does not take this machine; it is of no use to try again. Empty: it
  // may.
  const std::string& refusal() const;
  // The driver that answers is of another version.
  bool is_of_other_version() const;
  // The reason why it does not reach the driver, as far as is known, for people.
  std::string why_not_connected() const;
  std::string address() const;  // of those in the token, the one it is connected by, or tries
  std::uint64_t driver_epoch() const;  // of the driver that was heard last; 0: none was
  const std::string& mark() const;     // of the experiment; empty: not known, or it has none
  // The mark of another experiment, whose driver answers now; empty: there is none.
  const std::string& other_driver() const;

 private:
  struct Socket;
  std::unique_ptr<Socket> socket_;
};

// The identity of an agent of this build that joins under this name.
std::string joined_identity(const std::string& name);

inline constexpr std::size_t kAgentCreditBytes = 4u << 20;

}  // namespace tune
