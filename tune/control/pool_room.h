// PoolRoom: the trials that the nodes of a sweep with a pool hold, with those that may yet come.
// Pure.
//
// A trial that no node holds goes in equal parts to whole nodes: core/fitting.h cuts it. So nodes
// count by groups: a fifth one of five is of no use where each trial needs two. To count each node
// as a part of a trial instead, the simpler way, asks for it, and has it wait for a sixth that
// never comes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/clock.h"
#include "core/ids.h"
#include "core/resources.h"
#include "tune/control/pool_book.h"

namespace tune {

class Controller;

// The trials that a node holds when it is empty, or else a part of one.
struct NodeShare {
  std::uint64_t places = 0;  // trials that it holds by itself
  int group = 0;             // nodes like it that one trial needs; 0: any number is too few
  // For one trial; 0: it holds none, in any company.
  int nodes_each() const { return places > 0 ? 1 : group; }
};

NodeShare share_of_trials(const NodeResources& node, const ResourceRequest& request);

// The state of a pool.
struct PoolScene {
  struct Node {
    AgentNumber agent;
    PoolBook::Number allocation = 0;  // 0: it is of none
    std::uint64_t places = 0;         // as of a NodeShare
    std::uint64_t trials = 0;         // that run there
    bool is_out = false;
    ExperimentTime silence{};  // since it was heard
    int group = 0;             // as of a NodeShare
    bool is_held = false;      // by a trial on several nodes, all of which stay
    NodeShare share() const { return {places, group}; }
  };
  std::vector<Node> nodes;
  std::uint64_t wanted = 0;   // trials that would begin if there was room
  std::uint64_t running = 0;  // trials
  std::uint64_t groups = 0;   // of them, on several nodes, all of which stay
};

// As far as the controller knows it: silence is not.
PoolScene pool_scene(const Controller& controller, const ResourceRequest& request);

class PoolRoom {
 public:
  // Without nodes that are about to leave. `one`: a node that is not there yet.
  PoolRoom(const PoolScene& scene, const std::set<AgentNumber>& leaving, const NodeShare& one);

  // The trials that have room, those that run and stay among them, with so many more nodes.
  std::uint64_t trials(std::uint64_t more) const;
  // The fewest nodes from `least` to `most` with which as many trials have room as with `most`, or
  // `enough` of them.
  std::uint64_t fewest(std::uint64_t least, std::uint64_t most, std::uint64_t enough) const;
  // The idle nodes that complete no group by themselves.
  const std::set<AgentNumber>& waiting() const { return waiting_; }
  const NodeShare& one() const { return one_; }

 private:
  void find_waiting(const std::multimap<int, AgentNumber>& idle);

  NodeShare one_;
  std::uint64_t places_ = 0;  // on nodes that hold trials by themselves; and groups that run
  std::map<int, std::uint64_t> idle_;  // whole nodes for groups, by nodes_each()
  std::set<AgentNumber> waiting_;
};

}  // namespace tune
