#include "tune/drive/driver_machine.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/wire.h"

namespace tune {

namespace {

double in_seconds(DriverMachine::Time time) {
  return std::chrono::duration<double>(time).count();
}

// Whether an event of `size`, the first or not, fits a turn that has `bytes`; it counts then.
bool fits(std::size_t size, std::size_t& bytes) {
  if (bytes > 0 && bytes + size > DriverMachine::kMaxTurnBytes) return false;
  bytes += size;
  return true;
}

void take_fitting(std::deque<Event>& queue, std::vector<Event>& events, std::size_t& bytes) {
  while (!queue.empty() && fits(encoded(queue.front()).size(), bytes)) {
    events.push_back(std::move(queue.front()));
    queue.pop_front();
  }
}

}  // namespace

void DriverMachine::begin(Time now, ExperimentTime passed) {
  begun_ = looked_ = now;
  passed_ = passed;
}

// ---- Signals ------------------------------------------------------------------------------------

bool DriverMachine::on_signal(int signal) {
  const bool is_first = signal_ == 0 || std::exchange(is_of_caller_, false);
  if (signal_ == 0) interrupt_ = signal, signal_at_ = watched_;
  signal_ = signal;
  if (!is_first) ends_at_once_ = true;
  return is_first;
}

void DriverMachine::on_caller_gone(int signal) {
  if (signal_ != 0) return;
  on_signal(signal);
  is_of_caller_ = true;
}

// ---- Agents -------------------------------------------------------------------------------------

void DriverMachine::on_agent_started(const std::string& identity, Time now) {
  agents_[identity] = {.last_heard = now, .heard = watched_};
}

void DriverMachine::on_agent_expected(const std::string& identity, Time now) {
  agents_[identity] = {.last_heard = now, .heard = watched_, .has_joined = true};
}

void DriverMachine::on_agent_ended(const std::string& identity, const std::string& how) {
  const auto agent = agents_.find(identity);
  if (agent == agents_.end() || std::exchange(agent->second.has_ended, true)) return;
  if (agent->second.how.empty()) agent->second.how = how;
  ++ended_;
}

void DriverMachine::on_time(Time now, const Peers& peers) {
  if (now - looked_ < kLookEvery) return;
  const Time step = std::min(now - std::exchange(looked_, now), kLongestRound);
  watched_ += step;
  if (room_for_told() == 0) {  // what they say meanwhile is not read
    for (auto& [identity, agent] : agents_) agent.heard += step;
  }
  look_for_joined(now, peers);
  for (auto& [identity, agent] : agents_) look_at(identity, agent, peers);
  look_at_store();
}

// Machines that have joined, have left, or are heard again after they were lost.
void DriverMachine::look_for_joined(Time now, const Peers& peers) {
  for (const AgentNumber agent : std::exchange(joining_, {})) {
    agents_.try_emplace(peers.identity_of(agent),
                        Agent{.last_heard = now, .heard = watched_, .has_joined = true});
  }
  for (const AgentNumber agent : std::exchange(left_, {})) {
    const auto known = agents_.find(peers.identity_of(agent));
    if (known == agents_.end() || known->second.has_ended) continue;
    if (!known->second.has_joined) continue;  // its process tells
    agents_.erase(known);
  }
  for (auto lost = dismissed_.begin(); lost != dismissed_.end();) {
    const auto one = lost++;
    if (peers.last_heard(one->first) <= one->second) continue;
    actions_.emplace_back(Dismiss{one->first});
    dismissed_.erase(one);
  }
}

void DriverMachine::look_at(const std::string& identity, Agent& agent, const Peers& peers) {
  if (agent.has_ended) return;
  const auto number = peers.number_of(identity);
  const Time heard = number ? peers.last_heard(*number) : agent.last_heard;
  if (heard > agent.last_heard) {
    agent.last_heard = heard;
    agent.heard = watched_;
  }
  const Time silence = watched_ - agent.heard;
  if (agent.has_joined) {
    if (silence <= options_.lease) return;
    return on_agent_ended(identity,
                          fmt::format("it has said nothing for {:.0f} s", in_seconds(silence)));
  }
  if (!agent.end && silence > kAgentSilence) end_silent(identity, agent, silence);
  // The process may be in a call that the kernel does not leave, where even SIGKILL does not end
  // it.
  if (agent.end && watched_ - *agent.end > kAgentEnd) on_agent_ended(identity, agent.how);
}

void DriverMachine::end_silent(const std::string& identity, Agent& agent, Time silence) {
  agent.end = watched_;
  agent.how = fmt::format("{} has said nothing for {:.0f} s", identity, in_seconds(silence));
  actions_.emplace_back(EndAgent{identity});
}

bool DriverMachine::on_told(Peers::Told&& told) {
  const bool joins = std::holds_alternative<Apart<AgentHello>>(told.event);
  if (joins && lost_.contains(told.agent)) return false;
  if (joins && std::get<Apart<AgentHello>>(told.event)->joined) joining_.insert(told.agent);
  const auto* out = std::get_if<NodeOut>(&told.event);
  if (out != nullptr && out->gone) left_.insert(told.agent);
  told_bytes_ += told.bytes;
  told_.push_back(std::move(told));
  return true;
}

// ---- The store ----------------------------------------------------------------------------------

void DriverMachine::on_store_silent(const std::string& why) {
  if (!silent_since_) silent_since_ = watched_;
  if (!ends_since_) silent_why_ = why;  // the end of a private server says more
}

void DriverMachine::on_store_answered() {
  if (silence_is_told_) {
    actions_.emplace_back(Say{fmt::format("the store answers again after {:.0f} s",
                                          in_seconds(watched_ - *silent_since_))});
  }
  silent_since_.reset();
  silence_is_told_ = false;
}

// Starts the server again, the first time at once, then after longer and longer pauses. A server
// that has lived for a while since its last start was well, whether or not there was a turn
// meanwhile.
void DriverMachine::on_server_ended(const std::string& how) {
  if (started_at_ && watched_ - *started_at_ > kWell) on_server_well();
  const bool is_first = !ends_since_;
  if (is_first) ends_since_ = watched_;
  if (is_first) actions_.emplace_back(Say{fmt::format("{}: the store is started again", how)});
  silent_why_ = how;
  const Time waited = watched_ - *ends_since_;
  if (is_too_long(waited)) return give_up_store(waited);
  restart_at_ = watched_ + restart_pause_;
  restart_pause_ = std::clamp(2 * restart_pause_, kFirstRestart, kLastRestart);
}

void DriverMachine::on_server_well() {
  ends_since_.reset();
  started_at_.reset();
  restart_pause_ = Time{};
}

void DriverMachine::look_at_store() {
  if (restart_at_ && watched_ >= *restart_at_) {
    restart_at_.reset();
    started_at_ = watched_;
    actions_.emplace_back(StartStore{});
  }
  if (!silent_since_) return;
  const Time silence = watched_ - *silent_since_;
  const bool ends = signal_ != 0 && std::min(silence, watched_ - signal_at_) > kStoreFarewell;
  if (ends || is_too_long(silence)) return give_up_store(silence);
  if (silence_is_told_ || silence < kStoreTold) return;
  silence_is_told_ = true;
  const std::string limit = options_.store_patience > Time{}
                                ? fmt::format(" up to {:g} s", in_seconds(options_.store_patience))
                                : "";
  actions_.emplace_back(
      Say{fmt::format("{}: waiting{} for it, meanwhile trials go on to where they need a verdict",
                      silent_why_, limit)});
}

bool DriverMachine::is_too_long(Time silence) const {
  return options_.store_patience > Time{} && silence > options_.store_patience;
}

void DriverMachine::give_up_store(Time waited) {
  if (std::exchange(has_given_up_, true)) return;
  actions_.emplace_back(GiveUp{GiveUp::Why::kStore, fmt::format("{} (waited for {:.0f} s)",
                                                                silent_why_, in_seconds(waited))});
}

// ---- Turns --------------------------------------------------------------------------------------

std::optional<TurnContents> DriverMachine::next_turn(Time now,
                                                     std::optional<ExperimentTime> deadline,
                                                     const Peers& peers) {
  TurnContents contents;
  if (interrupt_) {
    contents.events.emplace_back(InterruptRequested{*std::exchange(interrupt_, std::nullopt)});
  }
  const bool nothing_waits = told_.empty();
  // These come after what agents told, and are cut before it: there are few, and none is to wait
  // for agents that never stop telling.
  std::vector<Event> own;
  std::size_t bytes = 0;
  take_fitting(pool_, own, bytes);
  take_fitting(orders_, own, bytes);
  if (has_room_) take_told(contents, bytes);
  if (has_room_ && proposed_) {
    contents.events.emplace_back(*std::exchange(proposed_, std::nullopt));
  }
  std::ranges::move(own, std::back_inserter(contents.events));
  if (deadline && experiment_time(now) >= *deadline)
    contents.events.emplace_back(DeadlineReached{});
  if (nothing_waits && ended_ > 0) take_ends(contents, peers);
  if (contents.events.empty() && notices_.empty()) return std::nullopt;
  contents.notices = take_notices();
  return contents;
}

std::optional<TurnContents> DriverMachine::last_turn() {
  if (notices_.empty()) return std::nullopt;
  TurnContents contents;
  contents.notices = take_notices();
  return contents;
}

void DriverMachine::on_notice(std::string text) {
  if (notices_.size() < kMaxNotices) return notices_.push_back(std::move(text));
  ++more_notices_;
}

std::vector<std::string> DriverMachine::take_notices() {
  const std::size_t more = std::exchange(more_notices_, 0);
  if (more > 0) notices_.push_back(fmt::format("{} more notices are not kept", more));
  return std::exchange(notices_, {});
}

// `bytes` are in the turn already.
void DriverMachine::take_told(TurnContents& contents, std::size_t bytes) {
  contents.events.reserve(contents.events.size() + told_.size());
  while (!told_.empty() && fits(told_.front().bytes, bytes)) {
    Peers::Told& told = told_.front();
    told_bytes_ -= told.bytes;
    contents.heard[told.agent] = told.position;
    contents.events.emplace_back(std::in_place_type<FromAgent>, told.agent,
                                 std::move(told.event), told.number);
    told_.pop_front();
  }
}

void DriverMachine::take_ends(TurnContents& contents, const Peers& peers) {
  for (auto agent = agents_.begin(); agent != agents_.end();) {
    const auto& [identity, state] = *agent;
    if (!end_can_be_told(identity, state, peers)) {
      ++agent;
      continue;
    }
    if (gives_up_with_agent() && !state.has_joined) {
      actions_.emplace_back(GiveUp{GiveUp::Why::kAgent, state.how});
    } else {
      const AgentNumber number = *peers.number_of(identity);
      lost_.insert(number);
      if (state.has_joined) dismissed_[number] = state.last_heard;
      contents.events.emplace_back(AgentLost{number, state.how});
    }
    agent = agents_.erase(agent);
    --ended_;
  }
}

// Its first word may still be on its way.
bool DriverMachine::end_can_be_told(const std::string& identity, const Agent& agent,
                                    const Peers& peers) const {
  const bool gives_up = gives_up_with_agent() && !agent.has_joined;
  return agent.has_ended && (gives_up || peers.number_of(identity).has_value());
}

bool DriverMachine::has_more(const Peers& peers) const {
  if (interrupt_ || has_notices() || has_pool_events() || !orders_.empty()) return true;
  if (!told_.empty() || proposed_) return has_room_;
  return ended_ > 0 && std::ranges::any_of(agents_, [&](const auto& agent) {
           return end_can_be_told(agent.first, agent.second, peers);
         });
}

void DriverMachine::on_turn_done() {
  changed_ = true;
  on_server_well();
}

// ---- The passing of time ------------------------------------------------------------------------

bool DriverMachine::show_is_due(Time now) const {
  return now - shown_ >= (changed_ ? kStatusEvery : kStatusAnyway);
}

DriverMachine::Time DriverMachine::idle_time(Time now, std::optional<ExperimentTime> deadline,
                                             const Peers& peers) const {
  if (store_is_silent()) return kStoreRetry;
  if (has_more(peers)) return Time{};
  Time limit = has_room_ ? kLookEvery : kRoomEvery;
  if (changed_) limit = std::min(limit, kStatusEvery);
  if (deadline) limit = std::min<Time>(limit, *deadline - experiment_time(now));
  return std::max(limit, Time{});
}

}  // namespace tune
