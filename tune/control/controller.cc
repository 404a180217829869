#include "tune/control/controller.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/control/attempt_end.h"
#include "tune/control/key_watch.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

// Whether the trial's newest attempt has reported.
bool has_reported(const Trial& trial) {
  return trial.last && trial.last->attempt == trial.attempt;
}

}  // namespace

Controller::Controller(ControllerSetup setup)
    : experiment_(std::move(setup.experiment)),
      plugin_(std::move(setup.plugin)),
      request_(setup.request),
      objective_(std::move(setup.objective)),
      seed_(setup.seed),
      fail_fast_(setup.fail_fast),
      save_grace_(setup.save_grace),
      searcher_(std::move(setup.searcher)),
      nodes_(request_),
      book_(*out_, objective_, experiment_.checkpoint.keep),
      verdicts_(std::move(setup.scheduler)),
      health_(setup.probe_after) {}

Effects Controller::handle(ExperimentTime now, const Event& event, const Sink& sink) {
  TUNE_CHECK(now >= now_);
  now_ = now;
  out_->open(sink);
  std::visit([this](const auto& what) { on(what); }, event);
  return out_->close();
}

std::optional<ExperimentTime> Controller::next_deadline() const {
  if (phase_ != Phase::kRunning) return std::nullopt;
  std::optional<ExperimentTime> next = health_.next_probe(now_);
  if (time_budget_ > Duration{}) next = std::min(next.value_or(time_budget_), time_budget_);
  return next;
}

bool Controller::is_over() const {
  return phase_ == Phase::kFinished || phase_ == Phase::kInterrupted || phase_ == Phase::kFailed;
}

// ---- Drivers and deadlines

