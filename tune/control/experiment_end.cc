#include "tune/control/experiment_end.h"

#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tune {

void ExperimentEnd::settle() {
  if (state_.course.is_over() || !state_.book.running().empty()) return;
  if (state_.course.phase() == Phase::kInterrupting) return state_.course.end(Phase::kInterrupted);
  const DriverStarted& driver = state_.driver;
  const TrialBook& book = state_.book;
  const Nodes& nodes = state_.nodes;
  if (state_.course.is_running()) {
    if (!driver.asks_late && book.waiting().empty()) source_.draw();
    const bool some_wait = !book.waiting().empty() || (driver.asks_late && source_.has_more());
    if (is_stranded(some_wait) && driver.nodes_may_join) {
      return say_that_trials_wait("no node is left that could start one; " + nodes.why_out());
    }
    if (is_stranded(some_wait)) {
      return state_.course.end(
          Phase::kInterrupted,
          "running trials: no node is left that could start one; " + nodes.why_out());
    }
    if (some_wait) return;
    if (!book.held().empty()) return wait_for_user();
    if (!book.paused().empty() && (nodes.empty() || !nodes.all_are_ready())) return;
    // Nodes are there, but none that could take a paused trial on: one may join.
    const bool is_group = state_.setup.request.ranks > 1;
    const bool one_may_join =
        driver.has_pool || (driver.nodes_may_join && driver.spreads_groups && is_group);
    if (!book.paused().empty() && one_may_join && !nodes.could_hold({})) return;
  }
  for (const TrialBook::Numbers* left : {&book.paused(), &book.waiting(), &book.held()}) {
    for (TrialNumber number : std::set(*left)) {
      moves_.finish(state_.book.at(number), TrialEnd::kStopped);
    }
  }
  state_.course.end(Phase::kFinished);
}

// Trials are left, and only nodes that start no more of them could hold one.
bool ExperimentEnd::is_stranded(bool some_wait) const {
  const Nodes& nodes = state_.nodes;
  if (nodes.why_out().empty() || !nodes.all_are_ready()) return false;
  return (some_wait || !state_.book.paused().empty()) && !nodes.could_hold({});
}

void ExperimentEnd::say_that_trials_wait(const std::string& why) {
  if (!state_.driver.nodes_may_join || state_.driver.has_pool) return;
  state_.course.warn(why + ": trials wait for a node to join");
}

// Nothing else can run. Trials that a scheduler keeps back may go on behind those.
void ExperimentEnd::wait_for_user() {
  if (std::exchange(state_.waits_for_user, true)) return;
  std::string names;
  for (const TrialNumber number : state_.book.held()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", number.value);
    if (names.size() > 60) {
      names += " ...";
      break;
    }
  }
  state_.out.notice(
      fmt::format("the sweep waits for trials that a user has paused: {} (tune unpause)", names));
}

void ExperimentEnd::stop_running(StopKind kind, Phase phase) {
  state_.course.wind_down(phase);
  for (TrialNumber number : state_.book.running()) {
    const Trial& trial = state_.book.at(number);
    // A trial whose end was already decided only gets the deadline.
    const bool ends = trial.verdict.value_or(kind) == StopKind::kStop || trial.wish == Wish::kStop;
    const StopKind own = ends ? StopKind::kStop : kind;
    state_.out.send_to_lead(
        trial, StopAttempt{trial.number, trial.attempt, own, state_.setup.experiment.save_grace});
  }
  settle();
}

void ExperimentEnd::spend_budget() {
  const double seconds = std::chrono::duration<double>(state_.driver.time_budget).count();
  state_.out.notice(
      fmt::format("the time budget of {} s is spent: running trials save and end", seconds));
  stop_running(StopKind::kStop, Phase::kEnding);
}

void ExperimentEnd::interrupt() {
  if (state_.course.is_over() || state_.course.phase() == Phase::kInterrupting) return;
  stop_running(StopKind::kPause, Phase::kInterrupting);
}

}  // namespace tune
