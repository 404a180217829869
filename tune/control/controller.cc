#include "tune/control/controller.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "core/fitting.h"
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
      space_(std::move(setup.space)),
      searcher_(std::make_unique<NumberedSearcher>(std::move(setup.searcher))),
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
  const std::set<AgentNumber> kept = kept_by(event);
  out_->tell(DriverBegan{event.epoch, !kept.empty()});
  const std::string cause = "the driver before this one has ended";
  std::set<AgentNumber> gone;
  for (AgentNumber agent : nodes_.all()) {
    if (!kept.contains(agent)) gone.insert(agent);
  }
  end_attempts(gone, cause);
  asking_.forget();
  while (!abandoned_.empty()) settle_abandoned(abandoned_.begin()->first);
  for (AgentNumber agent : gone) {
    out_->tell(NodeLeft{agent, nodes_.hello(agent), cause});
    nodes_.leave(agent);
  }
  for (AgentNumber agent : kept) nodes_.set_away(agent);
  if (!kept.empty()) say_who_is_kept(kept);
  unanswered_ = book_.running();
  epoch_ = event.epoch;
  for (const Trial& one : book_.all()) {
    Trial& trial = book_.at(one.number);
    const bool interrupted = trial.status == TrialStatus::kPaused && !trial.paused_by_scheduler &&
                             trial.wish != Wish::kPause;
    const bool again = trial.status == TrialStatus::kError && event.retry_errored;
    if (again) retry(trial);
    if (interrupted || again) wait_again(trial);
  }
  agent_contract_ = event.agent_contract;
  max_failures_ = event.max_failures;
  max_concurrent_trials_ = event.max_concurrent_trials;
  time_budget_ = event.time_budget;
  asks_late_ = event.asks_late;
  nodes_may_join_ = event.nodes_may_join;
  has_pool_ = event.has_pool;
  spreads_groups_ = event.spreads_groups;
  gathers_parts_ = event.gathers_parts;
  take_num_samples(event.num_samples);
  exhausted_ = false;
  failure_.clear();
  phase_ = Phase::kRunning;
  // Without an agent nothing can run, but an experiment in which nothing is left to do is over now.
  settle();
}

// For scheduler and retention alike the trial takes part anew, from where it stood.
void Controller::retry(Trial& trial) {
  trial.failures = 0;
  trial.until = verdicts_.begin(trial.number, trial.config);
  if (trial.replacements == 0) searcher_->resume_trial(trial.number);
}

void Controller::on(const AgentLost& event) {
  if (!nodes_.contains(event.agent)) return;
  const AgentHello& node = nodes_.hello(event.agent);
  const std::string cause = fmt::format("node {} is lost: {}", node.hostname, event.cause);
  out_->notice(cause);
  for (TrialNumber number : book_.running()) {
    const Trial& trial = book_.at(number);
    const bool may_run_on = node.joined && runs_on(trial, event.agent);
    if (may_run_on) abandoned_[event.agent].push_back({number, trial.attempt});
  }
  end_attempts({event.agent}, cause);
  pool_.node_is_lost(node.allocation);
  leave(event.agent, event.cause);
}

// A lost machine may have saved after it was given up: that stands in no record.
void Controller::settle_abandoned(AgentNumber agent) {
  const auto found = abandoned_.find(agent);
  if (found == abandoned_.end()) return;
  for (const LiveAttempt& one : found->second) settle_given_up(one);
  abandoned_.erase(found);
}

void Controller::leave(AgentNumber agent, const std::string& cause) {
  out_->tell(NodeLeft{agent, nodes_.hello(agent), cause});
  nodes_.leave(agent);
  fill();
  if (nodes_may_join_ && !has_pool_ && nodes_.empty() && !is_over()) {
    out_->notice("no node is there: trials wait for one to join");
  }
}

void Controller::say_that_trials_wait(const std::string& why) {
  if (nodes_may_join_ && !has_pool_) warn(why + ": trials wait for a node to join");
}

