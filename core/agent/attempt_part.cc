#include "core/agent/attempt_part.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "core/agent/worker_start.h"

namespace tune {

AttemptPart::AttemptPart(Launch launch, WorkerId first_worker)
    : launch_(std::move(launch)), ranks_(launch_.local_ranks()) {
  for (Rank& rank : ranks_) rank.worker = first_worker++;
}

void AttemptPart::on_launched(const AttemptScene& scene) {
  lead_heard_ = scene.watched();
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  scene.actions.add(JoinLead{key, launch_.node, launch_.lead});
  tell(scene, NodeLinks{key, launch_.node, scene.node.owns_folder});
  is_released_ = !scene.node.relays;
}

void AttemptPart::tell(const AttemptScene& scene, NodeWord word) const {
  if (!has_lead_) return;
  scene.actions.add(TellLead{attempt_key(launch_.trial, launch_.attempt), std::move(word)});
}

// ---- Its ranks ----------------------------------------------------------------------------------

void AttemptPart::on_forked(const AttemptScene& scene, std::uint32_t number, std::uint32_t pid) {
  Rank& rank = at(number);
  if (rank.stage != Stage::kAwaited) return;
  rank.pid = pid;
  rank.stage = Stage::kForked;
  if (is_terminating()) scene.actions.add(SignalWorker{pid, SIGKILL});
  if (!awaits_checkpoint_) tell(scene, RankForked{number, pid});
}

// For the lead a rank exists when it could begin.
void AttemptPart::on_fetched(const AttemptScene& scene, const std::string& error) {
  if (!std::exchange(awaits_checkpoint_, false) || is_terminating()) return;
  if (!error.empty()) {
    WorkerEnded failed{Outcome::kException, "restore: " + error};
    return tell(scene, FromRank{launch_.first_rank(), std::move(failed)});
  }
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].stage != Stage::kForked) continue;
    tell(scene, RankForked{launch_.first_rank() + i, ranks_[i].pid});
  }
}

void AttemptPart::on_never_forked(const AttemptScene& scene, std::uint32_t rank) {
  set_gone(scene, rank, {rank, false, false, 0, {}, {}});
}

void AttemptPart::on_word(const AttemptScene& scene, std::uint32_t rank, WorkerEvent event) {
  const auto* ended = std::get_if<WorkerEnded>(&event);
  if (ended != nullptr) at(rank).has_failed = ended->outcome == Outcome::kException;
  if (at(rank).has_failed) lose_if_node_ends(scene);
  tell(scene, FromRank{rank, std::move(event)});
}

void AttemptPart::on_nonsense(const AttemptScene& scene, std::uint32_t rank,
                              const std::string& what) {
  tell(scene, RankGarbled{rank, what});
}

// Of a rank that may have failed first the lead is to have its last lines before it hears the end.
void AttemptPart::on_exit(const AttemptScene& scene, std::uint32_t number, const ProcessEnd& end) {
  Rank& rank = at(number);
  const RankGone gone{number, true, end.signalled, end.code, end.text, end.why};
  const bool has_failed =
      rank.has_failed || (!is_terminating() && (end.signalled || end.code != 0));
  if (has_failed) lose_if_node_ends(scene);
  if (!has_failed || !scene.node.owns_folder || !has_lead_) return set_gone(scene, number, gone);
  if (rank.stage == Stage::kGone) return;
  rank.stage = Stage::kEnded;
  rank.end = gone;
  rank.tell_by = scene.now + kTailWait;
  scene.actions.add(ReadTail{launch_.trial, launch_.attempt, number});
}

void AttemptPart::on_tail(const AttemptScene& scene, std::uint32_t rank, const std::string& text) {
  if (at(rank).stage != Stage::kEnded) return;
  tell(scene, RankTail{rank, text});
  set_gone(scene, rank, at(rank).end);
}

// The lead hears it before the failure, which is not the trial's.
void AttemptPart::lose_if_node_ends(const AttemptScene& scene) {
  if (node_ends_ && lost_.empty()) on_loss(scene, "it was told to end");
}

