// The part of the controller that follows running trials: reports, verdicts, checkpoints, ends.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/control/controller.h"
#include "tune/control/key_watch.h"

namespace tune {

// The trial a message speaks of, when that attempt is the one that runs now.
Trial* Controller::current(AgentNumber agent, TrialNumber number, AttemptNumber attempt) {
  if (number.value >= trials_.size()) return nullptr;
  Trial& trial = trials_[number.value];
  const bool live = trial.status == TrialStatus::kRunning && trial.attempt == attempt &&
                    trial.placement->agent == agent;
  return live ? &trial : nullptr;
}

std::set<TrialNumber>* Controller::group_of(const Trial& trial) {
  switch (trial.status) {
    case TrialStatus::kPending:
      return &waiting_;
    case TrialStatus::kRunning:
      return &running_;
    case TrialStatus::kPaused:
      return trial.paused_by_scheduler ? &paused_ : nullptr;
    default:
      return nullptr;
  }
}

void Controller::set_status(Trial& trial, TrialStatus status) {
  TUNE_CHECK(transition_is_legal(trial.status, status));
  if (auto* from = group_of(trial)) from->erase(trial.number);
  --counts_[static_cast<std::size_t>(trial.status)];
  trial.status = status;
  if (status != TrialStatus::kPaused) trial.paused_by_scheduler = false;
  ++counts_[static_cast<std::size_t>(status)];
  if (auto* to = group_of(trial)) to->insert(trial.number);
  tell(TrialChanged{trial});
}

// ---- Reports
// --------------------------------------------------------------------------------------

void Controller::on_agent(AgentNumber agent, const Reported& report) {
  Trial* trial = current(agent, report.trial, report.attempt);
  if (trial == nullptr || (trial->last && report.iteration <= trial->last->iteration)) return;
  trial->last = report;
  trial->metric = ResultView(report).number(objective_.metric);
  metric_was_reported_ = metric_was_reported_ || trial->metric.has_value();

  if (report.iteration > trial->searched) {
    trial->searched = report.iteration;
    searcher_->result(trial->number, report);
  }
  if (report.iteration <= trial->judged) {  // a step done again after a restore
    const bool stopped = report.iteration == trial->judged && trial->verdict == StopKind::kStop;
    tell(ResultRecorded{*trial, report, report.final || stopped});
    if (report.waiting) give_recorded_verdict(*trial);
    return;
  }
  // A last result is not judged. Done again it may not be the last: its time may not be up then.
  if (!report.final) trial->judged = report.iteration;
  const Decision decision =
      report.final ? Decision::go_on(trial->until) : scheduler_->result(trial->number, report);
  const bool stops = decision.kind == Decision::Kind::kStop;
  tell(ResultRecorded{*trial, report, report.final || stops});
  if (!report.final) apply(*trial, decision, report.waiting);
  expect_metric(report);
}

// A scheduler never judges, nor ends, what reports no metric.
void Controller::expect_metric(const Reported& report) {
  if (metric_was_reported_ || objective_.metric.empty()) return;
  const std::optional<double> max_t = scheduler_->max_t();
  if (!max_t || static_cast<double>(report.iteration) < *max_t) return;
  fail_experiment(fmt::format(
      "judging trials by the metric: {}, though a trial is past the scheduler's max_t {:g}; begin "
      "anew with another metric or a trainable that reports it as a number",
      missing_keys({objective_.metric}, report), *max_t));
}

void Controller::apply(Trial& trial, const Decision& decision, bool waiting) {
  if (decision.kind == Decision::Kind::kContinue) {
    trial.until = decision.until;
    if (waiting) send(trial.placement->agent, Continue{trial.number, trial.attempt, trial.until});
    return;
  }
  const bool pauses = decision.kind == Decision::Kind::kPause;
  trial.verdict = pauses ? StopKind::kPause : StopKind::kStop;
  trial.reason = decision.reason;
  send(trial.placement->agent, StopAttempt{trial.number, trial.attempt, *trial.verdict, {}});
}

// A redone step gets the verdict that was given the first time.
void Controller::give_recorded_verdict(Trial& trial) {
  const AgentNumber agent = trial.placement->agent;
  if (trial.verdict) {
    send(agent, StopAttempt{trial.number, trial.attempt, *trial.verdict, {}});
  } else {
    send(agent, Continue{trial.number, trial.attempt, trial.until});
  }
}

// ---- Checkpoints
// ----------------------------------------------------------------------------------

void Controller::on_agent(AgentNumber agent, const CheckpointSaved& saved) {
  Trial* trial = current(agent, saved.trial, saved.attempt);
  if (trial == nullptr) return;
  CheckpointRecord record{saved.iteration, saved.time_total, saved.timesteps_total, std::nullopt};
  if (trial->last && trial->last->iteration == saved.iteration) {
    record.metric = trial->metric;
    trial->at_checkpoint = trial->last;
  } else {
    trial->at_checkpoint.reset();
  }
  std::erase_if(trial->checkpoints,
                [&](const CheckpointRecord& old) { return old.iteration >= saved.iteration; });
  trial->checkpoints.push_back(record);
  retain_checkpoints(*trial);
  tell(TrialChanged{*trial});
}

// Keeps the newest `keep` and the one with the best metric; ties keep the older one.
void Controller::retain_checkpoints(Trial& trial) {
  auto& all = trial.checkpoints;
  const double sign = objective_.mode == Mode::kMax ? 1 : -1;
  std::optional<std::uint64_t> best;
  double best_value = 0;
  for (const CheckpointRecord& record : all) {
    if (!record.metric || !std::isfinite(*record.metric)) continue;
    if (best && sign * *record.metric <= best_value) continue;
    best = record.iteration;
    best_value = sign * *record.metric;
  }
  const std::size_t keep = std::max<std::size_t>(1, experiment_.checkpoint.keep);
  for (std::size_t i = 0; all.size() > keep && i + keep < all.size();) {
    if (best == all[i].iteration) {
      ++i;
      continue;
    }
    effects_.removals.push_back({trial.number, all[i].iteration});
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// ---- Ends
// -----------------------------------------------------------------------------------------

void Controller::on_agent(AgentNumber agent, const AttemptEnded& ended) {
  Trial* trial = current(agent, ended.trial, ended.attempt);
  if (trial == nullptr) return;
  release(*trial);
  const bool leaving = phase_ == Phase::kInterrupting || phase_ == Phase::kEnding;
  // Only an attempt that got to the judged result was told to pause.
  const bool was_told = trial->last && trial->last->iteration == trial->judged;
  const bool cannot_pause = ended.outcome == Outcome::kLost && !leaving && was_told &&
                            trial->verdict == StopKind::kPause;
  if (ended.outcome == Outcome::kCompleted) {
    finish(*trial, TrialEnd::kCompleted);
  } else if (ended.outcome == Outcome::kStopped || trial->verdict == StopKind::kStop ||
             phase_ == Phase::kEnding) {
    // A stop that was decided stands, also when the trial failed while carrying it out.
    if (is_failure(ended.outcome) && phase_ != Phase::kEnding) {
      fail(*trial, ended);
    } else {
      finish(*trial, TrialEnd::kStopped);
    }
  } else if (ended.outcome == Outcome::kPaused) {
    pause(*trial);
  } else if (cannot_pause) {
    AttemptEnded failure = ended;
    failure.outcome = Outcome::kException;
    failure.cause = "the scheduler paused the trial, but it cannot save";
    fail(*trial, failure);
  } else if (ended.outcome == Outcome::kLost || phase_ == Phase::kInterrupting) {
    wait_again(*trial);
  } else {
    fail(*trial, ended);
  }
  fill();
}

void Controller::release(Trial& trial) {
  placer_.release(*trial.placement, request_);
  trial.placement.reset();
}

void Controller::pause(Trial& trial) {
  trial.paused_by_scheduler = trial.verdict == StopKind::kPause;
  trial.verdict.reset();
  set_status(trial, TrialStatus::kPaused);
}

// An attempt ended before it should: the next goes on from the last checkpoint. When that stands
// where the trial ends or pauses, only the attempt's last word was lost, and no step is left to do.
void Controller::wait_again(Trial& trial) {
  set_status(trial, TrialStatus::kPending);
  const bool is_saved = trial.last && !trial.checkpoints.empty() &&
                        trial.checkpoints.back().iteration == trial.last->iteration;
  if (!is_saved) return;
  if (trial.last->final) {
    finish(trial, TrialEnd::kCompleted);
  } else if (trial.last->iteration == trial.judged && trial.verdict == StopKind::kStop) {
    finish(trial, TrialEnd::kStopped);
  } else if (trial.last->iteration == trial.judged && trial.verdict == StopKind::kPause) {
    pause(trial);
  }
}

void Controller::finish(Trial& trial, TrialEnd end) {
  trial.verdict.reset();
  const Reported* last = trial.last ? &*trial.last : nullptr;
  scheduler_->end_trial(trial.number, end, last);
  searcher_->end_trial(trial.number, end, last);
  set_status(trial, end == TrialEnd::kError ? TrialStatus::kError : TrialStatus::kTerminated);
}

void Controller::fail(Trial& trial, const AttemptEnded& ended) {
  ++trial.failures;
  trial.failure =
      Failure{ended.attempt, ended.outcome, ended.rank, ended.code, ended.cause, ended.stderr_tail};
  const bool retried = trial.failures <= max_failures_;
  if (retried) {
    wait_again(trial);
  } else {
    finish(trial, TrialEnd::kError);
  }
  tell(AttemptFailed{trial, retried});
  if (!retried && fail_fast_ && phase_ == Phase::kRunning) {
    notice("a trial failed and fail_fast is set: running trials save and end");
    stop_running(StopKind::kStop, std::chrono::seconds(30), Phase::kEnding);
  }
}

}  // namespace tune
