#include "tune/simulate/virtual_sweep.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/result_view.h"
#include "core/wire.h"
#include "schedulers/merit.h"
#include "tune/control/controller.h"
#include "tune/control/experiment_setup.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

constexpr AgentNumber kNode{0};

// A trial's worker while it has one, and its curve as long as it may go on.
struct Worker {
  std::unique_ptr<Curve> curve;
  AttemptNumber attempt;
  bool runs = false;
  std::uint64_t iteration = 0;
  std::uint64_t restored = 0;
  Milestone until;
  Duration time_total{};
  Duration time_since_restore{};
  // Of the steps since it last waited that keep the constraints: of one metric the best value, of
  // several those of the last step that reported all: empty when it breaks them. Nothing: there was
  // no such step.
  std::optional<std::vector<double>> counts;
};

class VirtualSweep {
 public:
  VirtualSweep(const ExperimentSpec& spec, const Task& task, const VirtualOptions& options)
      : spec_(spec),
        task_(task),
        options_(options),
        controller_(controller_setup(spec, "/virtual")),
        objective_(objective_of(spec)),
        goals_(goals_of(objective_)) {
    for (const Goal& goal : goals_) places_.push_back(find_metric(task, goal.metric));
    for (const std::string& name : metrics_of(objective_))
      needed_.push_back(find_metric(task, name));
  }

  VirtualRun run();

 private:
  // Something that happens to an attempt of a trial.
  struct Planned {
    ExperimentTime at;
    std::uint64_t number;  // in the order of asking
    TrialNumber trial;
    AttemptNumber attempt;
    friend bool operator<(const Planned& a, const Planned& b) {  // the heap's top comes first
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };

  void tell(AgentEvent event) { told_.push_back(FromAgent{kNode, std::move(event)}); }
  void handle_told();
  void answer_questions();
  void handle(const Event& event);
  void obey(const SetupExperiment&) {}
  void obey(const Shutdown&) {}
  void obey(const Drain&) {}
  void obey(const NewToken&) {}
  void obey(const Launch& launch);
  void obey(const Continue& go_on);
  void obey(const StopAttempt& stop);
  void obey(const KillAttempt& kill);
  Worker* running(TrialNumber trial, AttemptNumber attempt);
  void plan_step(TrialNumber trial, const Worker& worker, double extra_steps);
  void step(TrialNumber trial, Worker& worker);
  Reported report_of(TrialNumber trial, const Worker& worker) const;
  void weigh(Worker& worker) const;
  void count(TrialNumber trial, Worker& worker);
  bool is_better(double value, double than) const {
    return goals_[0].mode == Mode::kMin ? value < than : value > than;
  }
  void end(TrialNumber trial, Worker& worker, Outcome outcome);
  void finish();

  const ExperimentSpec& spec_;
  const Task& task_;
  const VirtualOptions& options_;
  Controller controller_;
  Objective objective_;
  std::vector<Goal> goals_;
  std::vector<std::size_t> places_;  // of the goals' metrics
  std::vector<std::size_t> needed_;  // of those, and of the constraints'
  Task::Given given_;
  ExperimentTime now_{};
  std::deque<Event> told_;
  std::vector<Planned> planned_;
  std::uint64_t last_number_ = 0;
  std::map<TrialNumber, Worker> workers_;
  std::uint64_t ended_ = 0;
  VirtualRun run_;
};

VirtualRun VirtualSweep::run() {
  handle(driver_started(spec_, 1, false));
  AgentHello hello;
  hello.hostname = "virtual";
  hello.cpu_units = std::int64_t{options_.workers} * kUnit;
  tell(hello);
  ZygoteReady ready;
  ready.trainables = {{spec_.trainable, true, false}};
  tell(ready);
  handle_told();
  while (!controller_.is_over()) {
    const std::optional<ExperimentTime> deadline = controller_.next_deadline();
    if (deadline && (planned_.empty() || *deadline <= planned_.front().at)) {
      now_ = std::max(now_, *deadline);
      handle(DeadlineReached{});
      answer_questions();
      handle_told();
      continue;
    }
    if (planned_.empty()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("playing the sweep on {}: it stands still: nothing runs, and the "
                              "scheduler {} wants none of the trials that wait",
                              task_.name(), spec_.options.scheduler.name()));
    }
    std::pop_heap(planned_.begin(), planned_.end());
    const Planned next = planned_.back();
    planned_.pop_back();
    Worker* worker = running(next.trial, next.attempt);
    if (worker == nullptr) continue;
    now_ = next.at;
    step(next.trial, *worker);
    handle_told();
  }
  finish();
  return std::move(run_);
}

