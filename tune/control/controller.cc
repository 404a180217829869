#include "tune/control/controller.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

constexpr Duration kSaveGrace = std::chrono::seconds(30);  // to save when the experiment ends early

}  // namespace

Controller::Controller(ControllerSetup setup)
    : experiment_(std::move(setup.experiment)),
      plugin_(std::move(setup.plugin)),
      request_(setup.request),
      objective_(std::move(setup.objective)),
      seed_(setup.seed),
      fail_fast_(setup.fail_fast),
      scheduler_(std::move(setup.scheduler)),
      searcher_(std::move(setup.searcher)) {}

Effects Controller::handle(ExperimentTime now, const Event& event, const Sink& sink) {
  TUNE_CHECK(now >= now_);
  now_ = now;
  sink_ = &sink;
  std::visit([this](const auto& what) { on(what); }, event);
  sink_ = nullptr;
  return std::exchange(effects_, {});
}

std::optional<ExperimentTime> Controller::next_deadline() const {
  if (phase_ != Phase::kRunning || time_budget_ == Duration{}) return std::nullopt;
  return time_budget_;
}

bool Controller::has_ready_node() const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [](const auto& agent) { return agent.second.ready; });
}

bool Controller::is_over() const {
  return phase_ == Phase::kFinished || phase_ == Phase::kInterrupted || phase_ == Phase::kFailed;
}

// ---- Drivers and deadlines
// ------------------------------------------------------------------------

void Controller::on(const DriverStarted& event) {
  for (TrialNumber number : std::set(running_)) {
    Trial& trial = trials_[number.value];
    trial.placement.reset();
    wait_again(trial);
  }
  placer_ = Placer();
  agents_.clear();
  for (Trial& trial : trials_) {
    const bool interrupted = trial.status == TrialStatus::kPaused && !trial.paused_by_scheduler;
    const bool again = trial.status == TrialStatus::kError && event.retry_errored;
    if (again) trial.failures = 0;
    if (interrupted || again) wait_again(trial);
  }
  max_failures_ = event.max_failures;
  max_concurrent_trials_ = event.max_concurrent_trials;
  time_budget_ = event.time_budget;
  searcher_->set_num_samples(event.num_samples);
  exhausted_ = false;
  failure_.clear();
  phase_ = Phase::kRunning;
  // Without an agent nothing can run, but an experiment in which nothing is left to do is over now.
  settle();
}

void Controller::on(const AgentLost& event) {
  const auto agent = agents_.find(event.agent);
  if (agent == agents_.end()) return;
  notice(fmt::format("node {} is lost: {}", agent->second.hello.hostname, event.cause));
  for (TrialNumber number : std::set(running_)) {
    Trial& trial = trials_[number.value];
    if (trial.placement->agent != event.agent) continue;
    trial.placement.reset();
    wait_again(trial);
  }
  placer_.remove_node(event.agent);
  agents_.erase(agent);
  fill();
}

void Controller::on(const DeadlineReached&) {
  const std::optional<ExperimentTime> deadline = next_deadline();
  if (!deadline || now_ < *deadline) return;
  const double seconds = std::chrono::duration<double>(time_budget_).count();
  notice(fmt::format("the time budget of {} s is spent: running trials save and end", seconds));
  stop_running(StopKind::kStop, kSaveGrace, Phase::kEnding);
}

void Controller::on(const InterruptRequested&) {
  if (is_over() || phase_ == Phase::kInterrupting) return;
  stop_running(StopKind::kPause, kSaveGrace, Phase::kInterrupting);
}

void Controller::stop_running(StopKind kind, Duration grace, Phase phase) {
  phase_ = phase;
  for (TrialNumber number : running_) {
    const Trial& trial = trials_[number.value];
    // A trial whose end was already decided only gets the deadline.
    const StopKind own = trial.verdict.value_or(kind) == StopKind::kStop ? StopKind::kStop : kind;
    send(trial.placement->agent, StopAttempt{trial.number, trial.attempt, own, grace});
  }
  settle();
}

void Controller::fail_experiment(std::string why) {
  if (is_over()) return;
  failure_ = std::move(why);
  phase_ = Phase::kFailed;
}

// ---- Agents
// ---------------------------------------------------------------------------------------

void Controller::on(const FromAgent& event) {
  std::visit([&](const auto& what) { on_agent(event.agent, what); }, event.event);
}

void Controller::on_agent(AgentNumber agent, const AgentHello& hello) {
  if (agents_.contains(agent)) return;  // the same agent after a reconnect: its attempts stand
  if (hello.protocol != kProtocolVersion) {
    return fail_experiment(fmt::format(
        "node {} speaks protocol {}, this driver {}: install the same version of tune on both",
        hello.hostname, hello.protocol, kProtocolVersion));
  }
  agents_[agent].hello = hello;
  tell(NodeJoined{agent, hello});
  placer_.add_node(agent, resources_of(hello));
  if (!hello.gpus.empty() && request_.gpu_units == 0) {
    notice(fmt::format("{} GPUs present on {} but trials ask for none: set resources_per_trial gpu",
                       hello.gpus.size(), hello.hostname));
  }
  send(agent, experiment_);
}

void Controller::on_agent(AgentNumber number, const ZygoteReady& ready) {
  const auto agent = agents_.find(number);
  if (agent == agents_.end()) return;
  const WantedTrainable wanted{experiment_.trainable, plugin_, experiment_.checkpoint.frequency,
                               scheduler_->pauses()};
  if (const auto complaints = complaints_about(ready, wanted); !complaints.empty()) {
    return fail_experiment(complaint_lines("", complaints));
  }
  if (!ready.note.empty()) notice(ready.note);
  const auto info =
      std::find_if(ready.trainables.begin(), ready.trainables.end(),
                   [&](const TrainableInfo& one) { return one.name == experiment_.trainable; });
  can_save_ = info->can_save;
  if (!can_save_ && !info->is_function) {
    if (!std::exchange(save_notice_given_, true)) {
      notice(fmt::format("{} has no save and load: a trial that is started again begins at step 1",
                         info->name));
    }
  }
  if (!std::exchange(agent->second.ready, true)) placer_.open_node(number);
  fill();
}

void Controller::on_agent(AgentNumber agent, const AttemptStarted& started) {
  Trial* trial = current(agent, started.trial, started.attempt);
  if (trial == nullptr) return;
  trial->location = fmt::format("{}:{}", agents_.at(agent).hello.ip, started.pid);
  tell(TrialChanged{*trial});
}

// Many trials may say the same: it is shown once.
void Controller::on_agent(AgentNumber, const Warning& warning) {
  constexpr std::size_t kMaxKept = 1000;
  if (warnings_.contains(warning.text)) return;
  if (warnings_.size() < kMaxKept) warnings_.insert(warning.text);
  notice(warning.text);
}

void Controller::send(AgentNumber agent, Command command) {
  effects_.commands.emplace_back(agent, std::move(command));
}

std::optional<TrialNumber> Controller::best_trial() const {
  std::optional<TrialNumber> best;
  double best_value = 0;
  for (const Trial& trial : trials_) {
    if (!trial.metric || !std::isfinite(*trial.metric)) continue;
    const double value = objective_.mode == Mode::kMax ? *trial.metric : -*trial.metric;
    if (best && value <= best_value) continue;
    best = trial.number;
    best_value = value;
  }
  return best;
}

}  // namespace tune
