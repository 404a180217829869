#include "trainables/worker_session.h"

#include <cstdio>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "core/ids.h"
#include "core/spawn.h"
#include "trainables/access.h"
#include "trainables/checkpoint_folder.h"
#include "trainables/failure.h"

namespace tune {
namespace {

[[noreturn]] void unexpected_command() {
  throw AttemptFailure("the agent sent a command that does not fit a step boundary");
}

}  // namespace

WorkerSession::WorkerSession(const StartWorker& start, Channel& channel)
    : start_(start),
      channel_(channel),
      context_(ContextBuilder::for_worker(start)),
      until_(start.launch.until),
      step_began_(Clock::now()),
      time_total_(start.launch.time_total),
      saved_(start.launch.restore_iteration) {
  if (start.launch.timesteps_total != 0) timesteps_total_ = start.launch.timesteps_total;
}

std::optional<std::filesystem::path> WorkerSession::checkpoint() const {
  if (start_.launch.restore_iteration == 0) return std::nullopt;
  return context_.trial_directory_ / checkpoint_name(start_.launch.restore_iteration);
}

// What a rank alone has finished is nobody's concern.
void WorkerSession::say_done() {
  if (start_.launch.ranks > 1) channel_.send(PhaseDone{});
}

bool WorkerSession::begin() {
  say_done();
  if (start_.rank != 0) return follow(nullptr);
  const auto verdict = await_verdict(false);
  if (verdict) return carry_out(*verdict, nullptr);
  // A rank alone says this once, as a sign of life.
  if (start_.launch.ranks == 1 && start_.experiment.hang_timeout > Duration::zero()) {
    channel_.send(GroupStep{context_.iteration_ + 1, GroupAction::kStep});
  }
  return go_on();
}

void WorkerSession::finish() {
  if (failure_) throw *failure_;
  if (outcome_) return;
  if (start_.rank == 0) {
    end(Outcome::kCompleted);
  } else {
    outcome_ = Outcome::kCompleted;
  }
}

bool WorkerSession::step_done(const Result& result, const Save* save) {
  if (outcome_) {
    std::fprintf(stderr, "report was called after it returned false; the process ends here\n");
    channel_.send(WorkerEnded{*outcome_, {}});
    std::fflush(nullptr);
    ::_exit(0);
  }
  if (failure_) throw *failure_;
  ++context_.iteration_;
  try {
    if (start_.rank == 0) return lead(result, save);
    say_done();
    return follow(save);
  } catch (const AttemptFailure& failure) {
    failure_ = failure;  // stands even if the user's function catches it
    throw;
  }
}

// Rank 0, alone or of a group: the one that reports and decides.
bool WorkerSession::lead(const Result& result, const Save* save) {
  Reported report = make_report(result);
  const bool final = report.final;
  const bool waiting = report.waiting;
  channel_.send(std::move(report));
  if (final) {
    if (start_.experiment.checkpoint.at_end) save_now(save);
    return end(Outcome::kCompleted);
  }
  const std::uint32_t frequency = start_.experiment.checkpoint.frequency;
  if (frequency > 0 && context_.iteration_ % frequency == 0) {
    if (save == nullptr && !std::exchange(save_was_missed_, true)) {
      channel_.send(Warning{fmt::format(
          "checkpoint frequency is {}, but results are reported without a save: give one to "
          "session.report, or no checkpoint is written",
          frequency)});
    }
    save_now(save);
  }
  const auto verdict = await_verdict(waiting);
  return verdict ? carry_out(*verdict, save) : go_on();
}

// Rank r > 0: does what rank 0 says until it says step or end.
bool WorkerSession::follow(const Save* save) {
  for (;;) {
    const WorkerCommand command = channel_.wait();
    const auto* word = std::get_if<GroupStep>(&command);
    if (word == nullptr) unexpected_command();
    switch (word->action) {
      case GroupAction::kSave:
        write_checkpoint(save);
        break;
      case GroupAction::kEnd:
        outcome_ = Outcome::kCompleted;
        return false;
      case GroupAction::kStep:
        if (word->iteration != context_.iteration_ + 1) {
          throw AttemptFailure(fmt::format(
              "rank {} has done {} steps when rank 0 begins step {}: all ranks must report equally "
              "often",
              start_.rank, context_.iteration_, word->iteration));
        }
        return true;
    }
  }
}

Reported WorkerSession::make_report(const Result& result) {
  const Duration step = Clock::now() - step_began_;
  time_total_ += step;
  time_since_restore_ += step;
  if (const Value* more = result.find("timesteps_this_iter"); more && more->is_number()) {
    timesteps_total_ = timesteps_total_.value_or(0) + more->number();
  }
  Reported report;
  report.trial = start_.launch.trial;
  report.attempt = start_.launch.attempt;
  report.iteration = context_.iteration_;
  report.time_this_iter = step;
  report.time_total = time_total_;
  report.time_since_restore = time_since_restore_;
  report.iterations_since_restore = context_.iteration_ - start_.launch.restore_iteration;
  report.timesteps_total = timesteps_total_;
  report.final = is_final(result, report);
  report.waiting = !report.final && is_due(report, result);
  packed_result_.clear();
  packed_result_.value(result);
  report.result.bytes = packed_result_.bytes();
  return report;
}

// What the user reports under a name goes before the framework's own field of that name.
std::optional<double> WorkerSession::number(const Result& result, const Reported& report,
                                            const std::string& path) const {
  if (const Value* own = result.find(path)) {
    return own->is_number() ? std::optional(own->number()) : std::nullopt;
  }
  if (path == "training_iteration") return static_cast<double>(report.iteration);
  if (path == "time_total_s") return seconds(report.time_total);
  if (path == "time_this_iter_s") return seconds(report.time_this_iter);
  if (path == "time_since_restore") return seconds(report.time_since_restore);
  if (path == "iterations_since_restore") {
    return static_cast<double>(report.iterations_since_restore);
  }
  if (path == "timesteps_total") return report.timesteps_total;
  return std::nullopt;
}

bool WorkerSession::is_final(const Result& result, const Reported& report) const {
  const Value* done = result.find("done");
  if (done != nullptr && done->type() == Value::Type::kBool && done->boolean()) return true;
  const Duration limit = start_.experiment.max_trial_time;
  if (limit > Duration::zero() && report.time_total >= limit) return true;
  for (const StopRule& rule : start_.experiment.stop) {
    const auto found = number(result, report, rule.path);
    if (found && (rule.at_most ? *found <= rule.bound : *found >= rule.bound)) return true;
  }
  return false;
}

bool WorkerSession::is_due(const Reported& report, const Result& result) const {
  if (until_.attribute.empty()) return false;
  const auto reached = number(result, report, until_.attribute);
  return reached && *reached >= until_.value;
}

// Commands that are there, or the next ones until one answers a report that waits and none holds
// the group.
std::optional<StopKind> WorkerSession::await_verdict(bool waiting) {
  for (bool held = false;;) {
    const auto command = waiting || held ? std::optional(channel_.wait()) : channel_.poll();
    if (!command) return std::nullopt;
    if (const auto* word = std::get_if<HoldGroup>(&*command)) {
      held = word->hold;
      continue;
    }
    if (const auto* stop = std::get_if<StopAttempt>(&*command)) return stop->kind;
    const auto* go = std::get_if<Continue>(&*command);
    if (go == nullptr) unexpected_command();
    until_ = go->until;
    waiting = false;
  }
}

bool WorkerSession::carry_out(StopKind verdict, const Save* save) {
  if (verdict == StopKind::kStop) {
    if (start_.experiment.checkpoint.at_end) save_now(save);
    return end(Outcome::kStopped);
  }
  save_now(save);
  const bool safe = saved_ > 0 && saved_ == context_.iteration_;
  return end(safe ? Outcome::kPaused : Outcome::kLost);
}

bool WorkerSession::end(Outcome outcome) {
  if (is_group_leader()) channel_.send(GroupStep{context_.iteration_, GroupAction::kEnd});
  outcome_ = outcome;
  return false;
}

bool WorkerSession::go_on() {
  if (is_group_leader()) channel_.send(GroupStep{context_.iteration_ + 1, GroupAction::kStep});
  step_began_ = Clock::now();
  return true;
}

// Rank 0: a checkpoint of this iteration on all ranks, unless it is there or cannot be.
void WorkerSession::save_now(const Save* save) {
  if (save == nullptr || saved_ == context_.iteration_) return;
  in_phase("save", [this] {
    make_fresh_folder(context_.trial_directory_ /
                      temporary_checkpoint_name(context_.iteration_, start_.launch.attempt));
  });
  if (is_group_leader()) channel_.send(GroupStep{context_.iteration_, GroupAction::kSave});
  write_checkpoint(save);
}

void WorkerSession::write_checkpoint(const Save* save) {
  const auto folder = context_.trial_directory_ /
                      temporary_checkpoint_name(context_.iteration_, start_.launch.attempt);
  in_phase("save", [&] {
    if (save != nullptr) (*save)(folder);
    flush_checkpoint(folder);
  });
  saved_ = context_.iteration_;
  channel_.send(RankSaved{context_.iteration_, time_total_, timesteps_total_});
}

}  // namespace tune
