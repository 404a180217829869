#include "tune/control/launcher.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "core/random.h"

namespace tune {

void Launcher::fill() {
  // The events of a turn go before the deadline that is reached in it: no trial begins between
  // them.
  if (!state_.is_budget_spent()) {
    launch_second_tries();
    Launched last = Launched::kOne;
    while (state_.course.is_running() && last == Launched::kOne) last = launch_next();
    source_.ask(last == Launched::kLacksProposal ? free_places() : 0);
  }
  end_.settle();
}

bool Launcher::has_room_for_another() const {
  const std::uint32_t most = state_.driver.max_concurrent_trials;
  return most == 0 || state_.book.running().size() < most;
}

void Launcher::launch_second_tries() {
  if (!state_.course.is_running()) return;
  DeviceHealth& health = state_.health;
  Nodes& nodes = state_.nodes;
  for (const auto& [number, places] : std::map(health.second_tries())) {
    if (!state_.book.waiting().contains(number) || !has_room_for_another()) continue;
    DeviceHealth::Names avoided = health.set_aside();
    avoided.insert(places.begin(), places.end());
    if (std::optional<Placement> placement = nodes.place(avoided)) {
      launch(state_.book.at(number), std::move(*placement));
    } else if (!nodes.empty() && nodes.all_are_ready() && !nodes.could_hold(avoided)) {
      health.forget(number);  // the other place has left meanwhile
    }
  }
}

// First there is room, then the scheduler chooses, and a new trial is drawn only when it chose that
// one: all that was reported so far counts.
Launcher::Launched Launcher::launch_next() {
  TrialBook& book = state_.book;
  const DeviceHealth& health = state_.health;
  const bool asks_late = state_.driver.asks_late;
  TrialBook::Numbers others;
  const TrialBook::Numbers* waiting = &book.waiting();
  if (!health.second_tries().empty()) {
    std::ranges::copy_if(*waiting, std::inserter(others, others.end()),
                         [&](TrialNumber trial) { return !health.second_tries().contains(trial); });
    waiting = &others;
  }
  if (!asks_late && waiting->empty() && source_.draw()) others.insert(book.all().back().number);
  const bool offers_new = asks_late && waiting->empty() && source_.has_more();
  if (offers_new) waiting = &(others = {book.next_number()});
  const bool has_candidates = !waiting->empty() || !book.paused().empty();
  if (!has_candidates || !has_room_for_another()) return Launched::kNone;
  std::optional<Placement> placement = place_next();
  if (!placement) return Launched::kNone;
  std::optional<TrialNumber> next = choose_next(*waiting);
  const bool is_new = offers_new && next == book.next_number();
  const bool lacks_proposal = is_new && state_.searcher.ready() == std::size_t{0};
  if (is_new && !lacks_proposal && !source_.draw()) next = choose_next({});
  if (!next || lacks_proposal || !state_.course.is_running()) {
    state_.nodes.release(*placement);
    return lacks_proposal ? Launched::kLacksProposal : Launched::kNone;
  }
  Trial& trial = book.at(*next);
  launch(trial, nearer(trial, std::move(*placement)));
  return Launched::kOne;
}

std::optional<TrialNumber> Launcher::choose_next(const TrialBook::Numbers& waiting) const {
  const TrialScheduler& scheduler = state_.verdicts.scheduler();
  const TrialBook& book = state_.book;
  const Candidates candidates(waiting, book.paused(), scheduler.resumed_first());
  if (candidates.empty()) return std::nullopt;
  const std::optional<TrialNumber> chosen = scheduler.choose(candidates);
  if (chosen && !candidates.contains(*chosen)) return std::nullopt;
  // A scheduler that chooses no trial while nothing runs would wait for ever.
  if (!chosen && book.running().empty() && !waiting.empty()) return *waiting.begin();
  return chosen;
}

// The place for a trial that has not failed anywhere of late.
std::optional<Placement> Launcher::place_next() {
  Nodes& nodes = state_.nodes;
  DeviceHealth::Names closed = state_.health.closed();
  if (auto placement = nodes.place(closed)) return placement;
  if (!closed.empty()) {
    for (const std::string& place : state_.health.due_probes(state_.now)) closed.erase(place);
    if (auto placement = nodes.place(closed)) return placement;
  }
  if (!state_.book.running().empty() || nodes.empty() || !nodes.all_are_ready()) {
    return std::nullopt;
  }
  if (auto placement = nodes.place()) return placement;  // there is no better place
  const std::string never = nodes.why_never();
  if (!never.empty() && state_.driver.nodes_may_join) {
    end_.say_that_trials_wait("no node could hold a trial: " + never);
  } else if (!never.empty()) {
    state_.course.fail("placing a trial: " + never);
  }
  return std::nullopt;
}

// The trial was chosen when there was a place; the node that has kept its checkpoint is a better
// one.
Placement Launcher::nearer(const Trial& trial, Placement found) {
  if (!trial.home || found.nodes > 1 || found.agent == *trial.home) return found;
  std::optional<Placement> home = state_.nodes.place_on(*trial.home, state_.health.closed());
  if (!home) return found;
  state_.nodes.release(found);
  return std::move(*home);
}

// The places that new trials could have at once, as far as they are asked for together.
std::uint64_t Launcher::free_places() {
  std::uint64_t most = Asking::kMostAtOnce;
  if (state_.driver.max_concurrent_trials > 0) {
    most = std::min<std::uint64_t>(
        most, state_.driver.max_concurrent_trials - state_.book.running().size());
  }
  std::vector<Placement> found;
  while (found.size() < most) {
    std::optional<Placement> placement = state_.nodes.place(state_.health.closed());
    if (!placement) break;
    found.push_back(std::move(*placement));
  }
  for (const Placement& placement : found) state_.nodes.release(placement);
  return std::max<std::uint64_t>(1, found.size());  // one was found before
}

void Launcher::launch(Trial& trial, Placement placement) {
  state_.waits_for_user = false;
  if (trial.status == TrialStatus::kPaused) moves_.resume(trial);
  state_.book.cut_to_checkpoint(trial);
  if (state_.searcher.ready()) state_.asking.attempt_began(trial.number, state_.now);
  if (placement.nodes == 1) {
    state_.health.attempt_began(state_.nodes.places_of(placement));
  } else {
    state_.health.forget(trial.number);
  }
  const AgentNumber agent = placement.agent;
  state_.book.begin_attempt(trial, std::move(placement));
  state_.out.send(agent, launch_of(trial));
}

// On the node that leads the attempt.
Launch Launcher::launch_of(const Trial& trial) const {
  const ControllerSetup& setup = state_.setup;
  Launch command;
  command.trial = trial.number;
  command.attempt = trial.attempt;
  command.config = trial.config;
  command.seed = RandomStream(setup.seed, "trial", trial.number.value).next();
  command.ranks = static_cast<std::uint32_t>(setup.request.ranks);
  command.cpu_units = setup.request.cpu_units;
  command.gpu_units = setup.request.gpu_units;
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
  command.hosts = {state_.nodes.hello(trial.placement->agent).hostname};
  for (const PlacementPart& part : trial.placement->others) {
    command.hosts.push_back(state_.nodes.hello(part.agent).hostname);
  }
  return command;
}

void Launcher::begin_others(AgentNumber lead, const GroupMeets& meets) {
  const Trial* trial = state_.book.current(lead, meets.trial, meets.attempt);
  if (trial == nullptr) return;
  const Placement& placement = *trial->placement;
  const bool is_whole = placement.others.size() + 1 == placement.nodes;
  if (!is_whole || meets.addresses.size() != placement.others.size()) return;  // it is being ended
  // A machine that has not greeted this driver yet will say that nothing of it runs there: it must
  // not begin meanwhile.
  const bool any_is_away = std::ranges::any_of(placement.others, [&](const PlacementPart& part) {
    return state_.nodes.is_away(part.agent);
  });
  if (any_is_away) return;
  Launch command = launch_of(*trial);
  for (const PlacementPart& part : placement.others) {
    command.gpus = part.gpus;
    command.node = part.node;
    command.lead = meets.addresses[part.node - 1];
    state_.out.send(part.agent, command);
  }
}

std::uint64_t Launcher::wanted(std::uint64_t most) const {
  if (!state_.course.is_running()) return 0;
  const TrialBook& book = state_.book;
  std::uint64_t count = book.waiting().size();
  if (source_.has_more()) {
    const std::optional<std::uint64_t> total = state_.searcher.total();
    count += total ? *total - book.next_number().value : most;
  }
  const std::uint64_t running = book.running().size();
  // Only a node can show whether one of the paused trials goes on.
  if (count == 0 && running == 0 && !book.paused().empty()) count = 1;
  const std::uint64_t at_once = state_.driver.max_concurrent_trials;
  if (at_once > 0) count = std::min(count, at_once - std::min(running, at_once));
  return std::min(count, most);
}

}  // namespace tune
