#include "tune/drive/turn.h"

#include <utility>

namespace tune {

void Turns::take_over(const DriverStarted& event) {
  const Turn turn{experiment_.now(), edges_.wall(), {event}};
  edges_.turn_begins(turn);
  JournaledController::Takeover takeover = experiment_.take_over(turn);
  machine_.begin(edges_.now(), experiment_.now());
  effects_ = std::move(takeover.effects);
  unsettled_ = std::move(takeover.unsettled);
  edges_.turn_is_handled(turn, effects_);
  next_ = Step::kSettle;
}

bool Turns::step() {
  switch (next_) {
    case Step::kAppend:
      if (!append()) return false;
      next_ = Step::kAcknowledge;
      return true;
    case Step::kSettle:
      for (const TrialNumber number : std::exchange(unsettled_, {})) {
        edges_.remove_unrecorded(experiment_.controller().trials()[number.value]);
      }
      next_ = Step::kAcknowledge;
      return true;
    case Step::kAcknowledge:
      acknowledge();
      next_ = Step::kCommands;
      return true;
    case Step::kCommands:
      send_commands();
      next_ = Step::kResults;
      return true;
    case Step::kResults:
      edges_.write_results();
      next_ = effects_.removals.empty() ? Step::kSnapshot : Step::kRemovals;
      return true;
    case Step::kRemovals:
      remove_next();
      return true;
    case Step::kSnapshot:
      keep_journal_short();
      machine_.on_turn_done();
      next_ = Step::kAppend;
      return true;
  }
  return false;
}

bool Turns::append() {
  const Controller& controller = experiment_.controller();
  const DriverMachine::Time now = edges_.now();
  machine_.on_room(edges_.has_room());
  std::optional<TurnContents> contents =
      controller.is_over() ? machine_.last_turn()
                           : machine_.next_turn(now, controller.next_deadline(), edges_.peers());
  if (!contents) return false;
  contents_ = std::move(*contents);
  const Turn turn{.now = machine_.experiment_time(now),
                  .wall = edges_.wall(),
                  .events = std::move(contents_.events),
                  .notices = std::move(contents_.notices)};
  edges_.turn_begins(turn);
  effects_ = experiment_.commit(turn);
  edges_.turn_is_handled(turn, effects_);
  tell_what_was_mended();
  return true;
}

void Turns::acknowledge() {
  for (const auto& [agent, position] : std::exchange(contents_.heard, {})) {
    edges_.acknowledge(agent, position);
  }
}

void Turns::send_commands() {
  for (const auto& [agent, command] : effects_.commands) edges_.send(agent, command);
  edges_.flush_commands();
}

void Turns::remove_next() {
  edges_.remove(effects_.removals[removed_]);
  if (++removed_ < effects_.removals.size()) return;
  removed_ = 0;
  next_ = Step::kSnapshot;
}

// The log files get to the disk beside the loop; only then may the entries go that could write them
// again.
void Turns::keep_journal_short() {
  if (!snapshot_) {
    if (!std::exchange(snapshot_is_wanted_, false) && !experiment_.snapshot_is_due()) return;
    JournaledController::BegunSnapshot begun = experiment_.begin_snapshot();
    snapshot_ = std::move(begun.snapshot);
    edges_.flush_results(std::move(begun.logger));
  } else if (std::optional<std::string> state = edges_.flushed_results()) {
    snapshot_->logger = std::move(*state);
    experiment_.store(*snapshot_);
    snapshot_.reset();
    tell_what_was_mended();
  }
}

void Turns::tell_what_was_mended() {
  std::string text = experiment_.take_mended();
  if (text.empty()) return;
  edges_.show_notice(text);
  machine_.on_notice(std::move(text));
}

}  // namespace tune
