// A node: the real AgentMachine and Link with simulated workers and zygote around them. Events
// replace the descriptors of core/agent/agent.cc.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/agent/agent_machine.h"
#include "core/link.h"
#include "simulator/simulated_links.h"
#include "simulator/simulated_objects.h"
#include "simulator/simulated_worker.h"
#include "simulator/world.h"

namespace tune::simulator {

using Identity = std::uint32_t;  // of an agent process; never used twice

enum class ZygoteFate : std::uint8_t {
  kLoads,
  kCannotLoad,  // says so
  kDiesLoading,
  kLoadsForEver,
  kCannotStart,  // there is no process
};

class SimulatedAgent {
 public:
  struct Outside {
    std::function<void(std::string)> send_frame;
    std::function<void()> ended;  // every process of the node is gone
    // The fate of the zygote that starts, the first of this agent or another.
    std::function<ZygoteFate(bool again)> zygote_fate;
    SimulatedLinks* links = nullptr;
  };
  SimulatedAgent(World& world, Identity identity, std::size_t node, Outside outside);

  // Events.
  void hear_frame(const std::string& frame);
  void driver_gone();
  // Of groups over several nodes; node 0 leads.
  void hear_link(std::uint64_t attempt, std::uint32_t node, const std::string& frame);
  void link_is_broken(std::uint64_t attempt, std::uint32_t node);
  void notice_loss(std::uint64_t attempt);  // some of its ranks do
  bool had_ranks(std::uint64_t attempt) const;  // that still exist
  void experiment_over();  // it finds that the last driver has ended in order
  void tell_to_end();
  void kill_zygote();
  void hang_zygote();
  void kill_worker();  // one of them, drawn
  void hang();         // until go_on() or die()
  void go_on();
  void die();  // with all its workers; `ended` follows
  void cut_off_until(Time end) { reachable_at_ = std::max(reachable_at_, end); }
  Time reachable_at() const { return reachable_at_; }  // again, by its network

  Identity identity() const { return identity_; }
  std::size_t node() const { return node_; }
  bool is_dead() const { return dead_; }
  bool hangs() const { return hangs_; }
  bool hung_lately(Time within) const {
    return hangs_ || (hung_until_ > Time{} && now() - hung_until_ <= within);
  }
  void links_are_held_until(Time end) { held_until_ = std::max(held_until_, end); }
  Time held_up_until() const { return held_until_; }
  const std::map<std::uint32_t, std::unique_ptr<SimulatedWorker>>& workers() const {
    return workers_;
  }

 private:
  void take_part(std::function<void()> what);
  void hear(Command command);
  void finish_turn();
  void perform();
  void flush();
  void plan_tick();
  void start_zygote();
  void zygote_loaded(ZygoteFate fate);
  void zygote_ends(const std::string& how);
  void hear_worker(WorkerId worker, std::optional<WorkerEvent> event);
  void drain(WorkerId worker);
  void see_end(std::uint32_t pid, const ProcessEnd& end);
  void fork_worker(const SpawnWorker& action);
  SimulatedWorker* find(WorkerId worker);
  void end();
  void check_whether_gone();
  bool listens() const { return files_waiting_ < kMaxFiles; }
  void drain_all();
  void give_to_files(std::function<void()> work);

  void act(TellDriver& action);
  void act(TellWorker& action);
  void act(RestWorker&) {}  // reading late is like a slow network
  void act(SpawnWorker& action);
  void act(SignalWorker& action);
  void act(PromoteCheckpoint& action);
  void act(ForgetWorker& action) { pipes_.erase(action.worker); }
  void act(DropCheckpoint& action);
  void act(ReadTail& action);
  void act(ConcludeAttempt& action);
  void act(StartZygote&);
  void act(EndZygote&);
  // Of a node that relays (simulated_relay.cc).
  void act(StoreCheckpoint& action);
  bool still_wants(const FetchCheckpoint& action) const;
  void act(FetchCheckpoint& action);
  void act(GiveUpCheckpoints& action);
  void act(GiveUpRelay& action);
  void carry_objects();
  void give_up_objects(std::function<void(ObjectCarrier&)> order);
  void take_outcomes();
  void has_what_is_stored(const FetchCheckpoint& wanted) const;
  void carry();
  void carried();
  // Of groups over several nodes (simulated_group.cc).
  void act(OpenGroup& action);
  void act(JoinLead& action);
  void act(TellNode& action);
  void act(TellLead& action);
  void act(CloseGroup& action);
  void show_life();

  Time now() const { return world_.queue.now(); }
  Where where() const { return world_.scenario.where(node_, identity_); }
  std::string name() const;
  bool is_guest() const;  // it joins a driver that is not its own

  World& world_;
  Identity identity_;
  std::size_t node_;
  Outside outside_;
  Life life_ = new_life();
  AgentMachine machine_;
  Link link_;
  std::vector<AgentAction> actions_;
  std::map<std::uint32_t, std::unique_ptr<SimulatedWorker>> workers_;  // by pid, until reaped
  std::map<WorkerId, std::uint32_t> pids_;
  std::set<WorkerId> of_groups_;
  // Sent messages that are not read yet. Nothing: bytes that are not a message; nothing is read
  // after them.
  std::map<WorkerId, std::deque<std::optional<WorkerEvent>>> pipes_;
  std::set<WorkerId> garbled_;
  Life zygote_;  // null: there is none
  bool zygote_is_ready_ = false;
  bool zygote_hangs_ = false;
  int zygotes_ = 0;  // that were started
  bool is_told_to_end_ = false;
  bool was_set_up_ = false;
  std::uint64_t epoch_ = 0;  // of the driver that was heard last
  Time reachable_at_{};
  bool hangs_ = false;
  bool dead_ = false;
  bool flush_is_planned_ = false;
  Time next_tick_{};
  Time last_heartbeat_{};
  static constexpr std::size_t kMaxFiles = 4;
  std::size_t files_waiting_ = 0;  // operations beside the loop, one after the other
  Time files_are_done_{};
  std::deque<StoreCheckpoint> stores_;  // that are to be carried; the first is on its way
  bool carries_ = false;
  SimulatedObjects objects_{world_, where()};
  std::map<std::uint64_t, FetchCheckpoint> wanted_;               // from there, by attempt_key
  std::map<std::pair<std::uint64_t, std::uint32_t>, bool> ways_;  // whether something came by it
  Time life_shown_{};
  Time hung_until_{};
  Time held_until_{};  // its links carry nothing
  std::deque<std::function<void()>> missed_;  // while it hung
};

}  // namespace tune::simulator
