#include "core/agent/attempt.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/agent/worker_rest.h"

namespace tune {

Attempt::Attempt(Launch launch, WorkerId first_worker)
    : launch_(std::move(launch)),
      ranks_(launch_.ranks),
      nodes_(launch_.nodes()),
      until_(launch_.until) {
  for (std::uint32_t rank = 0; rank < launch_.local_ranks(); ++rank) {
    ranks_[rank].worker = first_worker++;
  }
}

// ---- The zygote's answers -----------------------------------------------------------------------

void Attempt::on_forked(const AttemptScene& scene, std::uint32_t number, std::uint32_t pid) {
  Rank& rank = ranks_[number];
  if (rank.stage != Stage::kAwaited) return;
  rank.pid = pid;
  rank.stage = Stage::kForked;
  if (is_terminating()) {  // ended while this rank was being forked
    rank.signalled = true;
    if (!is_here(number)) return;  // its agent knows
    return scene.actions.add(SignalWorker{pid, SIGKILL});
  }
  const bool all =
      std::ranges::all_of(ranks_, [](const Rank& one) { return one.stage == Stage::kForked; });
  if (all && !awaits_checkpoint_ && std::holds_alternative<Starting>(state_)) start(scene);
}

void Attempt::on_never_forked(const AttemptScene& scene, std::uint32_t rank) {
  set_gone(scene, rank);
}

void Attempt::start(const AttemptScene& scene) {
  state_ = Running{};
  last_sign_ = scene.watched();
  if (launch_.ranks > 1) {
    pace_.emplace(scene.watched(), launch_.ranks, launch_.restore_iteration > 0);
  }
  scene.actions.tell(scene.now, AttemptStarted{launch_.trial, launch_.attempt, ranks_[0].pid});
  for (std::uint32_t rank = 0; rank < launch_.ranks; ++rank) {
    ranks_[rank].stage = Stage::kStarted;
    if (!is_here(rank)) continue;
    scene.actions.tell_worker(ranks_[rank].worker,
                              worker_start(scene.experiment, launch_, rank, scene.node));
  }
  const std::uint64_t key = attempt_key(launch_.trial, launch_.attempt);
  for (std::uint32_t node = 1; node < nodes_.size(); ++node) {
    scene.actions.add(TellNode{key, node, StartRanks{}});
  }
  if (order_) tell_leader(scene, order_->stop);
  if (!scene.reading) hold_group(scene);
}

// ---- The driver ---------------------------------------------------------------------------------

void Attempt::on_continue(const AttemptScene& scene, const Continue& verdict) {
  if (ranks_[0].stage < Stage::kStarted || ranks_[0].stage == Stage::kGone) return;
  until_ = verdict.until;
  listen_again(scene);
  tell_leader(scene, verdict);
}

void Attempt::on_stop(const AttemptScene& scene, const StopAttempt& stop) {
  listen_again(scene);
  std::optional<AgentTime> deadline = order_ ? order_->deadline : std::nullopt;
  if (stop.grace > Duration::zero()) deadline = scene.now + stop.grace;
  order_ = Order{stop, deadline};
  auto* settling = std::get_if<Settling>(&state_);
  if (settling != nullptr && deadline) {
    settling->terminate_at = std::min(settling->terminate_at, *deadline);
  }
  tell_leader(scene, stop);
}

// The driver keeps up again or is too far behind.
void Attempt::on_reading_changed(const AttemptScene& scene) {
  if (scene.reading) {
    last_sign_ = scene.watched();
    if (pace_) pace_->on_listening(scene.watched(), 0);
  }
  hold_group(scene);
}

// Messages that the ranks have sent meanwhile are heard from now on.
void Attempt::on_disk_keeps_up(const AttemptScene& scene) {
  last_sign_ = scene.watched();
  if (pace_) pace_->begin_anew(scene.watched());
}

// Rank 0 has its answer, so its time counts from now on.
void Attempt::listen_again(const AttemptScene& scene) {
  if (auto* running = std::get_if<Running>(&state_)) running->waiting = false;
  last_sign_ = scene.watched();
  if (pace_) pace_->on_listening(scene.watched(), 0);
}

void Attempt::tell_leader(const AttemptScene& scene, WorkerCommand command) const {
  const Rank& leader = ranks_[0];
  if (leader.stage < Stage::kStarted || leader.stage == Stage::kGone) return;
  scene.actions.tell_worker(leader.worker, std::move(command));
}

// A group stays at a step boundary, or goes on, as the driver keeps up.
void Attempt::hold_group(const AttemptScene& scene) const {
  if (pace_) tell_leader(scene, HoldGroup{!scene.reading});
}

// ---- The words of ranks -------------------------------------------------------------------------

void Attempt::on_word(const AttemptScene& scene, std::uint32_t rank, WorkerEvent event) {
  if (!std::holds_alternative<AskAlone>(event)) last_sign_ = scene.watched();
  std::visit([&](auto& word) { hear(scene, rank, std::move(word)); }, event);
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, Reported report) {
  if (rank != 0 || report.trial != launch_.trial || report.attempt != launch_.attempt) {
    return on_nonsense(scene, rank, "a report of another rank or attempt");
  }
  phase_done(scene, rank);
  if (blame_deserter(scene)) return;  // the result is of a part of the group
  reported_ = report.iteration;
  if (auto* running = std::get_if<Running>(&state_)) running->waiting = report.waiting;
  if (launch_.ranks == 1 && may_rest(report, until_)) {
    scene.actions.add(RestWorker{ranks_[rank].worker});
  }
  if (is_ahead(report)) return held_.push_back(std::move(report));
  scene.actions.tell(scene.now, std::move(report));
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, RankSaved saved) {
  Save& save = saves_[saved.iteration];
  if (rank != 0 || !save.is_copied) phase_done(scene, rank);
  if (rank == 0) save.leader = saved;
  if (++save.ranks != ranks_.size()) return;
  const CheckpointSaved whole{launch_.trial, launch_.attempt, saved.iteration,
                              save.leader.time_total, save.leader.timesteps_total};
  if (gathers(scene)) return gather(scene, whole);
  ++promoting_;
  scene.actions.add(PromoteCheckpoint{whole});
}

// The driver has the result that this checkpoint belongs to, unless that is held, and remembers it:
// later ones may come before the checkpoint.
void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, RankCopied copied) {
  if (rank != 0) return on_nonsense(scene, rank, "a copy that is not of rank 0");
  phase_done(scene, rank);
  Save& save = saves_[copied.iteration];
  save.is_copied = true;
  save.is_expected = held_.empty();
  if (!save.is_expected) return;
  CheckpointSaved expected{launch_.trial, launch_.attempt, copied.iteration, {}, {}};
  expected.storing = CheckpointSaved::Storing::kOnNode;
  scene.actions.tell(scene.now, std::move(expected));
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, GroupStep step) {
  if (rank != 0) return on_nonsense(scene, rank, "a word to the group that is not of rank 0");
  if (pace_) pace_->on_word(scene.watched(), step);
  for (const Rank& other : ranks_) {
    const auto number = static_cast<std::uint32_t>(&other - ranks_.data());
    if (number != 0 && is_alive(other)) tell(scene, number, step);
  }
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, WorkerEnded ended) {
  ranks_[rank].stage = Stage::kSaidEnd;
  const AgentTime watched = scene.watched();
  if (ended.outcome == Outcome::kException) {
    if (pace_) pace_->on_ended(watched, rank);
    blame(scene, {.outcome = ended.outcome,
                  .text = std::move(ended.cause),
                  .code = 1,
                  .rank = rank,
                  .is_of_group = ended.is_of_group});
  } else {
    if (pace_) pace_->on_returned(watched, rank);
    if (rank == 0) leave(ended.outcome);
  }
  blame_deserter(scene);
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t, Warning warning) {
  scene.actions.tell(scene.now, std::move(warning));
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, RankAlone alone) {
  if (pace_) pace_->on_alone(scene.watched(), rank, alone.begins);
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, AskAlone) {
  const bool any = pace_ && pace_->is_another_alone(rank);
  if (is_alive(ranks_[rank])) tell(scene, rank, OthersAlone{any});
}

