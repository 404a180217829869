// The part of the controller that decides who goes next and when the experiment is over.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/control/controller.h"

namespace tune {

// Launches whoever goes next while there is room; order is strict, none passes another.
void Controller::fill() {
  while (phase_ == Phase::kRunning) {
    if (waiting_.empty()) create_trial();
    const bool full = max_concurrent_trials_ > 0 && running_.size() >= max_concurrent_trials_;
    if (full || (waiting_.empty() && paused_.empty())) break;
    std::optional<Placement> placement = placer_.place(request_);
    if (!placement) {
      if (!running_.empty() || agents_.empty() || !all_agents_are_ready()) break;
      const std::string never = placer_.why_never(request_);
      if (!never.empty()) fail_experiment("placing a trial: " + never);
      break;
    }
    const std::optional<TrialNumber> next = choose_next();
    if (!next) {
      placer_.release(*placement, request_);
      break;
    }
    launch(trials_[next->value], std::move(*placement));
  }
  settle();
}

bool Controller::all_agents_are_ready() const {
  return std::all_of(agents_.begin(), agents_.end(),
                     [](const auto& agent) { return agent.second.ready; });
}

bool Controller::create_trial() {
  if (exhausted_) return false;
  const TrialNumber number{static_cast<std::uint32_t>(trials_.size())};
  std::optional<Config> config;
  try {
    config = searcher_->suggest(number);
  } catch (const std::exception& error) {  // a function of the user's search space threw
    fail_experiment(fmt::format("drawing the configuration of trial {}: {}", number.value,
                                error.what()));
  }
  if (!config) {
    exhausted_ = true;
    return false;
  }
  Trial& trial = trials_.emplace_back();
  trial.number = number;
  trial.config = pack(*config);
  trial.until = scheduler_->add_trial(number);
  ++counts_[static_cast<std::size_t>(TrialStatus::kPending)];
  waiting_.insert(number);
  tell(TrialAdded{trial});
  return true;
}

std::optional<TrialNumber> Controller::choose_next() {
  const Candidates candidates(waiting_, paused_, scheduler_->resumed_first());
  const std::optional<TrialNumber> chosen = scheduler_->choose(candidates);
  if (chosen && !candidates.contains(*chosen)) return std::nullopt;
  // A scheduler that wants nobody while nothing runs would wait for ever.
  if (!chosen && running_.empty() && !waiting_.empty()) return *waiting_.begin();
  return chosen;
}

void Controller::launch(Trial& trial, Placement placement) {
  const std::uint64_t restored =
      trial.checkpoints.empty() ? 0 : trial.checkpoints.back().iteration;
  if (trial.last && trial.last->iteration > restored) supersede(trial, restored);
  // A trial that the scheduler lets go on after a pause runs to its next milestone.
  if (trial.status == TrialStatus::kPaused) trial.until = scheduler_->resume_trial(trial.number);

  Launch command;
  command.trial = trial.number;
  command.attempt = trial.attempt = AttemptNumber{trial.attempt.value + 1};
  command.config = trial.config;
  command.seed = RandomStream(seed_, "trial", trial.number.value).next();
  command.ranks = static_cast<std::uint32_t>(request_.ranks);
  command.cpu_units = request_.cpu_units;
  command.gpus = placement.gpus;
  command.restore_iteration = restored;
  if (restored > 0) {
    command.time_total = trial.checkpoints.back().time_total;
    command.timesteps_total = trial.checkpoints.back().timesteps_total.value_or(0);
  }
  command.until = trial.until;
  const AgentNumber agent = placement.agent;
  trial.placement = std::move(placement);
  trial.location.clear();
  set_status(trial, TrialStatus::kRunning);
  send(agent, std::move(command));
}

// The trial goes on from `iteration`: its later results are void, also when it never gets there again.
void Controller::supersede(Trial& trial, std::uint64_t iteration) {
  tell(ResultsCut{trial, iteration});
  trial.last.reset();
  if (iteration > 0) trial.last = trial.at_checkpoint;
  trial.metric.reset();
  if (trial.last) trial.metric = ResultView(*trial.last).number(objective_.metric);
}

// Whether the experiment is over after this event.
void Controller::settle() {
  if (is_over() || !running_.empty()) return;
  if (phase_ == Phase::kInterrupting) {
    phase_ = Phase::kInterrupted;
    return;
  }
  if (phase_ == Phase::kRunning) {
    if (waiting_.empty()) create_trial();
    if (!waiting_.empty()) return;
    if (!paused_.empty() && (agents_.empty() || !all_agents_are_ready())) return;
  }
  end_leftovers();
  phase_ = Phase::kFinished;
}

// Nothing else can run: paused trials, and those never started when the experiment ends early, are
// over.
void Controller::end_leftovers() {
  for (TrialNumber number : std::set(paused_)) finish(trials_[number.value], TrialEnd::kStopped);
  for (TrialNumber number : std::set(waiting_)) finish(trials_[number.value], TrialEnd::kStopped);
}

}  // namespace tune
