#include "tune/control/returning_nodes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tune {

void ReturningNodes::await(const DriverStarted& driver) {
  const std::set<AgentNumber> kept = kept_by(driver);
  state_.out.tell(DriverBegan{driver.epoch, !kept.empty()});
  const std::string cause = "the driver before this one has ended";
  std::set<AgentNumber> gone;
  for (AgentNumber agent : state_.nodes.all()) {
    if (!kept.contains(agent)) gone.insert(agent);
  }
  attempts_.lose_all(gone, cause);
  abandoned_.settle_all();
  for (AgentNumber agent : gone) {
    state_.out.tell(NodeLeft{agent, state_.nodes.hello(agent), cause});
    state_.nodes.leave(agent);
  }
  for (AgentNumber agent : kept) state_.nodes.set_away(agent);
  if (!kept.empty()) say_who_is_kept(kept);
  state_.unanswered = state_.book.running();
}

std::set<AgentNumber> ReturningNodes::kept_by(const DriverStarted& driver) const {
  std::set<AgentNumber> kept;
  if (!driver.keeps_joined || !state_.course.is_running()) return kept;
  for (const AgentNumber agent : state_.nodes.all()) {
    const AgentHello& hello = state_.nodes.hello(agent);
    if (hello.joined && !hello.identity.empty()) kept.insert(agent);
  }
  return kept;
}

void ReturningNodes::say_who_is_kept(const std::set<AgentNumber>& kept) const {
  const bool are_own =
      std::ranges::all_of(kept, [&](AgentNumber agent) { return state_.nodes.hello(agent).own; });
  const std::string who =
      are_own ? "the agent of the driver before this one is waited for"
              : fmt::format("machines that had joined: {} are waited for", kept.size());
  state_.out.notice(fmt::format("{}, {} trials run there", who, state_.book.running().size()));
}

void ReturningNodes::check_words(const FromAgent& event) {
  const Nodes& nodes = state_.nodes;
  if (!nodes.is_away(event.agent)) return;
  const std::uint64_t heard = nodes.heard(event.agent);
  if (heard == 0 || event.number <= heard + 1) return;
  abandoned_.abandon(event.agent);
  attempts_.lose_all({event.agent}, "what its machine told is lost with the end of the journal");
}

void ReturningNodes::come_back(AgentNumber agent, const AgentHello& hello) {
  if (!state_.nodes.is_away(agent) || hello.epoch != state_.driver.epoch) return;
  state_.nodes.hear_again(agent, hello, state_.now);
  TrialBook& book = state_.book;
  SetupExperiment setup = state_.setup.experiment;
  std::vector<LiveAttempt> kept;
  std::vector<LiveAttempt> unknown;
  for (const LiveAttempt& live : hello.live) {
    const bool is_known = book.current(agent, live.trial, live.attempt) != nullptr ||
                          book.current_part(agent, live.trial, live.attempt) != nullptr;
    (is_known ? kept : unknown).push_back(live);
    if (is_known) setup.keep.push_back(attempt_key(live.trial, live.attempt));
  }
  for (const TrialNumber number : std::set(book.running())) {
    Trial& trial = book.at(number);
    const std::uint64_t key = attempt_key(number, trial.attempt);
    const bool lives = std::ranges::find(setup.keep, key) != setup.keep.end();
    const char* cause = "the driver before this one ended before it began";
    if (!lives) attempts_.lose_parts(trial, {agent}, cause);
  }
  state_.out.tell(NodeReturned{agent, state_.nodes.hello(agent), kept.size()});
  state_.out.send(agent, std::move(setup));
  for (const LiveAttempt& live : kept) {
    if (book.current(agent, live.trial, live.attempt) != nullptr) say_again(agent, live);
  }
  state_.abandoned.erase(agent);
  if (unknown.empty()) {
    state_.nodes.set_back(agent);
  } else {
    abandoned_.await_ends(agent, std::move(unknown));
  }
  launcher_.fill();
}

// An order to end may be told twice. What was reported since has its answer already, or waits for
// it.
void ReturningNodes::say_again(AgentNumber agent, const LiveAttempt& live) {
  const bool is_unanswered = state_.unanswered.erase(live.trial) > 0;
  const Trial& trial = state_.book.at(live.trial);
  if (trial.wish != Wish::kNone && !live.has_order) return state_.out.send(agent, wished(trial));
  std::optional<Command> answer = Verdicts::say_again(trial);
  if (!answer) return;
  const bool is_stop = std::holds_alternative<StopAttempt>(*answer);
  const bool is_awaited = is_unanswered && live.waits && live.iteration == trial.last->iteration;
  if (is_stop ? !live.has_order : is_awaited) state_.out.send(agent, std::move(*answer));
}

// By a user.
StopAttempt ReturningNodes::wished(const Trial& trial) const {
  const bool stops = trial.wish == Wish::kStop;
  return {trial.number, trial.attempt, stops ? StopKind::kStop : StopKind::kPause,
          stops ? state_.setup.experiment.save_grace : Duration{}};
}

}  // namespace tune