void Attempt::hear(const AttemptScene& scene, std::uint32_t rank, PhaseDone) {
  phase_done(scene, rank);
}

void Attempt::phase_done(const AttemptScene& scene, std::uint32_t rank) {
  if (pace_) pace_->on_done(scene.watched(), rank);
  if (!held_.empty()) tell_held(scene);
}

// ---- Checkpoints --------------------------------------------------------------------------------

void Attempt::on_promoted(const AttemptScene& scene, const CheckpointSaved& saved,
                          const std::string& error) {
  if (gathering_.is_joining()) {
    end_gathering(scene, error);
    return error.empty() ? void() : fail_to_save(scene, error);
  }
  if (!saves_.contains(saved.iteration)) return;  // given up meanwhile
  if (promoting_ > 0) --promoting_;
  last_sign_ = scene.watched();  // the time of a disk is not its own
  if (error.empty() && scene.node.relays) {
    ++storing_;
    CheckpointSaved on_node = saved;
    on_node.storing = CheckpointSaved::Storing::kOnNode;
    scene.actions.tell(scene.now, std::move(on_node));
    scene.actions.add(StoreCheckpoint{saved});
    give_place_back(scene);
  } else if (error.empty()) {
    scene.actions.tell(scene.now, saved);
  }
  saves_.erase(saved.iteration);
  tell_held(scene);
  if (!error.empty()) fail_to_save(scene, error);
}

