#include "tune/control/user_orders.h"

#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/result_view.h"
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

void UserOrders::obey(const UserOrdered& order) {
  OrderAnswer answer = answer_to(order);
  answer.ticket = order.ticket;
  state_.out.answer(std::move(answer));
}

OrderAnswer UserOrders::answer_to(const UserOrdered& order) {
  if (!state_.course.is_running() && order.kind != OrderKind::kNote) {
    return refused("the experiment is ending: resume it first");
  }
  if (order.kind == OrderKind::kAdd) return add(order);
  if (order.kind == OrderKind::kNumSamples) return set_num_samples(order);
  if (order.trial.value >= state_.book.all().size()) {
    return refused(fmt::format("there is no trial {} yet: {} are there", order.trial.value,
                               state_.book.all().size()));
  }
  Trial& trial = state_.book.at(order.trial);
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
      state_.out.tell(UserActed{order, &trial});
      return done(fmt::format("trial {}: noted", trial.number.value));
  }
}

// It has a deadline: a step may never end.
OrderAnswer UserOrders::stop(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish == Wish::kStop) {
    return refused(fmt::format("trial {} is being stopped already", number));
  }
  trial.reason = reason_of("stopped", order);
  state_.out.tell(UserActed{order, &trial});
  if (trial.status == TrialStatus::kRunning) {
    trial.wish = Wish::kStop;
    state_.out.send_to_lead(trial, StopAttempt{trial.number, trial.attempt, StopKind::kStop,
                                               state_.setup.experiment.save_grace});
    return done(fmt::format("trial {} saves and ends", number));
  }
  moves_.finish(trial, TrialEnd::kStopped);
  launcher_.fill();
  return done(fmt::format("trial {} is stopped", number));
}

// It has no deadline: a step of an hour is worth waiting for.
OrderAnswer UserOrders::pause(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish == Wish::kStop) return refused(fmt::format("trial {} is being stopped", number));
  if (trial.wish == Wish::kPause) {
    return refused(fmt::format("trial {} is paused by a user already", number));
  }
  const bool runs = trial.status == TrialStatus::kRunning;
  if (runs && !state_.can_save) {
    return refused(
        fmt::format("trial {}: {} has no save and load (or is a command without restart in its "
                    "sweep), so that the trial would lose what it has done: stop it, and retry it "
                    "later",
                    number, state_.setup.experiment.trainable));
  }
  trial.reason = reason_of("paused", order);
  state_.out.tell(UserActed{order, &trial});
  if (runs) {
    trial.wish = Wish::kPause;
    state_.out.send_to_lead(trial, StopAttempt{trial.number, trial.attempt, StopKind::kPause, {}});
    return done(
        fmt::format("trial {} saves after its step and stays PAUSED until tune unpause", number));
  }
  moves_.hold(trial);
  launcher_.fill();
  return done(fmt::format("trial {} stays PAUSED until tune unpause", number));
}

OrderAnswer UserOrders::unpause(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (is_over(trial.status)) return refused(has_ended(trial));
  if (trial.wish != Wish::kPause) {
    return refused(
        trial.status == TrialStatus::kPaused
            ? fmt::format("trial {} is paused by its scheduler, which decides when it "
                          "goes on",
                          number)
            : fmt::format("trial {} is not paused: {}", number, status_name(trial.status)));
  }
  trial.reason = decided_for(trial);
  state_.out.tell(UserActed{order, &trial});
  if (trial.status == TrialStatus::kRunning) {  // its attempt ends, and the next one goes on
    trial.wish = Wish::kNone;
  } else {
    moves_.let_go(trial);
    launcher_.fill();
  }
  return done(fmt::format("trial {} goes on when there is room", number));
}

OrderAnswer UserOrders::retry(Trial& trial, const UserOrdered& order) {
  const std::uint32_t number = trial.number.value;
  if (!is_over(trial.status)) {
    return refused(fmt::format("trial {} has not ended: {}", number, status_name(trial.status)));
  }
  const std::optional<double> max_t = state_.verdicts.scheduler().max_t();
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
  state_.out.tell(UserActed{order, &trial});
  moves_.revive(trial);
  moves_.wait_again(trial);
  launcher_.fill();
  return done(fmt::format("trial {} goes on when there is room", number));
}

OrderAnswer UserOrders::add(const UserOrdered& order) {
  const TrialNumber number = state_.book.next_number();
  Config config;
  try {
    const Value given = unpack(order.config);
    config = whole_point(state_.setup.space, Config(given), number.value);
  } catch (const std::exception& error) {  // also of a function of the user's search space
    return refused(fmt::format("adding a configuration: {}", error.what()));
  }
  const Trial& trial = source_.add(pack(config));
  state_.out.tell(UserActed{order, &trial});
  launcher_.fill();
  return done(fmt::format("trial {} has it: {}", number.value, config.dump()));
}

OrderAnswer UserOrders::set_num_samples(const UserOrdered& order) {
  const std::int64_t former = state_.num_samples;
  if (order.num_samples <= 0) {
    return refused(
        fmt::format("num_samples {}: a sweep that runs takes a number from 1", order.num_samples));
  }
  state_.searcher.set_num_samples(order.num_samples);
  const std::uint32_t begun = state_.book.next_number().value;
  const std::uint64_t total = state_.searcher.total().value_or(begun);
  if (total < begun || total > kMostTrials) {
    state_.searcher.set_num_samples(former);
    return refused(fmt::format("num_samples {} makes {} trials in all: {}", order.num_samples,
                               total,
                               total < begun ? fmt::format("{} have begun already", begun)
                                             : fmt::format("at most {}", kMostTrials)));
  }
  state_.num_samples = order.num_samples;
  state_.exhausted = false;
  state_.out.tell(UserActed{order, nullptr});
  launcher_.fill();
  const std::string in_all =
      state_.searcher.total() ? fmt::format(", {} trials in all", total) : std::string();
  return done(fmt::format("num_samples is {} from now on{}", order.num_samples, in_all));
}

}  // namespace tune
