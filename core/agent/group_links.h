// GroupLinks: the shell of groups over several nodes: links to the agents of the other nodes, the
// words that go over them, signs of life, and the way to the rendezvous of rank 0.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/agent_machine.h"
#include "core/agent/group_meeting.h"
#include "core/agent/rendezvous_tunnel.h"
#include "core/agent_contract.h"
#include "core/platform/group_network.h"

namespace tune {

template <class Action>
concept OfGroupLinks = std::same_as<Action, OpenGroup> || std::same_as<Action, JoinLead> ||
    std::same_as<Action, TellNode> || std::same_as<Action, TellLead> ||
    std::same_as<Action, CloseGroup>;

class GroupLinks {
 public:
  static constexpr AgentTime kSignOfLife = std::chrono::seconds(1);

  GroupLinks(AgentMachine& machine, const GroupMeeting& meeting)
      : machine_(machine), meeting_(meeting) {}

  // The address of the driver that a machine which joined is connected to; empty: beside it.
  void set_up(const JoinedSetup& setup, const std::string& driver_address);

  void act(AgentTime now, OpenGroup& open);
  void act(AgentTime now, JoinLead& join);
  void act(AgentTime now, TellNode& tell);
  void act(AgentTime now, TellLead& tell);
  void act(AgentTime now, CloseGroup& close);

  // MASTER_ADDR and MASTER_PORT of a rank on a node that does not lead; and of a rank of any group
  // over several nodes, the interface by which NCCL and Gloo go, unless the user or this node's
  // administrator has named one.
  void complete(StartWorker& start, const std::map<std::string, std::string>& of_user) const;

  void look(AgentTime now);   // takes what has come
  void flush(AgentTime now);  // sends what is due
  std::optional<AgentTime> next_look(AgentTime now) const;  // at the latest
  int descriptor() const;                                   // of the links; -1: there is none
  int tunnel_descriptor() const;                            // of connections to the rendezvous

 private:
  struct Way {  // to another node of a group
    GroupNetwork::LinkId link = 0;
    bool is_linked = false;  // something came
    bool closes = false;
    AgentTime sent{};
    std::vector<LeadWord> to_node = {};
    std::vector<NodeWord> to_lead = {};
  };
  using Key = std::pair<std::uint64_t, std::uint32_t>;  // attempt, and the other's node (0: lead)
  GroupNetwork& network();
  std::string own_address() const;
  void hear(AgentTime now, const GroupNetwork::Heard& heard);
  void take(AgentTime now, const Key& key, const std::string& frame);
  void give_up(AgentTime now, const Key& key, const std::string& why);
  void close(std::map<Key, Way>::iterator way);

  AgentMachine& machine_;
  const GroupMeeting& meeting_;
  std::string key_;
  std::vector<std::string> driver_addresses_;
  std::string driver_address_;
  std::optional<GroupNetwork> network_;
  RendezvousTunnel tunnel_;
  std::map<Key, Way> ways_;
  std::map<GroupNetwork::LinkId, Key> keys_;
  struct Member {  // of an attempt that this node does not lead
    int port = 0;  // of its rendezvous here
  };
  std::map<std::uint64_t, Member> members_;
  std::map<std::uint64_t, std::string> addresses_;  // of this node in the group, by attempt
};

}  // namespace tune