void Attempt::fail_to_save(const AttemptScene& scene, const std::string& why) {
  blame(scene, {.outcome = Outcome::kException, .text = "save: " + why});
  terminate(scene, *known_end(), kTermGrace);
}

void Attempt::on_stored(const AttemptScene& scene, CheckpointSaved saved, bool is_stored,
                        const std::string& why_not, bool is_of_trial) {
  if (nodes_.size() > 1) {
    const std::string why = is_stored || !why_not.empty() ? why_not : "it was given up";
    const bool is_current =
        gathering_.current() && gathering_.current()->iteration == saved.iteration;
    if (!is_current) return;  // of one that was given up
    if (!gathering_.is_joining()) return part_is_stored(scene, 0, saved, why);
    end_gathering(scene, why);
    return is_of_trial ? fail_to_save(scene, why) : void();
  }
  if (storing_ > 0) --storing_;
  not_stored_ = why_not;
  using Storing = CheckpointSaved::Storing;
  saved.storing = is_stored ? Storing::kStored : Storing::kGivenUp;
  scene.actions.tell(scene.now, std::move(saved));
}

void Attempt::on_fetched(const AttemptScene& scene, const std::string& error) {
  if (!std::exchange(awaits_checkpoint_, false) || is_terminating()) return;
  if (!error.empty()) {
    return terminate(scene, Cause{.outcome = Outcome::kException, .text = "restore: " + error},
                     kTermGrace);
  }
  const bool all =
      std::ranges::all_of(ranks_, [](const Rank& one) { return one.stage == Stage::kForked; });
  if (all && std::holds_alternative<Starting>(state_)) start(scene);
}

// Whether rank 0 is ahead of a rank that still saves: the driver hears of that checkpoint first. Or
// of one that still loads, on a node that its words take longer to reach: after a result the driver
// may remove the checkpoint.
bool Attempt::is_ahead(const Reported& report) const {
  if (nodes_.size() > 1 && pace_ && pace_->is_any_before_its_first_step()) return true;
  return std::ranges::any_of(saves_, [&](const auto& save) {
    return save.first < report.iteration && !save.second.is_expected;
  });
}

void Attempt::tell_held(const AttemptScene& scene) {
  auto held = held_.begin();
  for (; held != held_.end() && !is_ahead(*held); ++held) {
    scene.actions.tell(scene.now, std::move(*held));
  }
  held_.erase(held_.begin(), held);
}

LiveAttempt Attempt::account() const {
  const auto* running = std::get_if<Running>(&state_);
  return {launch_.trial, launch_.attempt, reported_, running != nullptr && running->waiting,
          has_order()};
}

// ---- Its ranks ----------------------------------------------------------------------------------

bool Attempt::is_alive(const Rank& rank) const {
  return rank.stage != Stage::kAwaited && rank.stage != Stage::kGone;
}

bool Attempt::have_all_said_end() const {
  return std::ranges::all_of(ranks_,
                             [](const Rank& rank) { return rank.stage >= Stage::kSaidEnd; });
}

// The store may be away for long, and nothing runs here meanwhile.
void Attempt::give_place_back(const AttemptScene& scene) {
  const bool are_gone =
      std::ranges::all_of(ranks_.begin(), ranks_.begin() + launch_.local_ranks(),
                          [](const Rank& rank) { return rank.stage == Stage::kGone; });
  if (!are_gone || storing_ == 0 || !std::exchange(has_place_, false)) return;
  scene.actions.tell(scene.now, PlaceFree{launch_.trial, launch_.attempt});
}

bool Attempt::is_over() const {
  return promoting_ == 0 && storing_ == 0 &&
         std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.stage == Stage::kGone; });
}

}  // namespace tune
