#include "tune/drive/replay.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/result_view.h"
#include "core/wire.h"
#include "tune/control/controller.h"
#include "tune/control/experiment_setup.h"
#include "tune/drive/journal.h"
#include "tune/drive/proposal_work.h"
#include "tune/drive/replay_lines.h"
#include "tune/results/event_text.h"
#include "tune/results/events_log.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/result_lines.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

constexpr std::size_t kEventsKeeper = 2;  // the place of EventsLog among the driver's keepers
constexpr std::size_t kMostShown = 2000;  // characters of a value that differs

// The length of events.jsonl at a snapshot; nothing: an older build did not say.
std::optional<std::uint64_t> events_bytes(const std::string& logger) {
  PackReader in(logger);
  if (logger.empty() || in.peek() != PackReader::Type::kArray) return std::nullopt;
  const std::size_t count = in.array();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view state = in.binary();
    if (i == kEventsKeeper) return EventsLog::bytes_in(state);
  }
  return std::nullopt;
}

std::string text_of(const Milestone& until) {
  if (until.attribute.empty()) return "to go on without end";
  return fmt::format("to go on to {} {:.10g}", until.attribute, until.value);
}

// The replayed controller's words to the worker of a trial.
struct Told {
  AttemptNumber attempt;
  Milestone until;
  bool is_stopped = false;
};

class Replay {
 public:
  Replay(Store& store, const ExperimentSpec& spec, const std::filesystem::path& directory,
         bool is_over)
      : spec_(spec),
        directory_(directory),
        is_over_(is_over),
        journal_(store),
        controller_(controller_setup(spec, std::filesystem::absolute(directory))),
        text_(spec),
        lines_(directory / "events.jsonl", is_over) {}

  ReplayReport run() {
    journal_.replay({[this](const Snapshot& snapshot) { restore(snapshot); },
                     [this](const Turn& turn) { take(turn); }});
    if (!report_.difference) finish();
    report_.through = journal_.last();
    report_.launches = launches_;
    report_.verdicts = lines_.of("verdict") + lines_.of("rung") + lines_.of("replaced");
    report_.lines = lines_.compared();
    return std::move(report_);
  }

 private:
  void restore(const Snapshot& snapshot);
  void take(const Turn& turn);
  void take(const Turn& turn, const Event& event);
  void check(const Proposed& proposed);
  void compare(const Proposed& journaled, const Proposed& made, std::size_t count);
  void check(const FromAgent& event);
  template <class Other>
  void check_attempt(AgentNumber, const Other&) {}
  void check_attempt(AgentNumber agent, const AttemptStarted& started);
  void check_attempt(AgentNumber agent, const Reported& report);
  void check_attempt(AgentNumber agent, const AttemptEnded& ended);
  bool was_launched(AgentNumber agent, TrialNumber trial, AttemptNumber attempt,
                    const std::string& what);
  void remember(const Command& command);
  void ask();
  void check_configurations();
  void finish();

  std::string id(TrialNumber trial) const { return trial_id(experiment_id_of(spec_), trial); }
  void differ(std::string what, std::string journaled, std::string replayed) {
    if (report_.difference) return;
    for (std::string* value : {&journaled, &replayed}) {
      if (value->size() > kMostShown) value->replace(kMostShown, std::string::npos, "...");
    }
    report_.difference = {report_.events, to_string(journal_.last()), std::move(what),
                          std::move(journaled), std::move(replayed)};
  }

  const ExperimentSpec& spec_;
  const std::filesystem::path& directory_;
  bool is_over_;
  Journal journal_;
  Controller controller_;
  EventText text_;
  ReplayLines lines_;
  bool compares_lines_ = true;
  ReplayReport report_;
  std::uint64_t launches_ = 0;

  struct Question {
    std::size_t count = 0;
    Searcher::Question make;  // empty: it was put before the snapshot
  };
  std::map<std::uint64_t, Question> questions_;  // that were put, and not answered
  std::uint64_t asked_ = 0;                      // the newest
  std::map<TrialNumber, Told> told_;
};

// ---- Turns --------------------------------------------------------------------------------------

