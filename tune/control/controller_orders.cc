// Orders of users to a sweep that runs: `tune stop` and its like.
//
// A trial that a user pauses leaves its scheduler as one that failed does, and takes part anew when
// it goes on. The simpler way is to keep it a participant that says nothing. It fails with all
// schedulers that wait for others: synchronous HyperBand and PBT would halve no bracket, and let no
// generation go on, until a user comes back; a held trial with good values would be a donor, and
// count as one that is to come. Schedulers know how to do without a trial that failed, and how to
// take it in again (schedulers/trial_scheduler.h).
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/result_view.h"
#include "tune/control/controller.h"
#include "tune/search/added_point.h"

namespace tune {

namespace {

constexpr std::uint64_t kMostTrials = 1'000'000'000;

OrderAnswer refused(std::string why) {
  return {0, false, std::move(why)};
}

OrderAnswer done(std::string text) {
  return {0, true, std::move(text)};
}

// A scheduler's decision that stands when a user lets the trial go on. Its words may be gone: the
// user's took their place.
std::string decided_for(const Trial& trial) {
  if (trial.verdict == StopKind::kStop) return "stopped by its scheduler";
  return trial.verdict == StopKind::kPause ? "paused by its scheduler" : "";
}

// "paused by ada: too slow"
std::string reason_of(const char* what, const UserOrdered& order) {
  return fmt::format("{} by {}{}{}", what, order.user, order.text.empty() ? "" : ": ", order.text);
}

std::string has_ended(const Trial& trial) {
  return fmt::format("trial {} has ended already: {}", trial.number.value,
                     status_name(trial.status));
}

}  // namespace

void Controller::on(const UserOrdered& event) {
  OrderAnswer answer = obey(event);
  answer.ticket = event.ticket;
  out_->answer(std::move(answer));
}

OrderAnswer Controller::obey(const UserOrdered& order) {
  if (phase_ != Phase::kRunning && order.kind != OrderKind::kNote) {
    return refused("the experiment is ending: resume it first");
  }
  if (order.kind == OrderKind::kAdd) return add(order);
  if (order.kind == OrderKind::kNumSamples) return set_num_samples(order);
  if (order.trial.value >= book_.all().size()) {
    return refused(fmt::format("there is no trial {} yet: {} are there", order.trial.value,
                               book_.all().size()));
  }
  Trial& trial = book_.at(order.trial);
  switch (order.kind) {
    case OrderKind::kStop:
      return stop(trial, order);
    case OrderKind::kPause:
      return pause(trial, order);
    case OrderKind::kUnpause:
      return unpause(trial, order);
    case OrderKind::kRetry:
      return retry(trial, order);
    default:
      out_->tell(UserActed{order, &trial});
      return done(fmt::format("trial {}: noted", trial.number.value));
  }
}

// It has a deadline: a step may never end.
OrderAnswer Controller::stop(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (tune::is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish == Wish::kStop) {
    return refused(fmt::format("trial {} is being stopped already", number));
  }
  trial.reason = reason_of("stopped", order);
  out_->tell(UserActed{order, &trial});
  if (trial.status == TrialStatus::kRunning) {
    trial.wish = Wish::kStop;
    tell_lead(trial, StopAttempt{trial.number, trial.attempt, StopKind::kStop, save_grace_});
    return done(fmt::format("trial {} saves and ends", number));
  }
  finish(trial, TrialEnd::kStopped);
  fill();
  return done(fmt::format("trial {} is stopped", number));
}

// It has no deadline: a step of an hour is worth waiting for.
OrderAnswer Controller::pause(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (tune::is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish == Wish::kStop) return refused(fmt::format("trial {} is being stopped", number));
  if (trial.wish == Wish::kPause) {
    return refused(fmt::format("trial {} is paused by a user already", number));
  }
  const bool runs = trial.status == TrialStatus::kRunning;
  if (runs && !can_save_) {
    return refused(
        fmt::format("trial {}: {} has no save and load (or is a command without restart in its "
                    "sweep), so that the trial would lose what it has done: stop it, and retry it "
                    "later",
                    number, experiment_.trainable));
  }
  trial.reason = reason_of("paused", order);
  out_->tell(UserActed{order, &trial});
  if (runs) {
    trial.wish = Wish::kPause;
    tell_lead(trial, StopAttempt{trial.number, trial.attempt, StopKind::kPause, {}});
    return done(
        fmt::format("trial {} saves after its step and stays PAUSED until tune unpause", number));
  }
  hold(trial);
  fill();
  return done(fmt::format("trial {} stays PAUSED until tune unpause", number));
}

void Controller::hold(Trial& trial) {
  // For the searcher it goes on: what its scheduler has paused is known to be kept back.
  const bool is_known_as_paused = trial.status == TrialStatus::kPaused && trial.replacements == 0;
  if (is_known_as_paused) searcher_->resume_trial(trial.number);
  verdicts_.end(trial, TrialEnd::kError);
  book_.hold(trial);
}

OrderAnswer Controller::unpause(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (tune::is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish != Wish::kPause) {
    return refused(
        trial.status == TrialStatus::kPaused
            ? fmt::format("trial {} is paused by its scheduler, which decides when it "
                          "goes on",
                          number)
            : fmt::format("trial {} is not paused: {}", number, status_name(trial.status)));
  }
  trial.reason = decided_for(trial);
  out_->tell(UserActed{order, &trial});
  if (trial.status == TrialStatus::kRunning) {  // its attempt ends, and the next one goes on
    trial.wish = Wish::kNone;
  } else {
    trial.until = verdicts_.begin(trial.number, trial.config);
    book_.release(trial);
    fill();
  }
  return done(fmt::format("trial {} goes on when there is room", number));
}

OrderAnswer Controller::retry(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (!tune::is_over(trial.status)) {
    return refused(fmt::format("trial {} has not ended: {}", number, status_name(trial.status)));
  }
  const std::optional<double> max_t = verdicts_.scheduler().max_t();
  const bool is_at_end =
      max_t && trial.last && static_cast<double>(trial.last->iteration) >= *max_t;
  const bool has_completed = trial.status == TrialStatus::kTerminated && !trial.was_stopped;
  if (has_completed || (is_at_end && trial.status == TrialStatus::kTerminated)) {
    return refused(fmt::format(
        "trial {} has come to its end{}: nothing is left to do", number,
        is_at_end ? fmt::format(", the scheduler's max_t {:g}", *max_t) : std::string()));
  }
  // One that failed while it obeyed its scheduler's stop only has to stop.
  if (trial.verdict != StopKind::kStop) trial.reason.clear();
  trial.was_stopped = false;
  out_->tell(UserActed{order, &trial});
  retry(trial);
  wait_again(trial);
  fill();
  return done(fmt::format("trial {} goes on when there is room", number));
}

OrderAnswer Controller::add(const UserOrdered& order) {
  const TrialNumber number = book_.next_number();
  Config config;
  try {
    const Value given = unpack(order.config);
    config = whole_point(space_, Config(given), number.value);
  } catch (const std::exception& error) {  // also of a function of the user's search space
    return refused(fmt::format("adding a configuration: {}", error.what()));
  }
  Packed packed = pack(config);
  Milestone until = verdicts_.begin(number, packed);
  Trial& trial = book_.add(std::move(packed), std::move(until));
  trial.is_added = true;
  searcher_->skip(number);
  out_->tell(UserActed{order, &trial});
  fill();
  return done(fmt::format("trial {} has it: {}", number.value, config.dump()));
}

OrderAnswer Controller::set_num_samples(const UserOrdered& order) {
  const std::int64_t former = num_samples_;
  if (order.num_samples <= 0) {
    return refused(
        fmt::format("num_samples {}: a sweep that runs takes a number from 1", order.num_samples));
  }
  searcher_->set_num_samples(order.num_samples);
  const std::uint32_t begun = book_.next_number().value;
  const std::uint64_t total = searcher_->total().value_or(begun);
  if (total < begun || total > kMostTrials) {
    searcher_->set_num_samples(former);
    return refused(fmt::format("num_samples {} makes {} trials in all: {}", order.num_samples,
                               total,
                               total < begun ? fmt::format("{} have begun already", begun)
                                             : fmt::format("at most {}", kMostTrials)));
  }
  num_samples_ = order.num_samples;
  exhausted_ = false;
  out_->tell(UserActed{order, nullptr});
  fill();
  const std::string in_all =
      searcher_->total() ? fmt::format(", {} trials in all", total) : std::string();
  return done(fmt::format("num_samples is {} from now on{}", order.num_samples, in_all));
}

// A resume may have changed it. Else what a user has ordered stands, though the driver may not have
// lived to write it into the sweep's description.
void Controller::take_num_samples(std::int64_t of_driver) {
  if (of_driver != driver_samples_) num_samples_ = of_driver;
  driver_samples_ = of_driver;
  searcher_->set_num_samples(num_samples_);
}

// Nothing else can run. Trials that a scheduler keeps back may go on behind those.
void Controller::wait_for_user() {
  if (std::exchange(waits_for_user_, true)) return;
  std::string names;
  for (const TrialNumber number : book_.held()) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", number.value);
    if (names.size() > 60) {
      names += " ...";
      break;
    }
  }
  out_->notice(
      fmt::format("the sweep waits for trials that a user has paused: {} (tune unpause)", names));
}

}  // namespace tune