void VirtualSweep::finish() {
  if (controller_.phase() == Phase::kFailed) {
    throw Error(ErrorCode::kBadInput, controller_.failure());
  }
  run_.seconds = tune::seconds(now_);
  for (const Trial& trial : controller_.trials()) {
    if (trial.attempt.value == 0) continue;  // waits for room
    ++run_.trials;
    ++run_.last_steps[trial.last ? trial.last->iteration : 0];
  }
}

void VirtualSweep::handle_told() {
  while (!told_.empty()) {
    const Event event = std::move(told_.front());
    told_.pop_front();
    handle(event);
    answer_questions();
  }
}

void VirtualSweep::answer_questions() {
  while (const std::optional<Asking::Question> open = controller_.question()) {
    const Duration began = options_.cpu_time ? options_.cpu_time() : Duration{};
    const Searcher::Question make = controller_.searcher().question(open->count);
    Proposed proposed{open->number, {}, {}, {}};
    proposed.answer.bytes = make();
    if (options_.cpu_time) run_.deciding += options_.cpu_time() - began;
    handle(proposed);
  }
}

void VirtualSweep::handle(const Event& event) {
  const Duration began = options_.cpu_time ? options_.cpu_time() : Duration{};
  const Effects effects = controller_.handle(now_, event, [](const Record&) {});
  if (options_.cpu_time) run_.deciding += options_.cpu_time() - began;
  for (const auto& [agent, command] : effects.commands) {
    std::visit([this](const auto& what) { obey(what); }, command);
  }
}

// ---- Commands

void VirtualSweep::obey(const Launch& launch) {
  Worker& worker = workers_[launch.trial];
  if (!worker.curve) worker.curve = task_.begin(Config(unpack(launch.config)), given_);
  worker.attempt = launch.attempt;
  worker.runs = true;
  worker.iteration = worker.restored = launch.restore_iteration;
  worker.until = launch.until;
  worker.time_total = launch.time_total;
  worker.time_since_restore = {};
  ++run_.launches;
  tell(AttemptStarted{launch.trial, launch.attempt, 1});
  plan_step(launch.trial, worker, options_.start_cost);
}

void VirtualSweep::obey(const Continue& go_on) {
  Worker* worker = running(go_on.trial, go_on.attempt);
  if (worker == nullptr) return;
  worker->until = go_on.until;
  plan_step(go_on.trial, *worker, 0);
}

void VirtualSweep::obey(const StopAttempt& stop) {
  Worker* worker = running(stop.trial, stop.attempt);
  if (worker == nullptr) return;
  if (stop.kind == StopKind::kPause) {
    tell(CheckpointSaved{stop.trial, stop.attempt, worker->iteration, worker->time_total, {}});
  }
  end(stop.trial, *worker, stop.kind == StopKind::kPause ? Outcome::kPaused : Outcome::kStopped);
}

void VirtualSweep::obey(const KillAttempt& kill) {
  if (Worker* worker = running(kill.trial, kill.attempt)) end(kill.trial, *worker, Outcome::kLost);
}

Worker* VirtualSweep::running(TrialNumber trial, AttemptNumber attempt) {
  const auto found = workers_.find(trial);
  if (found == workers_.end() || !found->second.runs || found->second.attempt != attempt) {
    return nullptr;
  }
  return &found->second;
}

void VirtualSweep::end(TrialNumber trial, Worker& worker, Outcome outcome) {
  AttemptEnded ended;
  ended.trial = trial;
  ended.attempt = worker.attempt;
  ended.outcome = outcome;
  tell(std::move(ended));
  if (outcome == Outcome::kPaused || outcome == Outcome::kLost) {
    worker.runs = false;
  } else {
    ++ended_;
    workers_.erase(trial);
  }
}

// ---- Steps

void VirtualSweep::plan_step(TrialNumber trial, const Worker& worker, double extra_steps) {
  const double takes = worker.curve->seconds(worker.iteration + 1) * (1 + extra_steps);
  planned_.push_back(
      {now_ + std::max(from_seconds(takes), Duration(1)), ++last_number_, trial, worker.attempt});
  std::push_heap(planned_.begin(), planned_.end());
}

void VirtualSweep::step(TrialNumber trial, Worker& worker) {
  ++worker.iteration;
  ++run_.steps;
  const Duration took =
      std::max(from_seconds(worker.curve->seconds(worker.iteration)), Duration(1));
  worker.time_total += took;
  worker.time_since_restore += took;
  Reported report = report_of(trial, worker);
  report.time_this_iter = took;
  const bool is_at_end = worker.iteration == worker.curve->length();
  const bool is_stopped =
      ends_trial(report, spec_.stop, from_seconds(spec_.options.max_trial_time_s));
  report.final = is_at_end || is_stopped;
  report.waiting = !report.final && reaches(report, worker.until);
  if (is_at_end && !is_stopped && !worker.curve->is_whole()) ++run_.ends_of_record;

  weigh(worker);
  if (report.final || report.waiting) count(trial, worker);
  tell(report);
  if (report.final) {
    end(trial, worker, Outcome::kCompleted);
  } else if (!report.waiting) {
    plan_step(trial, worker, 0);
  }
}

