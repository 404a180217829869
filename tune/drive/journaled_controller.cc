#include "tune/drive/journaled_controller.h"

#include <iterator>
#include <map>
#include <utility>

#include "core/error.h"

namespace tune {

namespace {

constexpr int kMaxMends = 3;  // of one turn

}  // namespace

JournaledController::JournaledController(Store& store, ControllerSetup setup, Logger* logger,
                                         std::size_t part_bytes)
    : journal_(store, part_bytes), controller_(std::move(setup)), logger_(logger) {}

void JournaledController::replay() {
  journal_.replay(follower());
}

// Commands of turns that other drivers committed were carried out or are void.
Journal::Visitor JournaledController::follower() {
  return {[this](const Snapshot& snapshot) { restore(snapshot); },
          [this](const Turn& turn) {
            const Effects effects = handle(turn, true);
            for (const RemoveCheckpoint& one : effects.removals) {
              unsettled_[one.trial].insert(one.checkpoint);
            }
            for (const auto& [trial, attempt] : effects.unsettled) unsettled_[trial];
          }};
}

void JournaledController::restore(const Snapshot& snapshot) {
  controller_.restore(snapshot.controller);
  if (controller_.now() > snapshot.now) {
    throw Error(ErrorCode::kProtocol, "reading the journal's snapshot: its times contradict");
  }
  if (logger_ != nullptr) logger_->restore(snapshot.logger);
  now_ = snapshot.now;
}

// An attempt of an older driver is lost to this one, unless a machine that has joined goes on with
// it: then only the attempts before it are. The agents of a driver that stood still may have saved
// for a trial after a newer driver had settled it, and no journal tells: every driver settles the
// trials that are not over. Those that are over, which are the many, are settled only where the
// turns since the snapshot ask for it.
Effects JournaledController::take_over(const Turn& turn) {
  TUNE_CHECK(logger_ != nullptr);
  const Turn taken = journal_.take_epoch(turn, follower());
  std::map<TrialNumber, AttemptNumber> lost;
  for (const Trial& trial : controller_.trials()) {
    const bool is_asked = unsettled_.contains(trial.number);
    if (trial.attempt.value > 0 && (is_asked || !is_over(trial.status)))
      lost[trial.number] = trial.attempt;
  }
  Effects effects = handle(taken, false);
  for (const auto& [number, attempt] : lost) {
    const Trial& trial = controller_.trials()[number.value];
    const bool runs_on = trial.status == TrialStatus::kRunning && trial.attempt == attempt;
    if (!runs_on) {
      effects.settle(number, attempt);
      continue;
    }
    if (attempt.value > 1) effects.settle(number, AttemptNumber{attempt.value - 1});
    remove_again(trial, effects);
  }
  unsettled_.clear();
  return effects;
}

// No attempt gives a checkpoint the same name twice.
void JournaledController::remove_again(const Trial& trial, Effects& effects) const {
  const auto found = unsettled_.find(trial.number);
  if (found == unsettled_.end()) return;
  for (const CheckpointId& one : found->second) {
    if (one.attempt == trial.attempt) effects.removals.push_back({trial.number, one});
  }
}

Effects JournaledController::commit(const Turn& turn) {
  TUNE_CHECK(logger_ != nullptr);
  append(turn);
  return handle(turn, false);
}

void JournaledController::append(const Turn& turn) {
  for (int mends = 0;; ++mends) {
    try {
      return journal_.append(turn);
    } catch (const LostTailError& lost) {
      if (mends == kMaxMends) throw;
      mend(lost.what());
    }
  }
}

// The files that the given snapshot counts on may not be on the disk yet: one whose files are
// follows.
void JournaledController::mend(const std::string& why) {
  journal_.store(snapshot());
  journal_.ask_for_snapshot();
  mended_ = why + ": its state was stored again from memory, nothing is lost";
}

Effects JournaledController::handle(const Turn& turn, bool is_again) {
  const Telling telling{turn.wall, is_again};
  const auto tell = [&](const Record& record) {
    if (logger_ != nullptr) logger_->record(record, telling);
  };
  Effects effects;
  for (const Event& event : turn.events) {
    Effects more = controller_.handle(turn.now, event, tell);
    std::move(more.commands.begin(), more.commands.end(), std::back_inserter(effects.commands));
    std::move(more.removals.begin(), more.removals.end(), std::back_inserter(effects.removals));
    for (const auto& [trial, lost] : more.unsettled) effects.settle(trial, lost);
    std::move(more.answers.begin(), more.answers.end(), std::back_inserter(effects.answers));
  }
  for (const std::string& text : turn.notices) tell(DriverNotice{text});
  now_ = turn.now;
  return effects;
}

JournaledController::BegunSnapshot JournaledController::begin_snapshot() {
  TUNE_CHECK(logger_ != nullptr);
  return {{journal_.last(), now_, controller_.save(), {}}, logger_->save()};
}

void JournaledController::store(const Snapshot& snapshot) {
  try {
    journal_.store(snapshot);
  } catch (const LostTailError& lost) {
    mend(lost.what());
  }
}

Snapshot JournaledController::snapshot() {
  BegunSnapshot begun = begin_snapshot();
  begun.snapshot.logger = begun.logger.get();
  return std::move(begun.snapshot);
}

}  // namespace tune