// A disk that stalls keeps no end from the lead.
void AttemptPart::tell_late_ends(const AttemptScene& scene) {
  for (const Rank& rank : ranks_) {
    const bool is_late = rank.stage == Stage::kEnded && rank.tell_by <= scene.now;
    if (is_late) set_gone(scene, rank.end.rank, rank.end);
  }
}

void AttemptPart::set_gone(const AttemptScene& scene, std::uint32_t rank, RankGone gone) {
  if (at(rank).stage == Stage::kGone) return;
  at(rank).stage = Stage::kGone;
  scene.actions.add(ForgetWorker{at(rank).worker});
  tell(scene, std::move(gone));
  give_place_back(scene);
}

// ---- Its lead -----------------------------------------------------------------------------------

void AttemptPart::on_lead(const AttemptScene& scene, std::vector<LeadWord> words) {
  is_linked_ = true;
  lead_heard_ = scene.watched();
  for (const LeadWord& word : words) {
    std::visit([&](const auto& one) { hear(scene, one); }, word);
  }
}

void AttemptPart::hear(const AttemptScene& scene, const StartRanks&) {
  const bool all =
      std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.stage == Stage::kForked; });
  if (!all || is_terminating() || std::exchange(is_started_, true)) return;
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    const std::uint32_t rank = launch_.first_rank() + i;
    scene.actions.tell_worker(ranks_[i].worker,
                              worker_start(scene.experiment, launch_, rank, scene.node));
  }
}

void AttemptPart::hear(const AttemptScene& scene, const ToRank& to) const {
  const std::uint32_t first = launch_.first_rank();
  if (to.rank < first || to.rank >= first + ranks_.size() || !is_started_) return;
  if (std::holds_alternative<StartWorker>(to.command)) return;
  if (at(to.rank).stage == Stage::kForked) {
    scene.actions.tell_worker(at(to.rank).worker, to.command);
  }
}

void AttemptPart::hear(const AttemptScene& scene, const EndRanks& ends) {
  end(scene, ends.signal == SIGKILL ? SIGKILL : SIGTERM, Attempt::kGroupGrace);
}

// ---- Its part of checkpoints --------------------------------------------------------------------

void AttemptPart::hear(const AttemptScene& scene, const StorePart& store) {
  if (is_released_ || store.saved.trial != launch_.trial ||
      store.saved.attempt != launch_.attempt) {
    return tell(scene, PartStored{store.saved, "its node carries nothing more"});
  }
  ++storing_;
  scene.actions.add(StoreCheckpoint{store.saved, {.part = launch_.node}});
}

void AttemptPart::on_stored(const AttemptScene& scene, const CheckpointSaved& saved, bool is_stored,
                            const std::string& why_not) {
  if (storing_ > 0) --storing_;
  const bool is_given_up = !is_stored && why_not.empty();
  tell(scene, PartStored{saved, is_given_up ? "it was given up" : why_not});
}

void AttemptPart::hear(const AttemptScene& scene, const DropPart& drop) const {
  if (drop.saved.trial != launch_.trial || drop.saved.attempt != launch_.attempt) return;
  scene.actions.add(DropCheckpoint{drop.saved});
}

void AttemptPart::hear(const AttemptScene& scene, const ReleaseNode&) {
  is_released_ = true;
  if (storing_ > 0) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
}

void AttemptPart::on_lead_lost(const AttemptScene& scene, const std::string& why) {
  has_lead_ = false;
  if (is_over()) return;
  on_loss(scene, fmt::format("node {}, which leads its group, is lost: {}", launch_.hosts[0], why));
}

// ---- Its end ------------------------------------------------------------------------------------

void AttemptPart::on_loss(const AttemptScene& scene, const std::string& why, AgentTime grace) {
  is_released_ = true;
  if (scene.node.relays) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
  if (lost_.empty() && !is_terminating()) {
    lost_ = why;
    tell(scene, NodeFails{why});
  }
  end(scene, SIGTERM, std::min(grace, Attempt::kGroupGrace));
}

