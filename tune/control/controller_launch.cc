// The controller's choice of what begins next: when there is room, and when all is over.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/control/controller.h"
#include "tune/search/proposal.h"

namespace tune {

// Launches the next trials while there is room. The order is strict, no trial passes another; but
// trials that are to be tried on another place have had their turn, and only wait for that place.
void Controller::fill() {
  // The events of a turn go before the deadline that is reached in it: no trial begins between
  // them.
  const bool budget_is_spent = time_budget_ > Duration{} && now_ >= time_budget_;
  if (!budget_is_spent) {
    launch_second_tries();
    Launched last = Launched::kOne;
    while (phase_ == Phase::kRunning && last == Launched::kOne) last = launch_next();
    ask(last == Launched::kLacksProposal ? free_places() : 0);
  }
  settle();
}

bool Controller::has_room_for_another() const {
  return max_concurrent_trials_ == 0 || book_.running().size() < max_concurrent_trials_;
}

void Controller::launch_second_tries() {
  if (phase_ != Phase::kRunning) return;
  for (const auto& [number, places] : std::map(health_.second_tries())) {
    if (!book_.waiting().contains(number) || !has_room_for_another()) continue;
    DeviceHealth::Names avoided = health_.set_aside();
    avoided.insert(places.begin(), places.end());
    if (std::optional<Placement> placement = nodes_.place(avoided)) {
      launch(book_.at(number), std::move(*placement));
    } else if (!nodes_.empty() && nodes_.all_are_ready() && !nodes_.could_hold(avoided)) {
      health_.forget(number);  // the other place has left meanwhile
    }
  }
}

// First there is room, then the scheduler chooses, and a new trial is drawn only when it chose that
// one: all that was reported so far counts.
Controller::Launched Controller::launch_next() {
  TrialBook::Numbers others;
  const TrialBook::Numbers* waiting = &book_.waiting();
  if (!health_.second_tries().empty()) {
    std::ranges::copy_if(*waiting, std::inserter(others, others.end()), [&](TrialNumber trial) {
      return !health_.second_tries().contains(trial);
    });
    waiting = &others;
  }
  if (!asks_late_ && waiting->empty() && create_trial()) others.insert(book_.all().back().number);
  const bool offers_new = asks_late_ && waiting->empty() && has_more();
  if (offers_new) waiting = &(others = {book_.next_number()});
  const bool has_candidates = !waiting->empty() || !book_.paused().empty();
  if (!has_candidates || !has_room_for_another()) return Launched::kNone;
  std::optional<Placement> placement = place_next();
  if (!placement) return Launched::kNone;
  std::optional<TrialNumber> next = choose_next(*waiting);
  const bool is_new = offers_new && next == book_.next_number();
  const bool lacks_proposal = is_new && searcher_->ready() == std::size_t{0};
  if (is_new && !lacks_proposal && !create_trial()) next = choose_next({});
  if (!next || lacks_proposal || phase_ != Phase::kRunning) {
    nodes_.release(*placement);
    return lacks_proposal ? Launched::kLacksProposal : Launched::kNone;
  }
  Trial& trial = book_.at(*next);
  launch(trial, nearer(trial, std::move(*placement)));
  return Launched::kOne;
}

// The trial was chosen when there was a place; the node that has kept its checkpoint is a better
// one.
Placement Controller::nearer(const Trial& trial, Placement found) {
  if (!trial.home || found.nodes > 1 || found.agent == *trial.home) return found;
  std::optional<Placement> home = nodes_.place_on(*trial.home, health_.closed());
  if (!home) return found;
  nodes_.release(found);
  return std::move(*home);
}

// The place for a trial that has not failed anywhere of late.
std::optional<Placement> Controller::place_next() {
  DeviceHealth::Names closed = health_.closed();
  if (auto placement = nodes_.place(closed)) return placement;
  if (!closed.empty()) {
    for (const std::string& place : health_.due_probes(now_)) closed.erase(place);
    if (auto placement = nodes_.place(closed)) return placement;
  }
  if (!book_.running().empty() || nodes_.empty() || !nodes_.all_are_ready()) return std::nullopt;
  if (auto placement = nodes_.place()) return placement;  // there is no better place
  const std::string never = nodes_.why_never();
  if (!never.empty() && nodes_may_join_) {
    say_that_trials_wait("no node could hold a trial: " + never);
  } else if (!never.empty()) {
    fail_experiment("placing a trial: " + never);
  }
  return std::nullopt;
}

// Whether the searcher may have another trial, as far as can be told without asking it.
bool Controller::has_more() const {
  if (exhausted_) return false;
  const std::optional<std::uint64_t> total = searcher_->total();
  return !total || book_.next_number().value < *total;
}

bool Controller::create_trial() {
  if (exhausted_) return false;
  const TrialNumber number = book_.next_number();
  std::optional<Config> config;
  try {
    config = searcher_->suggest(number);
  } catch (const std::exception& error) {  // a function of the user's search space threw
    fail_experiment(
        fmt::format("drawing the configuration of trial {}: {}", number.value, error.what()));
  }
  if (!config) {
    exhausted_ = true;
    return false;
  }
  Packed packed = pack(*config);
  Milestone until = verdicts_.begin(number, packed);
  const Trial& trial = book_.add(std::move(packed), std::move(until));
  if (const Proposal* proposal = searcher_->newest_proposal()) tell(trial, *proposal);
  return true;
}

// The reason why there was no model is said once.
void Controller::tell(const Trial& trial, const Proposal& proposal) {
  out_->tell(TrialProposed{trial, proposal});
  if (proposal.origin == ProposalOrigin::kModel && !proposal.note.empty()) warn(proposal.note);
  if (proposal.origin != ProposalOrigin::kFallback) return;
  warn(fmt::format("configurations are drawn at random for now, as there is no model: {}",
                   proposal.note));
}

std::optional<TrialNumber> Controller::choose_next(const TrialBook::Numbers& waiting) {
  const TrialScheduler& scheduler = verdicts_.scheduler();
  const Candidates candidates(waiting, book_.paused(), scheduler.resumed_first());
  if (candidates.empty()) return std::nullopt;
  const std::optional<TrialNumber> chosen = scheduler.choose(candidates);
  if (chosen && !candidates.contains(*chosen)) return std::nullopt;
  // A scheduler that chooses no trial while nothing runs would wait for ever.
  if (!chosen && book_.running().empty() && !waiting.empty()) return *waiting.begin();
  return chosen;
}

std::optional<Asking::Question> Controller::question() const {
  return phase_ == Phase::kRunning ? asking_.open() : std::nullopt;
}

// Puts a question to a searcher whose proposals take time, unless one is open.
void Controller::ask(std::uint64_t free_places) {
  const std::optional<std::size_t> ready = searcher_->ready();
  if (!ready || asking_.open() || phase_ != Phase::kRunning || !has_more()) return;
  std::uint64_t wanted = free_places + asking_.stock(book_.running().size() + free_places);
  if (const auto total = searcher_->total()) {
    wanted = std::min(wanted, *total - book_.next_number().value);
  }
  if (wanted > *ready) asking_.ask(wanted - *ready);
}

// The places that new trials could have at once, as far as they are asked for together.
std::uint64_t Controller::free_places() {
  std::uint64_t most = Asking::kMostAtOnce;
  if (max_concurrent_trials_ > 0) {
    most = std::min<std::uint64_t>(most, max_concurrent_trials_ - book_.running().size());
  }
  std::vector<Placement> found;
  while (found.size() < most) {
    std::optional<Placement> placement = nodes_.place(health_.closed());
    if (!placement) break;
    found.push_back(std::move(*placement));
  }
  for (const Placement& placement : found) nodes_.release(placement);
  return std::max<std::uint64_t>(1, found.size());  // one was found before
}

void Controller::launch(Trial& trial, Placement placement) {
  waits_for_user_ = false;
  if (trial.status == TrialStatus::kPaused) resume(trial);
  book_.cut_to_checkpoint(trial);
  if (searcher_->ready()) asking_.attempt_began(trial.number, now_);
  if (placement.nodes == 1) {
    health_.attempt_began(nodes_.places_of(placement));
  } else {
    health_.forget(trial.number);
  }
  const AgentNumber agent = placement.agent;
  book_.begin_attempt(trial, std::move(placement));
  out_->send(agent, launch_of(trial));
}

// On the node that leads the attempt.
Launch Controller::launch_of(const Trial& trial) const {
  Launch command;
  command.trial = trial.number;
  command.attempt = trial.attempt;
  command.config = trial.config;
  command.seed = RandomStream(seed_, "trial", trial.number.value).next();
  command.ranks = static_cast<std::uint32_t>(request_.ranks);
  command.cpu_units = request_.cpu_units;
  command.gpu_units = request_.gpu_units;
  command.gpus = trial.placement->gpus;
  if (!trial.checkpoints.empty()) {
    const CheckpointRecord& newest = trial.checkpoints.back();
    command.restore_iteration = newest.iteration;
    command.restore_attempt = newest.attempt;
    command.time_total = newest.time_total;
    command.timesteps_total = newest.timesteps_total.value_or(0);
    command.origin = newest.origin;
  }
  command.until = Verdicts::until(trial);
  if (trial.placement->nodes == 1) return command;
  command.hosts = {nodes_.hello(trial.placement->agent).hostname};
  for (const PlacementPart& part : trial.placement->others) {
    command.hosts.push_back(nodes_.hello(part.agent).hostname);
  }
  return command;
}

// Finds out whether the experiment is over after this event. When nothing else can run, paused
// trials are over; when it ends early, trials that never started are over as well.
void Controller::settle() {
  if (is_over() || !book_.running().empty()) return;
  if (phase_ == Phase::kInterrupting) {
    return end_experiment(Phase::kInterrupted);
  }
  if (phase_ == Phase::kRunning) {
    if (!asks_late_ && book_.waiting().empty()) create_trial();
    const bool some_wait = !book_.waiting().empty() || (asks_late_ && has_more());
    if (is_stranded(some_wait) && nodes_may_join_) {
      return say_that_trials_wait("no node is left that could start one; " + nodes_.why_out());
    }
    if (is_stranded(some_wait)) {
      failure_ = "running trials: no node is left that could start one; " + nodes_.why_out();
      return end_experiment(Phase::kInterrupted);
    }
    if (some_wait) return;
    if (!book_.held().empty()) return wait_for_user();
    if (!book_.paused().empty() && (nodes_.empty() || !nodes_.all_are_ready())) return;
    // Nodes are there, but none that could take a paused trial on: one may join.
    const bool one_may_join = has_pool_ || (nodes_may_join_ && spreads_groups_ && request_.ranks > 1);
    if (!book_.paused().empty() && one_may_join && !nodes_.could_hold({})) return;
  }
  for (const TrialBook::Numbers* left : {&book_.paused(), &book_.waiting(), &book_.held()}) {
    for (TrialNumber number : std::set(*left)) finish(book_.at(number), TrialEnd::kStopped);
  }
  end_experiment(Phase::kFinished);
}

// Trials are left, and only nodes that start no more of them could hold one.
bool Controller::is_stranded(bool some_wait) const {
  if (nodes_.why_out().empty() || !nodes_.all_are_ready()) return false;
  return (some_wait || !book_.paused().empty()) && !nodes_.could_hold({});
}

}  // namespace tune