void Controller::on(const DriverStarted& event) {
  out_->tell(DriverBegan{event.epoch});
  const std::string cause = "the driver before this one has ended";
  end_attempts(std::nullopt, cause);
  for (AgentNumber agent : nodes_.all()) {
    out_->tell(NodeLeft{agent, nodes_.hello(agent), cause});
  }
  nodes_.clear();
  for (const Trial& one : book_.all()) {
    Trial& trial = book_.at(one.number);
    const bool interrupted = trial.status == TrialStatus::kPaused && !trial.paused_by_scheduler;
    const bool again = trial.status == TrialStatus::kError && event.retry_errored;
    if (again) retry(trial);
    if (interrupted || again) wait_again(trial);
  }
  agent_contract_ = event.agent_contract;
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

// For scheduler and retention alike the trial takes part anew, from where it stood.
void Controller::retry(Trial& trial) {
  trial.failures = 0;
  trial.until = verdicts_.begin(trial.number);
}

void Controller::on(const AgentLost& event) {
  if (!nodes_.contains(event.agent)) return;
  const AgentHello& node = nodes_.hello(event.agent);
  const std::string cause = fmt::format("node {} is lost: {}", node.hostname, event.cause);
  out_->notice(cause);
  end_attempts(event.agent, cause);
  out_->tell(NodeLeft{event.agent, node, event.cause});
  nodes_.leave(event.agent);
  fill();
}

// Ends attempts whose processes are gone with their agent, or with the driver that had them all.
void Controller::end_attempts(std::optional<AgentNumber> of, const std::string& cause) {
  for (TrialNumber number : std::set(book_.running())) {
    Trial& trial = book_.at(number);
    if (of && trial.placement->agent != *of) continue;
    const AttemptEnded lost{trial.number, trial.attempt, Outcome::kLost, 0, 0, cause, {}};
    out_->tell(AttemptOver{trial, lost});
    show_health(trial, Ending::kLost);
    out_->settle(trial.number, trial.attempt);
    trial.placement.reset();
    wait_again(trial);
  }
}

void Controller::on(const DeadlineReached&) {
  if (phase_ != Phase::kRunning) return;
  if (time_budget_ == Duration{} || now_ < time_budget_) return fill();  // a probe may be due
  const double seconds = std::chrono::duration<double>(time_budget_).count();
  out_->notice(
      fmt::format("the time budget of {} s is spent: running trials save and end", seconds));
  stop_running(StopKind::kStop, Phase::kEnding);
}

void Controller::on(const InterruptRequested&) {
  if (is_over() || phase_ == Phase::kInterrupting) return;
  stop_running(StopKind::kPause, Phase::kInterrupting);
}

void Controller::stop_running(StopKind kind, Phase phase) {
  phase_ = phase;
  for (TrialNumber number : book_.running()) {
    const Trial& trial = book_.at(number);
    // A trial whose end was already decided only gets the deadline.
    const StopKind own = trial.verdict.value_or(kind) == StopKind::kStop ? StopKind::kStop : kind;
    out_->send(trial.placement->agent, StopAttempt{trial.number, trial.attempt, own, save_grace_});
  }
  settle();
}

void Controller::fail_experiment(std::string why) {
  if (is_over()) return;
  failure_ = std::move(why);
  end_experiment(Phase::kFailed);
}

void Controller::end_experiment(Phase phase) {
  phase_ = phase;
  const char* how = phase == Phase::kFinished      ? "finished"
                    : phase == Phase::kInterrupted ? "interrupted"
                                                   : "failed";
  out_->tell(ExperimentOver{how, failure_});
}

// ---- Agents

void Controller::on(const FromAgent& event) {
  std::visit([&](const auto& what) { on_agent(event.agent, what); }, event.event);
}

void Controller::on_agent(AgentNumber agent, const AgentHello& hello) {
  if (nodes_.contains(agent)) return;  // the same agent after a reconnect: its attempts stand
  if (hello.contract != agent_contract_) {
    return fail_experiment(fmt::format(
        "node {} speaks version {} of the agent contract, this driver version {}: install the same "
        "version of tune on both",
        hello.hostname, hello.contract, agent_contract_));
  }
  out_->tell(NodeJoined{agent, nodes_.join(agent, hello)});
  if (!hello.gpus.empty() && request_.gpu_units == 0) {
    out_->notice(
        fmt::format("{} GPUs present on {} but trials ask for none: set resources_per_trial gpu",
                    hello.gpus.size(), hello.hostname));
  }
  out_->send(agent, experiment_);
}

void Controller::on_agent(AgentNumber agent, const ZygoteReady& ready) {
  if (!nodes_.contains(agent)) return;
  const WantedTrainable wanted{experiment_.trainable, plugin_, experiment_.checkpoint.frequency,
                               verdicts_.scheduler().pauses()};
  if (const auto complaints = complaints_about(ready, wanted); !complaints.empty()) {
    return fail_experiment(complaint_lines("", complaints));
  }
  if (!ready.note.empty()) out_->notice(ready.note);
  const auto info =
      std::ranges::find(ready.trainables, experiment_.trainable, &TrainableInfo::name);
  can_save_ = info->can_save;
  if (!can_save_ && !info->is_function) say_once_that_nothing_is_saved(info->name);
  nodes_.set_ready(agent);
  fill();
}

void Controller::say_once_that_nothing_is_saved(const std::string& trainable) {
  if (std::exchange(save_notice_given_, true)) return;
  out_->notice(fmt::format(
      "{} has no save and load: a trial that is started again begins at step 1", trainable));
}

void Controller::on_agent(AgentNumber agent, const AttemptStarted& started) {
  Trial* trial = book_.current(agent, started.trial, started.attempt);
  if (trial == nullptr) return;
  const AgentHello& node = nodes_.hello(agent);
  trial->location = fmt::format("{}:{}", node.ip, started.pid);
  out_->tell(TrialChanged{*trial});
  const bool is_restored = !trial->checkpoints.empty();
  out_->tell(
      AttemptBegan{*trial, node.hostname, is_restored ? trial->checkpoints.back().iteration : 0});
}

// Many trials may say the same: it is shown once.
void Controller::on_agent(AgentNumber, const Warning& warning) {
  constexpr std::size_t kMaxKept = 1000;
  if (warnings_.contains(warning.text)) return;
  if (warnings_.size() < kMaxKept) warnings_.insert(warning.text);
  out_->notice(warning.text);
}

// Attempts that run there go on.
void Controller::on_agent(AgentNumber agent, const NodeOut& out) {
  if (!nodes_.contains(agent) || nodes_.is_out(agent)) return;
  out_->notice(
      fmt::format("node {} starts no more trials: {}", nodes_.hello(agent).hostname, out.cause));
  nodes_.set_out(agent, out.cause);
  fill();
}

// ---- Reports

void Controller::on_agent(AgentNumber agent, const Reported& report) {
  Trial* trial = book_.current(agent, report.trial, report.attempt);
  if (trial == nullptr || (trial->last && report.iteration <= trial->last->iteration)) return;
  const bool shows_health = !has_reported(*trial) && !health_.is_fine();
  if (shows_health) {
    tell(health_.attempt_reported(trial->number, nodes_.places_of(*trial->placement), now_));
  }
  book_.take_result(*trial, report);
  metric_was_reported_ = metric_was_reported_ || trial->metric.has_value();
  if (report.iteration > trial->searched) {
    trial->searched = report.iteration;
    searcher_->result(trial->number, report);
  }
  Verdicts::Ruling ruling = verdicts_.rule(*trial, report);
  out_->tell(ResultRecorded{*trial, report, ruling.done});
  if (ruling.given) out_->tell(VerdictGiven{*trial, report.iteration, *ruling.given});
  if (ruling.answer) out_->send(agent, std::move(*ruling.answer));
  if (ruling.is_first) expect_metric(report);
  // A place may be open again; or a paused trial may go on after the decision on this one.
  if (shows_health || (ruling.given && !book_.paused().empty())) fill();
}

// A scheduler never judges, nor ends, a trial that reports no metric.
void Controller::expect_metric(const Reported& report) {
  if (metric_was_reported_ || objective_.metric.empty()) return;
  const std::optional<double> max_t = verdicts_.scheduler().max_t();
  if (!max_t || static_cast<double>(report.iteration) < *max_t) return;
  fail_experiment(fmt::format(
      "judging trials by the metric: {}, though a trial is past the scheduler's max_t {:g}; begin "
      "anew with another metric or a trainable that reports it as a number",
      missing_keys({objective_.metric}, report), *max_t));
}

void Controller::on_agent(AgentNumber agent, const CheckpointSaved& saved) {
  if (Trial* trial = book_.current(agent, saved.trial, saved.attempt)) {
    book_.take_checkpoint(*trial, saved);
  }
}

// ---- Ends of attempts

void Controller::on_agent(AgentNumber agent, const AttemptEnded& ended) {
  Trial* trial = book_.current(agent, ended.trial, ended.attempt);
  if (trial == nullptr) return;
  const Leaving leaving = phase_ == Phase::kInterrupting ? Leaving::kForNow
                          : phase_ == Phase::kEnding     ? Leaving::kForGood
                                                         : Leaving::kNo;
  const Ending ending = ending_of(*trial, ended.outcome, leaving);
  show_health(*trial, ending);
  if (ending == Ending::kCannotPause) {
    AttemptEnded failure = ended;
    failure.outcome = Outcome::kException;
    failure.cause = "the scheduler paused the trial, but it cannot save";
    conclude(*trial, Ending::kFailed, failure);
  } else {
    conclude(*trial, ending, ended);
  }
  fill();
}

void Controller::conclude(Trial& trial, Ending ending, const AttemptEnded& ended) {
  out_->tell(AttemptOver{trial, ended});
  const bool elsewhere = ending == Ending::kFailed && tries_elsewhere(trial);
  nodes_.release(*trial.placement);
  trial.placement.reset();
  switch (ending) {
    case Ending::kCompleted:
      return finish(trial, TrialEnd::kCompleted);
    case Ending::kStopped:
      return finish(trial, TrialEnd::kStopped);
    case Ending::kPaused:
      return book_.pause(trial);
    case Ending::kLost:
      return wait_again(trial);
    case Ending::kFailed:
    case Ending::kCannotPause:
      return fail(trial, ended, elsewhere);
  }
}

// For an attempt that ended well, or without any fault.
void Controller::show_health(const Trial& trial, Ending ending) {
  if (has_reported(trial) || ending == Ending::kFailed || ending == Ending::kCannotPause) return;
  const DeviceHealth::Places places = nodes_.places_of(*trial.placement);
  if (ending == Ending::kCompleted) {
    tell(health_.attempt_reported(trial.number, places, now_));
  } else {
    health_.attempt_ended(places);
  }
}

// Whether the place may be to blame for this attempt's failure.
bool Controller::tries_elsewhere(const Trial& trial) {
  if (has_reported(trial)) return false;
  const DeviceHealth::Places places = nodes_.places_of(*trial.placement);
  DeviceHealth::Names avoided = health_.set_aside();
  avoided.insert(places.begin(), places.end());
  return health_.attempt_failed(trial.number, places, nodes_.could_hold(avoided), now_);
}

void Controller::tell(const DeviceHealth::Findings& findings) {
  for (const std::string& place : findings.set_aside) {
    out_->tell(PlaceSetAside{place});
    out_->notice(fmt::format(
        "{} is set aside: {} trials failed there before their first report and ran elsewhere; "
        "now and then one is tried there again",
        place, DeviceHealth::kBlamesToSetAside));
  }
  for (const std::string& place : findings.taken_back) {
    out_->tell(PlaceTakenBack{place});
    out_->notice(fmt::format("{} works again: trials are placed there as before", place));
  }
}

// An attempt ended too early: the next goes on from the last checkpoint, unless the trial's verdict
// is carried out already.
void Controller::wait_again(Trial& trial) {
  book_.set_status(trial, TrialStatus::kPending);
  switch (Verdicts::owed(trial)) {
    case Owed::kNothing:
      return;
    case Owed::kCompletion:
      return finish(trial, TrialEnd::kCompleted);
    case Owed::kStop:
      return finish(trial, TrialEnd::kStopped);
    case Owed::kPause:
      return book_.pause(trial);
  }
}

void Controller::finish(Trial& trial, TrialEnd end) {
  health_.forget(trial.number);
  verdicts_.end(trial, end);
  searcher_->end_trial(trial.number, end, trial.last ? &*trial.last : nullptr);
  book_.finish(trial, end == TrialEnd::kError ? TrialStatus::kError : TrialStatus::kTerminated);
}

void Controller::fail(Trial& trial, const AttemptEnded& ended, bool elsewhere) {
  if (!elsewhere) ++trial.failures;
  trial.failure =
      Failure{ended.attempt, ended.outcome, ended.rank, ended.code, ended.cause, ended.stderr_tail};
  const bool retried = elsewhere || trial.failures <= max_failures_;
  if (retried) {
    wait_again(trial);
  } else {
    finish(trial, TrialEnd::kError);
  }
  out_->tell(AttemptFailed{trial, retried});
  if (tune::is_over(trial.status)) TrialBook::shorten_failure(trial);
  if (!retried && fail_fast_ && phase_ == Phase::kRunning) {
    out_->notice("a trial failed and fail_fast is set: running trials save and end");
    stop_running(StopKind::kStop, Phase::kEnding);
  }
}

// ---- The next trials

// Launches the next trials while there is room. The order is strict, no trial passes another; but
// trials that are to be tried on another place have had their turn, and only wait for that place.
void Controller::fill() {
  // The events of a turn go before the deadline that is reached in it: no trial begins between
  // them.
  const bool budget_is_spent = time_budget_ > Duration{} && now_ >= time_budget_;
  if (!budget_is_spent) {
    launch_second_tries();
    while (phase_ == Phase::kRunning && launch_next()) continue;
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

bool Controller::launch_next() {
  TrialBook::Numbers others;
  const TrialBook::Numbers* waiting = &book_.waiting();
  if (!health_.second_tries().empty()) {
    std::ranges::copy_if(*waiting, std::inserter(others, others.end()), [&](TrialNumber trial) {
      return !health_.second_tries().contains(trial);
    });
    waiting = &others;
  }
  if (waiting->empty() && create_trial()) others.insert(book_.all().back().number);
  if (!has_room_for_another() || (waiting->empty() && book_.paused().empty())) return false;
  std::optional<Placement> placement = place_next();
  if (!placement) return false;
  const std::optional<TrialNumber> next = choose_next(*waiting);
  if (!next) {
    nodes_.release(*placement);
    return false;
  }
  launch(book_.at(*next), std::move(*placement));
  return true;
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
  if (!never.empty()) fail_experiment("placing a trial: " + never);
  return std::nullopt;
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
  book_.add(pack(*config), verdicts_.begin(number));
  return true;
}

std::optional<TrialNumber> Controller::choose_next(const TrialBook::Numbers& waiting) {
  const TrialScheduler& scheduler = verdicts_.scheduler();
  const Candidates candidates(waiting, book_.paused(), scheduler.resumed_first());
  const std::optional<TrialNumber> chosen = scheduler.choose(candidates);
  if (chosen && !candidates.contains(*chosen)) return std::nullopt;
  // A scheduler that chooses no trial while nothing runs would wait for ever.
  if (!chosen && book_.running().empty() && !waiting.empty()) return *waiting.begin();
  return chosen;
}

void Controller::launch(Trial& trial, Placement placement) {
  const std::uint64_t restored = book_.cut_to_checkpoint(trial);
  if (trial.status == TrialStatus::kPaused) verdicts_.resume(trial);
  const AgentNumber agent = placement.agent;
  health_.attempt_began(nodes_.places_of(placement));
  book_.begin_attempt(trial, std::move(placement));

  Launch command;
  command.trial = trial.number;
  command.attempt = trial.attempt;
  command.config = trial.config;
  command.seed = RandomStream(seed_, "trial", trial.number.value).next();
  command.ranks = static_cast<std::uint32_t>(request_.ranks);
  command.cpu_units = request_.cpu_units;
  command.gpus = trial.placement->gpus;
  command.restore_iteration = restored;
  if (restored > 0) {
    command.restore_attempt = trial.checkpoints.back().attempt;
    command.time_total = trial.checkpoints.back().time_total;
    command.timesteps_total = trial.checkpoints.back().timesteps_total.value_or(0);
  }
  command.until = Verdicts::until(trial);
  out_->send(agent, std::move(command));
}

// Finds out whether the experiment is over after this event. When nothing else can run, paused
// trials are over; when it ends early, trials that never started are over as well.
void Controller::settle() {
  if (is_over() || !book_.running().empty()) return;
  if (phase_ == Phase::kInterrupting) {
    return end_experiment(Phase::kInterrupted);
  }
  if (phase_ == Phase::kRunning) {
    if (book_.waiting().empty()) create_trial();
    if (is_stranded()) {
      failure_ = "running trials: no node is left that could start one; " + nodes_.why_out();
      return end_experiment(Phase::kInterrupted);
    }
    if (!book_.waiting().empty()) return;
    if (!book_.paused().empty() && (nodes_.empty() || !nodes_.all_are_ready())) return;
  }
  for (const TrialBook::Numbers* left : {&book_.paused(), &book_.waiting()}) {
    for (TrialNumber number : std::set(*left)) finish(book_.at(number), TrialEnd::kStopped);
  }
  end_experiment(Phase::kFinished);
}

// Trials are left, and only nodes that start no more of them could hold one.
bool Controller::is_stranded() const {
  if (nodes_.why_out().empty() || !nodes_.all_are_ready()) return false;
  return !(book_.waiting().empty() && book_.paused().empty()) && !nodes_.could_hold({});
}

}  // namespace tune