void Replay::restore(const Snapshot& snapshot) {
  controller_.restore(snapshot.controller);
  report_.from = snapshot.through;
  told_.clear();
  questions_.clear();
  if (const auto open = controller_.question()) {
    asked_ = open->number;
    questions_[asked_] = {open->count, {}};
  }
  const std::optional<std::uint64_t> bytes = events_bytes(snapshot.logger);
  compares_lines_ = bytes.has_value();
  if (bytes) lines_.begin_at(*bytes);
  if (!bytes)
    report_.remark = "events.jsonl was not compared: its place at the snapshot is not known";
}

void Replay::take(const Turn& turn) {
  if (report_.difference) return;
  for (const Event& event : turn.events) {
    ++report_.events;
    take(turn, event);
    if (report_.difference) return;
  }
  for (const std::string& notice : turn.notices) text_.record(DriverNotice{notice}, turn.wall);
  const auto mismatch = compares_lines_ ? lines_.compare(text_.take()) : std::nullopt;
  if (mismatch) differ(mismatch->what, mismatch->journaled, mismatch->replayed);
  ask();
}

// Compared event by event, so that the first difference has its event.
void Replay::take(const Turn& turn, const Event& event) {
  if (const auto* proposed = std::get_if<Proposed>(&event)) check(*proposed);
  if (const auto* said = std::get_if<FromAgent>(&event)) check(*said);
  if (std::holds_alternative<DriverStarted>(event)) {
    told_.clear();
    questions_.clear();
  }
  if (report_.difference) return;
  const Effects effects = controller_.handle(
      turn.now, event, [&](const Record& record) { text_.record(record, turn.wall); });
  for (const auto& [agent, command] : effects.commands) remember(command);
  const std::string made = text_.take();
  const auto mismatch = compares_lines_ ? lines_.compare(made) : std::nullopt;
  if (mismatch) differ(mismatch->what, mismatch->journaled, mismatch->replayed);
}

// As a driver does, at the end of the turn in which the question appears.
void Replay::ask() {
  const auto open = controller_.question();
  if (!open || open->number == asked_) return;
  asked_ = open->number;
  Question& question = questions_[asked_];
  question.count = open->count;
  try {
    question.make = controller_.searcher().question(open->count);
  } catch (...) {
    question.make = [error = std::current_exception()]() -> std::string {
      std::rethrow_exception(error);
    };
  }
}

// ---- Proposals ----------------------------------------------------------------------------------

void Replay::check(const Proposed& proposed) {
  const auto found = questions_.find(proposed.question);
  if (found == questions_.end()) {
    return differ("a question to the searcher",
                  fmt::format("an answer to question {}", proposed.question),
                  "no such question was put");
  }
  const Question question = std::move(found->second);
  questions_.erase(found);
  if (!question.make) {
    ++report_.unasked;
  } else {
    compare(proposed, answer_now(proposed.question, question.make), question.count);
  }
}

void Replay::compare(const Proposed& journaled, const Proposed& made, std::size_t count) {
  const std::string what = fmt::format("the answer to question {}", journaled.question);
  if (journaled.error != made.error) {
    const auto told = [](const std::string& error) { return error.empty() ? "an answer" : error; };
    return differ(what, told(journaled.error), told(made.error));
  }
  if (journaled.answer == made.answer) {
    report_.proposals += made.error.empty() ? count : 0;
    return;
  }
  const Searcher& searcher = controller_.searcher();
  const std::vector<Config> before = searcher.configurations(journaled.answer.bytes);
  const std::vector<Config> after = searcher.configurations(made.answer.bytes);
  for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string one = i < before.size() ? before[i].dump() : "no configuration";
    const std::string other = i < after.size() ? after[i].dump() : "no configuration";
    if (one != other) return differ(fmt::format("{}, proposal {}", what, i + 1), one, other);
  }
  if (before.empty()) return differ(what, "other bytes", "than the searcher makes");
  report_.proposals += before.size();
  report_.other_numbers += before.size();
}

// ---- Attempts -----------------------------------------------------------------------------------

void Replay::check(const FromAgent& event) {
  std::visit([&](const auto& what) { check_attempt(event.agent, what); }, event.event);
}

