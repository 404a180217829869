#include "simulator/simulated_schedulers.h"

#include <set>

#include <fmt/format.h>

#include "core/wire.h"
#include "simulator/violation.h"

namespace tune::simulator {

namespace {

constexpr const char* kTime = "training_iteration";
constexpr const char* kOnceInOrder = "the scheduler sees each (trial, iteration) once, in order";

}  // namespace

// ---- PausingScheduler ---------------------------------------------------------------------------

Milestone PausingScheduler::add_trial(TrialNumber trial) {
  turns_[trial] = {trial, static_cast<double>(every_)};
  return {kTime, turns_[trial].until};
}

Decision PausingScheduler::result(TrialNumber trial, const ResultView& result) {
  Turn& turn = turns_.at(trial);
  if (static_cast<double>(result.iteration()) < turn.until) {
    return Decision::go_on({kTime, turn.until});
  }
  const double value = result.number(objective_.metric).value_or(0);
  turn.is_hopeless = turn.until > every_ && value < 0.1;
  return Decision::pause("its turn is over");
}

Milestone PausingScheduler::resume_trial(TrialNumber trial) {
  turns_.at(trial).until += every_;
  return {kTime, turns_.at(trial).until};
}

void PausingScheduler::end_trial(TrialNumber trial, TrialEnd, const Reported*) {
  turns_.erase(trial);
}

std::optional<TrialNumber> PausingScheduler::choose(const Candidates& candidates) const {
  for (const Candidate& candidate : candidates.list()) {
    if (!candidate.paused || !turns_.at(candidate.trial).is_hopeless) return candidate.trial;
  }
  return std::nullopt;
}

std::string PausingScheduler::save() const {
  std::vector<Turn> turns;
  for (const auto& [trial, turn] : turns_) turns.push_back(turn);
  return encoded(turns);
}

void PausingScheduler::restore(std::string_view state) {
  turns_.clear();
  for (const Turn& turn : decoded<std::vector<Turn>>(state)) turns_[turn.trial] = turn;
}

// ---- WatchedScheduler ---------------------------------------------------------------------------

WatchedScheduler::Seen& WatchedScheduler::seen(TrialNumber trial, const char* by) {
  if (trial.value >= trials_.size() || trials_[trial.value].ended) {
    violate(kOnceInOrder,
            fmt::format("{} of trial {}, which was never added or has ended", by, trial.value));
  }
  return trials_[trial.value];
}

Milestone WatchedScheduler::add_trial(TrialNumber trial) {
  const bool is_again = trial.value < trials_.size() && trials_[trial.value].may_come_again;
  if (!is_again && trial.value != trials_.size()) {
    violate(kOnceInOrder,
            fmt::format("trial {} is added as number {}", trial.value, trials_.size()));
  }
  if (!is_again) trials_.emplace_back();
  Seen& known = trials_[trial.value];
  known.ended = known.may_come_again = known.paused = false;
  return inner_->add_trial(trial);
}

Decision WatchedScheduler::result(TrialNumber trial, const ResultView& result) {
  Seen& known = seen(trial, "a result");
  if (result.iteration() != known.iterations + 1) {
    violate(kOnceInOrder, fmt::format("trial {}: result {} after {}", trial.value,
                                      result.iteration(), known.iterations));
  }
  ++known.iterations;
  Decision decision = inner_->result(trial, result);
  known.paused = decision.kind == Decision::Kind::kPause;  // or it yields: that one may end
  return decision;
}

Milestone WatchedScheduler::resume_trial(TrialNumber trial) {
  seen(trial, "the resumption").paused = false;
  return inner_->resume_trial(trial);
}

// A trial that is tried again later is added again before anything else.
void WatchedScheduler::end_trial(TrialNumber trial, TrialEnd end, const Reported* last) {
  Seen& known = seen(trial, "the end");
  if (known.paused && end == TrialEnd::kStopped && !may_be_cut_short_) could_not_go_on(trial);
  known.ended = true;
  known.may_come_again = end != TrialEnd::kCompleted;
  inner_->end_trial(trial, end, last);
}

void WatchedScheduler::could_not_go_on(TrialNumber trial) const {
  const std::set<TrialNumber> none, paused = {trial};
  if (!inner_->choose({none, paused, inner_->resumed_first()})) return;
  violate("a paused trial that may go on is not ended",
          fmt::format("trial {} is over, and could have gone on", trial.value));
}

std::string WatchedScheduler::save() const {
  PackWriter out;
  encode(out, trials_);
  out.binary(inner_->save());
  return out.take();
}

void WatchedScheduler::restore(std::string_view state) {
  PackReader in(state);
  decode(in, trials_);
  inner_->restore(in.binary());
  in.expect_end();
}

}  // namespace tune::simulator
