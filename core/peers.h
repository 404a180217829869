// Peers: the driver's side of its links with all agents. It numbers the agents as they are first
// heard, hands on their events, and says what is to be sent to each. Pure: the caller has the
// sockets.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/agent_contract.h"
#include "core/ids.h"
#include "core/link.h"
#include "core/link_agenda.h"

namespace tune {

class Peers {
 public:
  using Time = Link::Time;

  // An event that an agent told.
  struct Told {
    AgentNumber agent;
    AgentEvent event;
    std::size_t bytes = 0;     // of its message
    Link::Position position;   // to be acknowledged when the event is in the journal
    std::uint64_t number = 0;  // among all that the agent ever told, to any driver: 1, 2 ...
  };

  explicit Peers(std::uint64_t epoch) : epoch_(epoch) {}

  // An agent of the driver before this one, under the number that the journal knows it by. What it
  // told that one up to `heard` is there, and is dropped when it comes again. Before it is heard.
  void expect(AgentNumber agent, const std::string& identity, std::uint64_t heard, Time now);

  // Adds the fresh events of a frame to `told`, in order. A message that cannot be read becomes a
  // Warning. A frame that cannot be read is dropped with a complaint; a sender of nothing else is
  // not remembered.
  void receive(const std::string& identity, std::string_view frame, Time now,
               std::vector<Told>& told);
  // Everything that agent told up to there is in the journal and need not come again.
  void acknowledge(AgentNumber agent, Link::Position through);
  void send(AgentNumber agent, const Command& command);  // queued until flush
  bool has_all(AgentNumber agent) const;                 // it has acknowledged every command

  // Hands out the frames that are due: messages that are queued or were missed, acknowledgements
  // and heartbeats. A frame that is not taken (answer false) is due again.
  using Sender = std::function<bool(const std::string& identity, std::string frame)>;
  void flush(Time now, const Sender& send);

  std::size_t size() const { return peers_.size(); }
  std::optional<AgentNumber> number_of(const std::string& identity) const;
  const std::string& identity_of(AgentNumber agent) const;
  Time last_heard(AgentNumber agent) const;
  // The fault of the last frame or message that was dropped; empty: none was.
  const std::string& last_complaint() const { return complaint_; }

 private:
  struct Peer {
    std::string identity;
    // For an agent that is away it keeps commands: answers to what it said, and users' orders for
    // its trials, so a few for each trial that it has.
    Link link;
    Time last_heard{};
    std::uint64_t journaled = 0;  // of what it told, by the driver before this one
  };
  struct Met {
    AgentNumber number;
    bool is_new;
  };
  Met meet(const std::string& identity);
  AgentEvent read(const std::string& identity, std::string_view message);
  std::vector<std::string_view> unpacked(Link& link, std::string_view frame);

  std::uint64_t epoch_;
  std::unordered_map<std::string, AgentNumber> numbers_;
  std::deque<Peer> peers_;  // by number; without an identity where there is none of that number
  LinkAgenda agenda_;
  std::string complaint_;
};

}  // namespace tune