// An older attempt than the newest may still be heard of.
bool Replay::was_launched(AgentNumber agent, TrialNumber trial, AttemptNumber attempt,
                          const std::string& what) {
  const auto& trials = controller_.trials();
  const bool is_there = trial.value < trials.size() && attempt <= trials[trial.value].attempt;
  if (!is_there) {
    differ(what, fmt::format("attempt {} of trial {}", attempt.value, id(trial)),
           "no such attempt was launched");
    return false;
  }
  const Trial& one = trials[trial.value];
  const bool is_newest = attempt == one.attempt && one.placement;
  const bool has_part = is_newest && std::ranges::count(agents_of(*one.placement), agent) > 0;
  if (has_part && one.placement->agent != agent) return false;  // the lead is checked
  if (is_newest && one.placement->agent != agent) {
    differ(fmt::format("{}: where attempt {} of trial {} runs", what, attempt.value, id(trial)),
           fmt::format("on node {}", agent.value),
           fmt::format("on node {}", one.placement->agent.value));
    return false;
  }
  return is_newest;
}

void Replay::check_attempt(AgentNumber agent, const AttemptStarted& started) {
  if (was_launched(agent, started.trial, started.attempt, "a launch")) ++launches_;
}

void Replay::check_attempt(AgentNumber agent, const Reported& report) {
  if (!was_launched(agent, report.trial, report.attempt, "a result")) return;
  const auto told = told_.find(report.trial);
  if (told == told_.end() || told->second.attempt != report.attempt) return;
  const bool waits = !report.final && reaches(report, told->second.until);
  if (waits != report.waiting) {
    return differ(fmt::format("trial {} at iteration {}", id(report.trial), report.iteration),
                  report.waiting ? "it waited for a verdict" : "it went on without a verdict",
                  "it had been told " + text_of(told->second.until));
  }
  ++report_.waits;
}

void Replay::check_attempt(AgentNumber agent, const AttemptEnded& ended) {
  if (!was_launched(agent, ended.trial, ended.attempt, "an end")) return;
  const auto told = told_.find(ended.trial);
  if (told == told_.end() || told->second.attempt != ended.attempt) return;
  if (ended.outcome == Outcome::kStopped && !told->second.is_stopped) {
    differ(fmt::format("the end of attempt {} of trial {}", ended.attempt.value, id(ended.trial)),
           "it was stopped", "it had been told " + text_of(told->second.until));
  }
  told_.erase(told);
}

void Replay::remember(const Command& command) {
  if (const auto* launch = std::get_if<Launch>(&command)) {
    told_[launch->trial] = {launch->attempt, launch->until, false};
  } else if (const auto* go_on = std::get_if<Continue>(&command)) {
    told_[go_on->trial].until = go_on->until;
    told_[go_on->trial].attempt = go_on->attempt;
  } else if (const auto* stop = std::get_if<StopAttempt>(&command)) {
    const auto told = told_.find(stop->trial);
    if (told != told_.end()) told->second.is_stopped = true;
  }
}

// ---- The end ------------------------------------------------------------------------------------

// Also of trials whose configurations were drawn at random, which no event tells.
void Replay::check_configurations() {
  // While trials get others' values, a file may be ahead of the journal that was read, or behind.
  if (!is_over_ && spec_.options.scheduler.make()->replaces()) return;
  for (const Trial& trial : controller_.trials()) {
    const std::filesystem::path file = directory_ / id(trial.number) / "params.json";
    if (!std::filesystem::exists(file)) continue;  // not written yet
    const Config journaled = config_from_json(read_file(file), file.string());
    const Config replayed(unpack(trial.config));
    if (journaled.dump() != replayed.dump()) {
      return differ("the configuration of trial " + id(trial.number), journaled.dump(),
                    replayed.dump());
    }
    ++report_.configurations;
  }
}

void Replay::finish() {
  check_configurations();
  if (report_.difference) return;
  if (is_over_ && controller_.phase() != Phase::kFinished) {
    return differ("the experiment", "it is finished", "it goes on");
  }
  const auto mismatch = compares_lines_ ? lines_.rest() : std::nullopt;
  if (mismatch) differ(mismatch->what, mismatch->journaled, mismatch->replayed);
}

}  // namespace

ReplayReport replay(Store& store, const ExperimentSpec& spec,
                    const std::filesystem::path& directory, bool is_over) {
  return Replay(store, spec, directory, is_over).run();
}

}  // namespace tune