// The lead lets the trial save: only it can.
void AttemptPart::on_leave(const AttemptScene& scene, const std::string& why, Duration grace) {
  if (is_starting() || !has_lead_) return on_loss(scene, why);
  tell(scene, NodeLeaves{why, grace});
}

void AttemptPart::on_disk(const AttemptScene& scene) const {
  tell(scene, NodeDisk{scene.disk_keeps_up});
}

void AttemptPart::end(const AttemptScene& scene, int how, AgentTime grace) {
  const AgentTime kill_at = scene.now + grace;
  kill_at_ = std::min(kill_at_.value_or(kill_at), kill_at);
  signal(scene, how);
}

void AttemptPart::signal(const AttemptScene& scene, int signal) {
  for (const Rank& rank : ranks_) {
    if (rank.stage == Stage::kForked) scene.actions.add(SignalWorker{rank.pid, signal});
  }
}

// Its lead may need this node's part of a checkpoint for long, and nothing runs here meanwhile.
void AttemptPart::give_place_back(const AttemptScene& scene) {
  if (!are_all_gone() || is_over() || !std::exchange(has_place_, false)) return;
  scene.actions.tell(scene.now, PlaceFree{launch_.trial, launch_.attempt});
}

bool AttemptPart::is_over() const {
  return are_all_gone() && storing_ == 0 && (is_released_ || !has_lead_);
}

bool AttemptPart::are_all_gone() const {
  return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.stage == Stage::kGone; });
}

void AttemptPart::conclude(const AttemptScene& scene) const {
  if (awaits_checkpoint_) scene.actions.add(GiveUpCheckpoints{launch_.trial, launch_.attempt});
  scene.actions.add(CloseGroup{attempt_key(launch_.trial, launch_.attempt)});
  ConcludeAttempt conclusion;
  AttemptEnded& ended = conclusion.ended;
  ended.trial = launch_.trial;
  ended.attempt = launch_.attempt;
  ended.rank = launch_.first_rank();
  if (!lost_.empty()) {
    ended.outcome = Outcome::kLost;
    ended.cause = lost_;
    ended.is_of_node = true;
    if (never_linked_) ended.unlinked = launch_.node;
  }
  conclusion.node = launch_.node;
  conclusion.removes_half_written = scene.node.owns_folder;
  scene.actions.add(std::move(conclusion));
}

// ---- Limits -------------------------------------------------------------------------------------

std::optional<AgentTime> AttemptPart::deadline(const AttemptConditions& on) const {
  std::optional<AgentTime> soonest = lead_deadline(on);
  for (const Rank& rank : ranks_) {
    if (rank.stage == Stage::kEnded)
      soonest = std::min(soonest.value_or(rank.tell_by), rank.tell_by);
  }
  return soonest;
}

std::optional<AgentTime> AttemptPart::silence_limit(const AttemptConditions& on) const {
  return is_linked_ ? Attempt::silence_limit(on.experiment) : Attempt::kMeet;
}

std::optional<AgentTime> AttemptPart::lead_deadline(const AttemptConditions& on) const {
  if (kill_at_ && !are_all_gone()) return kill_at_;
  if (!has_lead_) return std::nullopt;
  const std::optional<AgentTime> limit = silence_limit(on);
  return limit ? std::optional(on.watch.next_look(lead_heard_ + *limit)) : std::nullopt;
}

void AttemptPart::on_time(const AttemptScene& scene) {
  tell_late_ends(scene);
  const std::optional<AgentTime> due = lead_deadline(scene);
  if (!due || *due > scene.now) return;
  if (kill_at_ && !are_all_gone()) {
    kill_at_ = scene.now + Attempt::kTermGrace;  // said again until it is heard
    return signal(scene, SIGKILL);
  }
  const std::optional<AgentTime> limit = silence_limit(scene);
  if (!limit || scene.watched() < lead_heard_ + *limit) return;
  never_linked_ = !is_linked_;
  const std::string at = is_linked_ ? "" : fmt::format(" at {}", launch_.lead);
  on_lead_lost(scene, fmt::format("it has said nothing{} for {:g} s", at,
                                  seconds(scene.watched() - lead_heard_)));
}

}  // namespace tune
