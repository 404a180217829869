// Agents that outlive their driver: what the next one makes of them.
//
// The trials there go on, so the next driver must know of it exactly what this one knew. The
// journal tells the attempts; the machine tells again what no driver has acknowledged, then says
// hello with what runs. Of that
// - an attempt that both know goes on; if it waits for a verdict that the driver before this one
// had
//   made and perhaps not told, it is told now;
// - one that only the journal knows was launched by a command that never arrived: its trial waits
//   again;
// - one that only the machine knows (of a trial that was given up, or whose launch went with the
// end
//   of the journal) is ended, and the machine gets no trial until it has.
// Simpler ways fail: to take the machine's word alone promises its GPUs twice when it is heard
// late, and to say every verdict again lets a trial that has gone on to its next milestone run past
// it.
#include <algorithm>

#include <fmt/format.h>

#include "tune/control/controller.h"

namespace tune {

std::set<AgentNumber> Controller::kept_by(const DriverStarted& event) const {
  std::set<AgentNumber> kept;
  if (!event.keeps_joined || phase_ != Phase::kRunning) return kept;
  for (const AgentNumber agent : nodes_.all()) {
    const AgentHello& hello = nodes_.hello(agent);
    if (hello.joined && !hello.identity.empty()) kept.insert(agent);
  }
  return kept;
}

void Controller::say_who_is_kept(const std::set<AgentNumber>& kept) {
  const bool are_own =
      std::ranges::all_of(kept, [&](AgentNumber agent) { return nodes_.hello(agent).own; });
  const std::string who =
      are_own ? "the agent of the driver before this one is waited for"
              : fmt::format("machines that had joined: {} are waited for", kept.size());
  out_->notice(fmt::format("{}, {} trials run there", who, book_.running().size()));
}

// An event is missing between the newest that is known of this agent and this one.
bool Controller::lacks_words(const FromAgent& event) const {
  if (!nodes_.contains(event.agent) || !nodes_.is_away(event.agent)) return false;
  const std::uint64_t heard = nodes_.heard(event.agent);
  return heard > 0 && event.number > heard + 1;
}

void Controller::give_up_what_runs(AgentNumber agent, const std::string& cause) {
  std::vector<LiveAttempt>& given_up = abandoned_[agent];
  for (const TrialNumber number : book_.running()) {
    const Trial& trial = book_.at(number);
    if (runs_on(trial, agent)) given_up.push_back({number, trial.attempt});
  }
  if (given_up.empty()) abandoned_.erase(agent);
  end_attempts({agent}, cause);
}

// It greets each driver once. A greeting to a driver before this one that comes late says nothing:
// trials have gone on since.
void Controller::come_back(AgentNumber agent, const AgentHello& hello) {
  if (!nodes_.is_away(agent) || hello.epoch != epoch_) return;
  nodes_.hear_again(agent, hello, now_);
  SetupExperiment setup = experiment_;
  std::vector<LiveAttempt> kept;
  std::vector<LiveAttempt> unknown;
  for (const LiveAttempt& live : hello.live) {
    const bool is_known = book_.current(agent, live.trial, live.attempt) != nullptr ||
                          book_.current_part(agent, live.trial, live.attempt) != nullptr;
    (is_known ? kept : unknown).push_back(live);
    if (is_known) setup.keep.push_back(attempt_key(live.trial, live.attempt));
  }
  for (const TrialNumber number : std::set(book_.running())) {
    Trial& trial = book_.at(number);
    const std::uint64_t key = attempt_key(number, trial.attempt);
    const bool lives = std::ranges::find(setup.keep, key) != setup.keep.end();
    if (!lives) lose_parts(trial, {agent}, "the driver before this one ended before it began");
  }
  out_->tell(NodeReturned{agent, nodes_.hello(agent), kept.size()});
  out_->send(agent, std::move(setup));
  for (const LiveAttempt& live : kept) {
    if (book_.current(agent, live.trial, live.attempt) != nullptr) say_again(agent, live);
  }
  abandoned_.erase(agent);
  if (unknown.empty()) {
    nodes_.set_back(agent);
  } else {
    await_end_of(agent, std::move(unknown));
  }
  fill();
}

StopAttempt Controller::wished(const Trial& trial) const {
  const bool stops = trial.wish == Wish::kStop;
  return {trial.number, trial.attempt, stops ? StopKind::kStop : StopKind::kPause,
          stops ? save_grace_ : Duration{}};
}

// An order to end may be told twice. What was reported since has its answer already, or waits for it.
void Controller::say_again(AgentNumber agent, const LiveAttempt& live) {
  const bool is_unanswered = unanswered_.erase(live.trial) > 0;
  const Trial& trial = book_.at(live.trial);
  if (trial.wish != Wish::kNone && !live.has_order) return out_->send(agent, wished(trial));
  std::optional<Command> answer = Verdicts::say_again(trial);
  if (!answer) return;
  const bool is_stop = std::holds_alternative<StopAttempt>(*answer);
  const bool is_awaited =
      is_unanswered && live.waits && live.iteration == trial.last->iteration;
  if (is_stop ? !live.has_order : is_awaited) out_->send(agent, std::move(*answer));
}

// A number that was given with the end of the journal is not given again.
void Controller::await_end_of(AgentNumber agent, std::vector<LiveAttempt> unknown) {
  for (const LiveAttempt& one : unknown) {
    if (one.trial >= book_.next_number()) continue;
    Trial& trial = book_.at(one.trial);
    if (trial.status != TrialStatus::kRunning) {
      trial.attempt = std::max(trial.attempt, one.attempt);
    }
  }
  abandoned_[agent] = std::move(unknown);
}

void Controller::settle_given_up(const LiveAttempt& one) {
  if (one.trial >= book_.next_number()) return;
  const Trial& trial = book_.at(one.trial);
  const bool runs_anew = trial.status == TrialStatus::kRunning && trial.attempt <= one.attempt;
  if (!runs_anew) out_->settle(one.trial, one.attempt);
}

// Of a machine that is there, and has it no more.
void Controller::abandoned_has_ended(AgentNumber agent, const AttemptEnded& ended) {
  const auto found = abandoned_.find(agent);
  if (found == abandoned_.end() || !nodes_.contains(agent)) return;
  const auto removed = std::erase_if(found->second, [&](const LiveAttempt& one) {
    return one.trial == ended.trial && one.attempt == ended.attempt;
  });
  if (removed == 0) return;
  settle_given_up({ended.trial, ended.attempt});
  if (!found->second.empty()) return;
  abandoned_.erase(found);
  nodes_.set_back(agent);
  fill();
}

}  // namespace tune
