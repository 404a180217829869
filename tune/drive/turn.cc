#include "tune/drive/turn.h"

#include <exception>
#include <utility>

namespace tune {

void Turns::take_over(const DriverStarted& event) {
  const Turn turn{experiment_.now(), edges_.wall(), {event}};
  edges_.turn_begins(turn);
  effects_ = experiment_.take_over(turn);
  machine_.begin(edges_.now(), experiment_.now());
  edges_.turn_is_handled(turn, effects_);
  next_ = Step::kAcknowledge;
}

bool Turns::step() try {
  edges_.check_owner();
  const bool was_silent = machine_.store_is_silent();
  const bool done = take_step();
  if (was_silent) machine_.on_store_answered();
  return done;
} catch (const StoreSilentError& silence) {
  machine_.on_store_silent(silence.why());
  return false;
}

bool Turns::take_step() {
  switch (next_) {
    case Step::kBegin:
      if (!begin()) return false;
      [[fallthrough]];
    case Step::kAppend:
      append();
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
      next_ = effects_.removals.empty() ? after_removals() : Step::kRemovals;
      return true;
    case Step::kRemovals:
      remove_next();
      return true;
    case Step::kSettle:
      settle_next();
      return true;
    case Step::kSnapshot:
      keep_journal_short();
      machine_.on_turn_done();
      next_ = Step::kBegin;
      return true;
  }
  return false;
}

bool Turns::begin() {
  const Controller& controller = experiment_.controller();
  const DriverMachine::Time now = edges_.now();
  machine_.on_room(edges_.has_room());
  std::optional<TurnContents> contents =
      controller.is_over() ? machine_.last_turn()
                           : machine_.next_turn(now, controller.next_deadline(), edges_.peers());
  if (!contents) return false;
  turn_ = {.now = machine_.experiment_time(now),
           .wall = edges_.wall(),
           .events = std::move(contents->events),
           .notices = std::move(contents->notices)};
  heard_ = std::move(contents->heard);
  edges_.turn_begins(turn_);
  next_ = Step::kAppend;
  return true;
}

// A second try makes the same turn: an append whose answer was lost is found in the store.
void Turns::append() {
  effects_ = experiment_.commit(turn_);
  edges_.turn_is_handled(turn_, effects_);
  tell_what_was_mended();
}

void Turns::acknowledge() {
  for (const auto& [agent, position] : std::exchange(heard_, {})) {
    edges_.acknowledge(agent, position);
  }
}

void Turns::send_commands() {
  for (const auto& [agent, command] : effects_.commands) edges_.send(agent, command);
  edges_.flush_commands();
  for (const OrderAnswer& answer : effects_.answers) edges_.answer(answer);
  ask();
}

// In the turn in which the question appears, so that its answer is of all that is known there. One
// that a driver before this one had no answer for is put again.
void Turns::ask() {
  const Controller& controller = experiment_.controller();
  const std::optional<Asking::Question> open = controller.question();
  if (!open || open->number == asked_) return;
  asked_ = open->number;
  Searcher::Question make;
  try {
    make = controller.searcher().question(open->count);
  } catch (...) {
    make = [error = std::current_exception()]() -> std::string { std::rethrow_exception(error); };
  }
  edges_.ask(*open, std::move(make));
}

void Turns::remove_next() {
  edges_.remove(effects_.removals[removed_]);
  if (++removed_ < effects_.removals.size()) return;
  removed_ = 0;
  next_ = after_removals();
}

Turns::Step Turns::after_removals() const {
  return effects_.unsettled.empty() ? Step::kSnapshot : Step::kSettle;
}

// A trial may run again by now: this does not touch its records or the files of its new attempt.
void Turns::settle_next() {
  const auto next = effects_.unsettled.begin();
  edges_.remove_unrecorded(experiment_.controller().trials()[next->first.value], next->second);
  effects_.unsettled.erase(next);
  next_ = after_removals();
}

// The log files get to the disk beside the loop; only then may the entries go from which they could
// be written again.
void Turns::keep_journal_short() {
  if (!snapshot_) {
    if (!std::exchange(snapshot_is_wanted_, false) && !experiment_.snapshot_is_due()) return;
    JournaledController::BegunSnapshot begun = experiment_.begin_snapshot();
    snapshot_ = std::move(begun.snapshot);
    edges_.flush_results(std::move(begun.logger));
    return;
  }
  if (!snapshot_is_ready_) {
    std::optional<std::string> state = edges_.flushed_results();
    if (!state) return;
    snapshot_->logger = std::move(*state);
    snapshot_is_ready_ = true;
  }
  experiment_.store(*snapshot_);
  snapshot_.reset();
  snapshot_is_ready_ = false;
  tell_what_was_mended();
}

void Turns::tell_what_was_mended() {
  std::string text = experiment_.take_mended();
  if (text.empty()) return;
  edges_.show_notice(text);
  machine_.on_notice(std::move(text));
}

}  // namespace tune
