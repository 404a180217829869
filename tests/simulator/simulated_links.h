// The links between the agents of groups over several nodes. Words of one direction arrive in
// order, late; a link breaks for good when the process at one end is gone, and both ends are told
// of breaks, each a while later. A network that carries nothing holds words up.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/world.h"

namespace tune::simulator {

class SimulatedLinks {
 public:
  using Identity = std::uint32_t;  // of an agent
  struct Ends {                    // what happens at an agent; node 0 is the lead
    std::function<void(Identity, std::uint64_t attempt, std::uint32_t node, std::string)> hear;
    std::function<void(Identity, std::uint64_t attempt, std::uint32_t node)> broken;
    // Ranks there notice that another node is gone, perhaps before their agent does.
    std::function<void(Identity, std::uint64_t attempt)> echo;
    std::function<bool(Identity, std::uint64_t attempt)> has_ranks;  // still
  };
  SimulatedLinks(World& world, Ends ends) : world_(world), ends_(std::move(ends)) {}

  // The addresses at which the others are awaited.
  std::vector<std::string> listen(Identity lead, std::uint64_t attempt, std::uint32_t others);
  void connect(Identity node, const std::string& address);
  void send(Identity from, std::uint64_t attempt, std::uint32_t node, std::string frame);
  void close(Identity agent, std::uint64_t attempt);
  void agent_died(Identity agent, const std::function<bool(std::uint64_t attempt)>& had_ranks);
  void hold_up(Identity agent, Time until);
  Identity any_end();  // an agent at a whole link; 0: there is none
  void break_one();    // any that is whole, if there is one

 private:
  struct OneLink {
    std::uint64_t attempt = 0;
    std::uint32_t node = 0;
    Identity ends[2]{};      // lead, node; 0: it is not there (any more)
    Time last_arrival[2]{};  // at these
    Time held_until{};
  };
  using Id = std::uint64_t;
  void arrive(Id id, int end, std::function<void(OneLink&)> what);
  void break_link(Id id, bool with_echo);
  std::vector<Id> whole() const;
  Id find(Identity agent, std::uint64_t attempt, std::uint32_t node) const;

  World& world_;
  Ends ends_;
  std::map<Id, OneLink> links_;
  Id last_ = 0;
  Life life_ = new_life();
};

}  // namespace tune::simulator
