#include "tune/control/reports.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tune/control/key_watch.h"

namespace tune {

void Reports::began(AgentNumber agent, const AttemptStarted& started) {
  Trial* trial = state_.book.current(agent, started.trial, started.attempt);
  if (trial == nullptr) return;
  const AgentHello& node = state_.nodes.hello(agent);
  trial->location = fmt::format("{}:{}", node.ip, started.pid);
  state_.out.tell(TrialChanged{*trial});
  const bool is_restored = !trial->checkpoints.empty();
  state_.out.tell(
      AttemptBegan{*trial, node.hostname, is_restored ? trial->checkpoints.back().iteration : 0});
}

bool Reports::reported(AgentNumber agent, const Reported& report) {
  TrialBook& book = state_.book;
  Verdicts& verdicts = state_.verdicts;
  Outbox& out = state_.out;
  Trial* trial = book.current(agent, report.trial, report.attempt);
  if (trial == nullptr || (trial->last && report.iteration <= trial->last->iteration)) return false;
  state_.unanswered.erase(trial->number);
  if (trial->verdict == StopKind::kLeave) return false;  // of the state that it has given up
  const bool shows_health = evidence_.reports(*trial);
  book.take_result(*trial, report);
  state_.metric_was_reported = state_.metric_was_reported || book.has_a_metric(report);
  if (report.iteration > trial->searched) {
    trial->searched = report.iteration;
    // The values of a replaced trial are not those that the searcher proposed.
    if (trial->replacements == 0) state_.searcher.result(trial->number, report);
  }
  Verdicts::Ruling ruling =
      verdicts.rule(*trial, report, verdicts.scheduler().pauses() && others_wait());
  out.tell(ResultRecorded{*trial, report, ruling.done});
  if (ruling.place) out.tell(RungReached{*trial, report.iteration, *ruling.place, ruling.kind});
  if (ruling.given) out.tell(VerdictGiven{*trial, report.iteration, *ruling.given});
  if (ruling.replaced) ruling.answer = moves_.replace(*trial, *ruling.replaced, report.waiting);
  if (ruling.answer) out.send(agent, std::move(*ruling.answer));
  if (ruling.is_first) expect_metric(report);
  return shows_health || (ruling.given && !book.paused().empty());
}

// Trials that are still to be drawn wait as well.
bool Reports::others_wait() const {
  return !state_.book.waiting().empty() || !state_.book.paused().empty() || source_.has_more();
}

// A scheduler never judges, nor ends, a trial that reports no metric. Where there are several, one
// of them is enough to go on: trials that lack another are ended at max_t.
void Reports::expect_metric(const Reported& report) {
  if (state_.metric_was_reported) return;
  const std::optional<double> max_t = state_.verdicts.scheduler().max_t();
  if (!max_t || static_cast<double>(report.iteration) < *max_t) return;
  const std::vector<std::string> missing = state_.book.missing_metrics(report);
  if (missing.empty()) return;  // there is none, say
  state_.course.fail(fmt::format(
      "judging trials by the metric: {}, though a trial is past the scheduler's max_t {:g}; begin "
      "anew with another metric or a trainable that reports it as a number",
      missing_keys(missing, report), *max_t));
}

void Reports::saved(AgentNumber agent, const CheckpointSaved& saved) {
  Trial* trial = state_.book.current(agent, saved.trial, saved.attempt);
  if (trial == nullptr) return;
  if (saved.storing != CheckpointSaved::Storing::kStored) {
    return state_.book.expect_checkpoint(*trial, saved);
  }
  if (trial->verdict == StopKind::kLeave) {  // of the state that it has given up
    return state_.out.remove(trial->number, {saved.iteration, saved.attempt});
  }
  state_.book.take_checkpoint(*trial, saved);
  state_.verdicts.checkpoint_saved(trial->number, saved.iteration);
}

}  // namespace tune