// Ends attempts whose processes are gone with their agents, or are nobody's any more.
void Controller::end_attempts(const std::set<AgentNumber>& of, const std::string& cause) {
  for (TrialNumber number : std::set(book_.running())) lose_parts(book_.at(number), of, cause);
}

void Controller::lose(Trial& trial, const std::string& cause) {
  const AttemptEnded lost{trial.number, trial.attempt, Outcome::kLost, 0, 0, cause, {}, true};
  out_->tell(AttemptOver{trial, lost});
  asking_.attempt_lost(trial.number);
  show_health(trial, Ending::kLost);
  out_->settle(trial.number, trial.attempt);
  trial.placement.reset();
  unanswered_.erase(trial.number);
  wait_again(trial);
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

// An answer that nobody asked for, as of a question before a restart, changes nothing.
void Controller::on(const Proposed& event) {
  if (!asking_.answered(event.question, event.took)) return;
  try {
    if (!event.error.empty()) throw Error(ErrorCode::kBadInput, event.error);
    searcher_->answer(event.answer.bytes);
  } catch (const std::exception& error) {
    return fail_experiment(fmt::format("asking the searcher for configurations: {}", error.what()));
  }
  if (searcher_->ready().value_or(0) == 0) exhausted_ = true;
  fill();
}

// ---- The pool

void Controller::on(const AllocationChanged& event) {
  pool_.change(event, now_);
  out_->tell(AllocationTold{event});
}

void Controller::on(const PoolOrdered& event) {
  pool_.order(event);
  out_->tell(PoolTold{event});
}

std::uint64_t Controller::wanted() const {
  if (phase_ != Phase::kRunning) return 0;
  std::uint64_t count = book_.waiting().size();
  if (has_more()) {
    const std::optional<std::uint64_t> total = searcher_->total();
    count += total ? *total - book_.next_number().value : kNoEnd;
  }
  const std::uint64_t running = book_.running().size();
  // Only a node can show whether one of the paused trials goes on.
  if (count == 0 && running == 0 && !book_.paused().empty()) count = 1;
  if (max_concurrent_trials_ > 0) {
    count = std::min(
        count, max_concurrent_trials_ - std::min<std::uint64_t>(running, max_concurrent_trials_));
  }
  return std::min(count, kNoEnd);
}

void Controller::stop_running(StopKind kind, Phase phase) {
  phase_ = phase;
  for (TrialNumber number : book_.running()) {
    const Trial& trial = book_.at(number);
    // A trial whose end was already decided only gets the deadline.
    const bool ends = trial.verdict.value_or(kind) == StopKind::kStop || trial.wish == Wish::kStop;
    const StopKind own = ends ? StopKind::kStop : kind;
    tell_lead(trial, StopAttempt{trial.number, trial.attempt, own, save_grace_});
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
  if (lacks_words(event)) {
    give_up_what_runs(event.agent, "what its machine told is lost with the end of the journal");
  }
  std::visit([&](const auto& what) { on_agent(event.agent, what); }, event.event);
  if (nodes_.contains(event.agent)) nodes_.set_heard(event.agent, event.number);
}

void Controller::on_agent(AgentNumber agent, const AgentHello& hello) {
  if (nodes_.contains(agent)) return come_back(agent, hello);
  // Where experiments share keys, the next one may listen where the last one did.
  if (!hello.experiment.empty() && hello.experiment != experiment_.experiment_id) {
    return out_->send(agent, Shutdown{"another experiment has taken the place of its own", true});
  }
  if (hello.epoch != 0 && hello.epoch != epoch_) return;  // it has greeted this driver as well
  if (hello.contract != agent_contract_) {
    if (hello.joined) return;  // it was refused by its connection
    return fail_experiment(fmt::format(
        "node {} speaks version {} of the agent contract, this driver version {}: install the same "
        "version of tune on both",
        hello.hostname, hello.contract, agent_contract_));
  }
  out_->tell(NodeJoined{agent, nodes_.join(agent, hello, now_)});
  if (hello.joined) pool_.node_has_joined(hello.allocation);
  if (!hello.gpus.empty() && request_.gpu_units == 0) {
    out_->notice(
        fmt::format("{} GPUs present on {} but trials ask for none: set resources_per_trial gpu",
                    hello.gpus.size(), hello.hostname));
  }
  const std::string never = why_never_on(resources_of(hello), request_);
  const bool is_to_hold_none = has_pool_ && !hello.joined;  // the pool's driver runs no trials
  const bool holds_none = !never.empty() && !holds_part(resources_of(hello), request_);
  if (nodes_may_join_ && !is_to_hold_none && holds_none) {
    out_->notice(fmt::format("node {} can hold no trial: {}", hello.hostname, never));
  }
  out_->send(agent, experiment_);
  if (hello.live.empty()) return;
  await_end_of(agent, hello.live);  // none is to be kept
  nodes_.set_away(agent);
}

void Controller::on_agent(AgentNumber agent, const ZygoteReady& ready) {
  if (!nodes_.contains(agent) || nodes_.is_ready(agent)) return;
  const WantedTrainable wanted{experiment_.trainable, plugin_, experiment_.checkpoint.frequency,
                               verdicts_.scheduler().pauses(), verdicts_.scheduler().replaces()};
  if (const auto complaints = complaints_about(ready, wanted); !complaints.empty()) {
    const AgentHello& hello = nodes_.hello(agent);
    const bool is_guest = hello.joined && !hello.own;
    if (is_guest) return exclude(agent, complaint_lines("", complaints));
    return fail_experiment(complaint_lines("", complaints));
  }
  if (!ready.note.empty()) out_->notice(ready.note);
  const auto info =
      std::ranges::find(ready.trainables, experiment_.trainable, &TrainableInfo::name);
  can_save_ = info->can_save;
  if (!can_save_ && !info->is_function) say_once_that_nothing_is_saved(info->name);
  nodes_.set_ready(agent);
  if (ready.relays) nodes_.set_carries(agent);
  const bool is_apart = ready.relays && !gathers_parts_;
  if (!is_apart && spreads_groups_) nodes_.let_share(agent);
  const AgentHello& node = nodes_.hello(agent);
  const std::string never = why_never_on(resources_of(node), request_);
  if (never.empty() || (nodes_.shares(agent) && holds_part(resources_of(node), request_))) {
    pool_.node_is_ready(node.allocation);
  }
  if (is_apart && !never.empty() && holds_part(resources_of(node), request_)) {
    out_->notice(fmt::format("node {} can hold no trial: {}; and it takes no part in groups over "
                             "several nodes, as it {}",
                             node.hostname, never,
                             experiment_.objects.is_given()
                                 ? "keeps checkpoints in an object store"
                                 : "does not see the experiment's folder"));
  }
  if (const std::string holder = nodes_.holder_of_its_gpus(agent); !holder.empty()) {
    out_->notice(
        fmt::format("node {} waits: its GPUs are promised to {}, which is not known to be "
                    "gone",
                    nodes_.hello(agent).hostname, holder));
  }
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
  warn(warning.text);
}

void Controller::warn(const std::string& text) {
  constexpr std::size_t kMaxKept = 1000;
  if (warnings_.contains(text)) return;
  if (warnings_.size() < kMaxKept) warnings_.insert(text);
  out_->notice(text);
}

// Attempts that run there go on.
void Controller::on_agent(AgentNumber agent, const NodeOut& out) {
  if (out.gone) settle_abandoned(agent);
  if (!nodes_.contains(agent)) return;
  if (!nodes_.is_out(agent) && !out.cause.empty()) {
    out_->notice(
        fmt::format("node {} starts no more trials: {}", nodes_.hello(agent).hostname, out.cause));
    nodes_.set_out(agent, out.cause);
    if (!out.gone) fill();
  }
  if (!out.gone) return;
  pool_.node_has_left(nodes_.hello(agent).allocation);
  end_attempts({agent}, out.cause);  // it told the ends of all that it knew of
  leave(agent, out.cause);
}

// A node that joined and cannot take part costs the experiment nothing but that node.
void Controller::exclude(AgentNumber agent, const std::string& why) {
  out_->notice(fmt::format("node {} takes no part: {}", nodes_.hello(agent).hostname, why));
  nodes_.set_out(agent, why);
  out_->send(agent, Shutdown{why});
  fill();
}

// ---- Reports

void Controller::on_agent(AgentNumber agent, const Reported& report) {
  Trial* trial = book_.current(agent, report.trial, report.attempt);
  if (trial == nullptr || (trial->last && report.iteration <= trial->last->iteration)) return;
  unanswered_.erase(trial->number);
  if (trial->verdict == StopKind::kLeave) return;  // of the state that it has given up
  const bool shows_health =
      !has_reported(*trial) && !health_.is_fine() && trial->placement->nodes == 1;
  if (shows_health) {
    tell(health_.attempt_reported(trial->number, nodes_.places_of(*trial->placement), now_));
  }
  book_.take_result(*trial, report);
  metric_was_reported_ = metric_was_reported_ || book_.has_a_metric(report);
  if (report.iteration > trial->searched) {
    trial->searched = report.iteration;
    // The values of a replaced trial are not those that the searcher proposed.
    if (trial->replacements == 0) searcher_->result(trial->number, report);
  }
  Verdicts::Ruling ruling =
      verdicts_.rule(*trial, report, verdicts_.scheduler().pauses() && others_wait());
  out_->tell(ResultRecorded{*trial, report, ruling.done});
  if (ruling.place) out_->tell(RungReached{*trial, report.iteration, *ruling.place, ruling.kind});
  if (ruling.given) out_->tell(VerdictGiven{*trial, report.iteration, *ruling.given});
  if (ruling.replaced) ruling.answer = replace(*trial, *ruling.replaced, report.waiting);
  if (ruling.answer) out_->send(agent, std::move(*ruling.answer));
  if (ruling.is_first) expect_metric(report);
  // A place may be open again; or a paused trial may go on after the decision on this one.
  if (shows_health || (ruling.given && !book_.paused().empty())) fill();
}

// A scheduler never judges, nor ends, a trial that reports no metric. Where there are several, one
// of them is enough to go on: trials that lack another are ended at max_t.
void Controller::expect_metric(const Reported& report) {
  if (metric_was_reported_) return;
  const std::optional<double> max_t = verdicts_.scheduler().max_t();
  if (!max_t || static_cast<double>(report.iteration) < *max_t) return;
  const std::vector<std::string> missing = book_.missing_metrics(report);
  if (missing.empty()) return;  // there is none, say
  fail_experiment(fmt::format(
      "judging trials by the metric: {}, though a trial is past the scheduler's max_t {:g}; begin "
      "anew with another metric or a trainable that reports it as a number",
      missing_keys(missing, report), *max_t));
}

void Controller::on_agent(AgentNumber agent, const CheckpointSaved& saved) {
  Trial* trial = book_.current(agent, saved.trial, saved.attempt);
  if (trial == nullptr) return;
  if (saved.storing != CheckpointSaved::Storing::kStored) {
    return book_.expect_checkpoint(*trial, saved);
  }
  if (trial->verdict == StopKind::kLeave) {  // of the state that it has given up
    return out_->remove(trial->number, {saved.iteration, saved.attempt});
  }
  book_.take_checkpoint(*trial, saved);
  verdicts_.checkpoint_saved(trial->number, saved.iteration);
}

// ---- Ends of attempts

// One node's part of a group may be over before the others'.
void Controller::on_agent(AgentNumber agent, const AttemptEnded& ended) {
  if (Trial* trial = book_.current(agent, ended.trial, ended.attempt)) {
    Placement& placement = *trial->placement;
    nodes_.release_part(placement.lead(), placement.nodes);
    placement.lead_has_ended = true;
    ended_[trial->number] = {ended};
    end_what_is_left(*trial);
  } else if (Trial* one = book_.current_part(agent, ended.trial, ended.attempt)) {
    part_has_ended(*one, agent, ended);
  } else {
    return abandoned_has_ended(agent, ended);
  }
  fill();
}

// The attempt is over on every node, and each has its resources again.
void Controller::conclude(Trial& trial) {
  const auto [ended, is_lost] = std::move(ended_.extract(trial.number).mapped());
  // Parts of a checkpoint that was never whole may be left.
  if (trial.placement->nodes > 1) out_->settle(trial.number, trial.attempt);
  if (is_lost) return lose(trial, ended.cause);
  const Leaving leaving = phase_ == Phase::kInterrupting ? Leaving::kForNow
                          : phase_ == Phase::kEnding     ? Leaving::kForGood
                                                         : Leaving::kNo;
  const Ending ending = ending_of(trial, ended.outcome, leaving, ended.is_of_node);
  show_health(trial, ending);
  if (ending == Ending::kCannotPause) {
    AttemptEnded failure = ended;
    failure.outcome = Outcome::kException;
    failure.cause = "the scheduler paused the trial, but it cannot save";
    conclude(trial, Ending::kFailed, failure);
  } else {
    conclude(trial, ending, ended);
  }
}

void Controller::conclude(Trial& trial, Ending ending, const AttemptEnded& ended) {
  out_->tell(AttemptOver{trial, ended});
  asking_.attempt_ended(trial.number, now_);
  unanswered_.erase(trial.number);
  const bool elsewhere = ending == Ending::kFailed && tries_elsewhere(trial);
  const bool is_kept = agent_contract_ >= kKeepsCheckpoints && ending == Ending::kPaused &&
                       trial.placement->nodes == 1 && nodes_.carries(trial.placement->agent);
  trial.home.reset();
  if (is_kept) trial.home = trial.placement->agent;
  trial.placement.reset();
  switch (ending) {
    case Ending::kCompleted:
      return finish(trial, TrialEnd::kCompleted);
    case Ending::kStopped:
      return finish(trial, TrialEnd::kStopped);
    case Ending::kPaused:
      return pause(trial);
    case Ending::kLost:
    case Ending::kReplaced:
      return wait_again(trial);
    case Ending::kFailed:
    case Ending::kCannotPause:
      return fail(trial, ended, elsewhere);
  }
}

// For an attempt that ended well, or without any fault.
void Controller::show_health(const Trial& trial, Ending ending) {
  if (trial.placement->nodes > 1) return;  // it does not tell which of them is to blame
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
  if (has_reported(trial) || trial.placement->nodes > 1) return false;
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
  if (trial.verdict == StopKind::kLeave) trial.verdict.reset();  // it has left
  book_.set_status(trial, TrialStatus::kPending);
  const Owed owed = Verdicts::owed(trial);
  if (owed == Owed::kCompletion) return finish(trial, TrialEnd::kCompleted);
  if (owed == Owed::kStop || trial.wish == Wish::kStop) return finish(trial, TrialEnd::kStopped);
  if (trial.wish == Wish::kPause) return hold(trial);
  if (owed == Owed::kPause) pause(trial);
}

void Controller::pause(Trial& trial) {
  if (trial.wish == Wish::kPause) return hold(trial);
  book_.pause(trial);
  const bool is_as_proposed = trial.replacements == 0;
  if (trial.paused_by_scheduler && is_as_proposed) searcher_->pause_trial(trial.number);
}

void Controller::finish(Trial& trial, TrialEnd end) {
  health_.forget(trial.number);
  trial.was_stopped = end == TrialEnd::kStopped;
  if (book_.held().contains(trial.number)) {
    trial.verdict.reset();  // it has left its scheduler
  } else {
    verdicts_.end(trial, end);
  }
  if (trial.replacements == 0) {
    searcher_->end_trial(trial.number, end, trial.last ? &*trial.last : nullptr);
    if (trial.is_added) searcher_->end_added(trial, end);
  }
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

}  // namespace tune
