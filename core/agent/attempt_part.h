// AttemptPart: the ranks of a group over several nodes on a node that does not lead it, as a pure
// state machine. It starts, signals and ends them as the lead says (core/agent/group_words.h), and
// tells it what they say. It decides one thing alone: without its lead its ranks end.
//
// Where this node carries checkpoints it stays until the lead releases it: what its ranks have
// saved last is awaited after they are gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/agent/agent_actions.h"
#include "core/agent/attempt.h"
#include "core/agent_contract.h"
#include "core/worker_contract.h"

namespace tune {

class AttemptPart {
 public:
  static constexpr AgentTime kTailWait = std::chrono::seconds(2);  // for the output of a rank

  // The ranks are the workers first_worker, first_worker + 1 ...
  AttemptPart(Launch launch, WorkerId first_worker);

  // ---- Events; ranks are numbered from the group's first
  void on_launched(const AttemptScene& scene);
  void on_forked(const AttemptScene& scene, std::uint32_t rank, std::uint32_t pid);
  void on_never_forked(const AttemptScene& scene, std::uint32_t rank);
  void on_word(const AttemptScene& scene, std::uint32_t rank, WorkerEvent event);
  void on_nonsense(const AttemptScene& scene, std::uint32_t rank, const std::string& what);
  void on_exit(const AttemptScene& scene, std::uint32_t rank, const ProcessEnd& end);
  void on_lead(const AttemptScene& scene, std::vector<LeadWord> words);
  void on_lead_lost(const AttemptScene& scene, const std::string& why);
  void on_tail(const AttemptScene& scene, std::uint32_t rank, const std::string& text);
  void await_checkpoint() { awaits_checkpoint_ = true; }
  void on_fetched(const AttemptScene& scene, const std::string& error);
  void on_stored(const AttemptScene& scene, const CheckpointSaved& saved, bool is_stored,
                 const std::string& why_not);
  // As those of Attempt.
  void on_kill(const AttemptScene& scene) { on_loss(scene, Attempt::kKilled); }
  void on_loss(const AttemptScene& scene, const std::string& why,
               AgentTime grace = Attempt::kTermGrace);
  void on_node_ends() { node_ends_ = true; }
  void on_leave(const AttemptScene& scene, const std::string& why, Duration grace);
  void on_disk(const AttemptScene& scene) const;
  void on_time(const AttemptScene& scene);

  // ---- Queries
  std::optional<AgentTime> deadline(const AttemptConditions& on) const;
  const Launch& launch() const { return launch_; }
  WorkerId worker(std::uint32_t rank) const { return at(rank).worker; }
  bool is_starting() const { return !is_started_ && !kill_at_; }
  bool is_terminating() const { return kill_at_.has_value(); }
  bool is_awaited(std::uint32_t rank) const { return at(rank).stage == Stage::kAwaited; }
  bool is_over() const;
  bool may_be_over() const { return is_terminating() || is_over(); }
  LiveAttempt account() const { return {launch_.trial, launch_.attempt}; }
  void conclude(const AttemptScene& scene) const;

 private:
  // kEnded: its process is gone, and its last lines are being read for the lead.
  enum class Stage : std::uint8_t { kAwaited, kForked, kEnded, kGone };
  struct Rank {
    WorkerId worker = 0;
    std::uint32_t pid = 0;
    Stage stage = Stage::kAwaited;
    bool has_failed = false;  // as it has said
    RankGone end = {};        // kEnded: to be told
    AgentTime tell_by = {};
  };
  Rank& at(std::uint32_t rank) { return ranks_[rank - launch_.first_rank()]; }
  const Rank& at(std::uint32_t rank) const { return ranks_[rank - launch_.first_rank()]; }
  void hear(const AttemptScene& scene, const StartRanks& start);
  void hear(const AttemptScene& scene, const ToRank& to) const;
  void hear(const AttemptScene& scene, const EndRanks& end);
  void hear(const AttemptScene&, const StreamBytes&) {}  // its shell's
  void hear(const AttemptScene& scene, const StorePart& store);
  void hear(const AttemptScene& scene, const DropPart& drop) const;
  void hear(const AttemptScene& scene, const ReleaseNode& release);
  bool are_all_gone() const;
  void give_place_back(const AttemptScene& scene);
  void end(const AttemptScene& scene, int signal, AgentTime grace);
  void signal(const AttemptScene& scene, int signal);
  void tell(const AttemptScene& scene, NodeWord word) const;
  void lose_if_node_ends(const AttemptScene& scene);
  void set_gone(const AttemptScene& scene, std::uint32_t rank, RankGone gone);
  void tell_late_ends(const AttemptScene& scene);
  std::optional<AgentTime> silence_limit(const AttemptConditions& on) const;  // of the lead
  std::optional<AgentTime> lead_deadline(const AttemptConditions& on) const;

  Launch launch_;
  std::vector<Rank> ranks_;
  bool is_started_ = false;
  bool is_linked_ = false;
  bool has_lead_ = true;
  bool never_linked_ = false;  // and is lost therefore
  bool awaits_checkpoint_ = false;
  bool has_place_ = true;
  bool is_released_ = true;           // the lead wants nothing more of it than its ranks' ends
  std::uint32_t storing_ = 0;         // parts on their way
  AgentTime lead_heard_{};            // in watched time
  std::optional<AgentTime> kill_at_;  // set: its ranks are being ended
  std::string lost_;                  // why it ends by no order of its lead's; empty: it does not
  bool node_ends_ = false;            // as it was told to
};

}  // namespace tune