Reported VirtualSweep::report_of(TrialNumber trial, const Worker& worker) const {
  Reported report;
  report.trial = trial;
  report.attempt = worker.attempt;
  report.iteration = worker.iteration;
  report.iterations_since_restore = worker.iteration - worker.restored;
  report.time_total = worker.time_total;
  report.time_since_restore = worker.time_since_restore;
  const std::span<const double> values = worker.curve->values(worker.iteration);
  std::vector<std::size_t> reported;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (worker.curve->reports(worker.iteration, i)) reported.push_back(i);
  }
  PackWriter out;
  out.map(reported.size());
  for (const std::size_t i : reported) {
    out.text(task_.metrics()[i].name);
    out.number(values[i]);
  }
  report.result = {out.take()};
  return report;
}

void VirtualSweep::weigh(Worker& worker) const {
  const auto is_reported = [&](std::size_t metric) {
    return worker.curve->reports(worker.iteration, metric);
  };
  if (!std::ranges::all_of(needed_, is_reported)) return;
  const std::span<const double> values = worker.curve->values(worker.iteration);
  std::vector<double> found;
  for (const std::size_t place : places_) found.push_back(values[place]);
  const bool counts = std::ranges::all_of(found, [](double one) { return std::isfinite(one); }) &&
                      keeps_constraints(objective_, task_.metrics(), values);
  if (goals_.size() > 1) {
    worker.counts = counts ? std::move(found) : std::vector<double>();
  } else if (counts && (!worker.counts || is_better(found[0], worker.counts->front()))) {
    worker.counts = std::move(found);
  }
}

void VirtualSweep::count(TrialNumber trial, Worker& worker) {
  std::optional<std::vector<double>> values = std::exchange(worker.counts, std::nullopt);
  if (!values) return;
  if (goals_.size() > 1) {
    run_.points.push_back({tune::seconds(now_), ended_, trial, std::move(*values)});
  } else if (run_.best.empty() || is_better(values->front(), run_.best.back().value)) {
    run_.best.push_back({tune::seconds(now_), ended_, values->front()});
  }
}

// The number of trials there may be, so that a table is not asked for more than it has.
void bound_samples(ExperimentSpec& spec, const Task& task) {
  const std::optional<std::uint64_t> most = task.most_trials();
  if (!most) return;
  const auto total_of = [&](std::int64_t samples) {
    spec.options.num_samples = samples;
    return controller_setup(spec, "/virtual").searcher->total();
  };
  const std::int64_t given = spec.options.num_samples;
  if (const auto total = total_of(given); total && *total > *most) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} has {} recorded trials, the sweep asks for {}: give num_samples -1 "
                            "or fewer",
                            task.name(), *most, *total));
  } else if (!total) {
    const std::uint64_t cells = std::max<std::uint64_t>(total_of(1).value_or(1), 1);
    spec.options.num_samples = static_cast<std::int64_t>(*most / cells);
  }
}

}  // namespace

std::optional<double> VirtualRun::best_at(double at_seconds) const {
  std::optional<double> found;
  for (const Best& one : best) {
    if (one.seconds <= at_seconds) found = one.value;
  }
  return found;
}

std::vector<std::vector<double>> VirtualRun::points_at(double at_seconds) const {
  std::map<TrialNumber, const std::vector<double>*> last;
  for (const Point& one : points) {
    if (one.seconds <= at_seconds) last[one.trial] = &one.values;
  }
  std::vector<std::vector<double>> found;
  for (const auto& [trial, values] : last) {
    if (!values->empty()) found.push_back(*values);
  }
  return found;
}

VirtualRun play(const ExperimentSpec& spec, const Task& task, const VirtualOptions& options) {
  if (spec.options.scheduler.make()->replaces()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("playing the sweep on {}: the scheduler {} gives trials the state of "
                            "others, and a recorded curve does not tell how it would go on from "
                            "there: choose another for this",
                            task.name(), spec.options.scheduler.name()));
  }
  ExperimentSpec played = spec;
  played.request = {};  // a CPU, of which there is one a worker
  bound_samples(played, task);
  return VirtualSweep(played, task, options).run();
}

}  // namespace tune
