// Nodes: the agents that have joined, and the part of their resources that is promised. Pure.
//
// A node takes no trial before its zygote has loaded the trainable (ready), and none after the
// agent has said that it starts no more (out). Nor does it take one while an agent that was there
// before has one of its GPUs, known by their UUIDs: an agent that is started again comes before its
// former life is known to be gone, and what that one was promised may still run. And none while it
// is away: it was there under a driver before, and has not said yet what runs there, or something
// runs that nobody knows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent_contract.h"
#include "core/clock.h"
#include "core/trial.h"
#include "core/wire.h"
#include "tune/control/placement.h"

namespace tune {

class Nodes {
 public:
  // Attempts of a node that carry their last checkpoints away without a place.
  static constexpr int kMostFree = 16;

  explicit Nodes(const ResourceRequest& request) : request_(request) {}  // of one trial

  bool contains(AgentNumber agent) const { return agents_.contains(agent); }
  bool empty() const { return agents_.empty(); }
  bool all_are_ready() const;
  bool any_is_ready() const;
  // TUNE_CHECK: contains(agent).
  const AgentHello& hello(AgentNumber agent) const;
  std::vector<AgentNumber> all() const;

  // For an agent that is not there yet. The reference holds until the agent leaves.
  const AgentHello& join(AgentNumber agent, const AgentHello& hello, ExperimentTime now = {});
  void set_ready(AgentNumber agent);  // again: nothing changes
  void let_share(AgentNumber agent);  // groups with other nodes
  // Two nodes of a group did not reach each other in this attempt. When it is the second, the later
  // of them, which is given back, takes no part in groups any more.
  std::optional<AgentNumber> did_not_meet(AgentNumber one, AgentNumber other,
                                          std::uint64_t attempt);
  bool shares(AgentNumber agent) const { return agents_.at(agent).shares; }
  void set_carries(AgentNumber agent) { agents_.at(agent).carries = true; }  // its checkpoints away
  bool carries(AgentNumber agent) const { return contains(agent) && agents_.at(agent).carries; }
  bool is_ready(AgentNumber agent) const { return agents_.at(agent).ready; }
  ExperimentTime joined_at(AgentNumber agent) const { return agents_.at(agent).joined_at; }
  // Attempts that run there stay. A second call changes nothing.
  void set_out(AgentNumber agent, const std::string& cause);
  bool is_out(AgentNumber agent) const { return out_.contains(agent); }
  // Attempts that run there stay.
  void set_away(AgentNumber agent);
  void set_back(AgentNumber agent);
  bool is_away(AgentNumber agent) const { return away_.contains(agent); }
  std::size_t away() const { return away_.size(); }  // how many are
  // It has said hello to a driver that has come after the one it joined.
  void hear_again(AgentNumber agent, const AgentHello& hello, ExperimentTime now);
  // The number of the newest event that it told (FromAgent); 0: not known. Of an agent that is not
  // there nothing is kept.
  void set_heard(AgentNumber agent, std::uint64_t number);
  std::uint64_t heard(AgentNumber agent) const { return agents_.at(agent).heard; }
  // The earlier agent that has one of its GPUs, for people; empty: there is none.
  std::string holder_of_its_gpus(AgentNumber agent) const;
  // The nodes that are out, and why, for people; empty: none is.
  std::string why_out() const;
  void leave(AgentNumber agent);  // with everything it was promised
  void clear();

  // The names of the places a trial runs on: its GPUs, by their UUID where they have one ("GPU 1 of
  // node-3", "GPU GPU-9c41 of node-3"), or its node when it has none.
  std::vector<std::string> places_of(const Placement& placement) const;
  // For people: "GPU 1 of node-3 (GPU-9c41)".
  std::string place_in_words(const std::string& place) const;

  // Room for a trial, reserved until release(), on none of the places to avoid; nothing: there is
  // none now.
  std::optional<Placement> place(const std::set<std::string>& avoid = {});
  std::optional<Placement> place_on(AgentNumber agent, const std::set<std::string>& avoid);
  // Whether a ready node has such room when it is empty.
  bool could_hold(const std::set<std::string>& avoid) const;
  void release(const Placement& placement) { placer_.release(placement, request_); }
  void release_part(const PlacementPart& part,
                    std::uint32_t nodes);  // of so many; if it is not free
  // The reason why a trial fits on no node, also when nothing runs; empty when it does.
  std::string why_never() const { return placer_.why_never(request_); }
  const Placer& placer() const { return placer_; }

  void save(PackWriter& out) const;
  // Afterwards nothing is promised.
  void restore(PackReader& in);
  void save_out(PackWriter& out) const;  // those that are out; restored after the nodes
  void restore_out(PackReader& in);
  void save_away(PackWriter& out) const;  // those that are away, likewise
  void restore_away(PackReader& in);
  // Promises again the resources that these trials hold. Throws Error (kProtocol) when a trial's
  // node is missing or has no room for it.
  void reserve_again(const std::deque<Trial>& trials);

 private:
  struct Miss {
    AgentNumber other;
    std::uint64_t attempt = 0;
    friend bool operator==(const Miss&, const Miss&) = default;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.other, s.attempt);
    }
  };
  struct Agent {
    AgentHello hello;
    bool ready = false;
    ExperimentTime joined_at{};
    std::uint64_t heard = 0;
    bool shares = false;
    bool carries = false;
    std::vector<Miss> missed = {};  // earlier nodes that it did not meet
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.hello, s.ready);
      f.added(s.joined_at, s.heard, s.shares, s.carries, s.missed);
    }
  };

  void learn_devices(AgentNumber agent, const AgentHello& hello);
  void open_if_free(AgentNumber agent);
  Devices devices_of(const std::set<std::string>& places) const;

  ResourceRequest request_;
  std::map<AgentNumber, Agent> agents_;
  std::vector<AgentNumber>
      order_;  // in which they joined: numbers are given when one is first heard
  std::map<std::string, Devices> devices_;  // by place; several agents may run on one node
  std::map<std::string, std::vector<AgentNumber>> owners_;  // of GPUs, by UUID, as they joined
  std::map<AgentNumber, std::string> out_;                  // and why
  std::set<AgentNumber> away_;
  Placer placer_;
};

}  // namespace tune
