#include "tune/run.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>

#include <fmt/format.h>

#include "core/platform/process.h"
#include "core/platform/side_output.h"
#include "trainables/access.h"
#include "trainables/zygote.h"
#include "tune/drive/driver.h"
#include "tune/drive/program_call.h"
#include "tune/drive/resume.h"
#include "tune/results/experiment_folder.h"
#include "tune/show/make_reporter.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

// Folders of this process's earlier calls, absolute; its size numbers the calls.
std::vector<std::string>& earlier_calls() {
  static std::vector<std::string> folders;
  return folders;
}

[[noreturn]] void end_with_message() {
  int code = 0;
  const auto tell = [](const std::string& text) { write_or_give_up(STDERR_FILENO, text + "\n"); };
  try {
    if (std::current_exception()) throw;
  } catch (const InterruptedError& error) {
    tell(error.what());
    code = 128 + error.signal();
  } catch (const Error& error) {
    tell(fmt::format("error: {}", error.what()));
    code = exit_code(error.code());
  } catch (const std::exception& error) {
    tell(fmt::format("terminate called after an exception: {}", error.what()));
  } catch (...) {
  }
  std::fflush(nullptr);
  if (code == 0) std::abort();
  _exit(code);
}

ExperimentSpec validated_spec(RunOptions options, const TrainableEntry& entry) {
  std::vector<Complaint> complaints;
  ExperimentSpec spec = make_spec(std::move(options), entry.name, entry.is_function, complaints);
  ZygoteReady loaded;
  loaded.trainables.push_back({entry.name, entry.can_save, entry.is_function});
  const auto unfit = complaints_about(loaded, wanted_trainable(spec.options, entry.name));
  complaints.insert(complaints.end(), unfit.begin(), unfit.end());
  if (!complaints.empty()) throw_complaints("tune::run", complaints);
  return spec;
}

// New, or the one that is there: by the command line's `tune resume`, or by if_exists.
RunRequest make_request(ExperimentSpec spec, std::uint32_t call) {
  const auto& again = executed_again();
  const bool resumes = again && again->role == ExecutedAgain::Role::kResume && again->call == call;
  if (!resumes) return request_by_if_exists(std::move(spec));
  if (again->quiet) spec.options.quiet = true;
  if (again->wait_gpus) spec.options.wait_gpus = true;
  if (again->num_samples) spec.options.num_samples = *again->num_samples;
  if (again->time_budget_s) spec.options.time_budget_s = *again->time_budget_s;
  spec.options.listen = again->listen;
  RunRequest request = resume_request(again->directory, spec);
  request.retry_errored = again->retry_errored;
  return request;
}

ZygoteSource make_zygote(const TrainableEntry& entry, const ProgramCall& program) {
  ZygoteSource source;
  source.command = zygote_command(program);
  source.environment = zygote_environment(program);
  const std::string unfit = why_unfit_to_fork();
  if (unfit.empty()) {
    source.in_process = [entry](int control) { run_zygote(control, trainables_of({entry})); };
  } else {
    fmt::print(stderr,
               "warning: this program cannot be forked for the trials ({}): it is executed again "
               "for them, up to this tune::run\n",
               unfit);
  }
  return source;
}

}  // namespace

void restore_trainable(Trainable& trainable, const Analysis& analysis) {
  static std::deque<Context> contexts;  // a Trainable outlives this call
  const auto best = analysis.best_trial();
  const auto checkpoint = analysis.best_checkpoint();
  contexts.push_back(
      ContextBuilder::for_restore(best.id, checkpoint.path.parent_path(), 0, checkpoint.iteration));
  TrainableAccess::set_context(trainable, contexts.back());
  // The model is that of the checkpoint, which a replaced trial may have saved with other values.
  trainable.setup(config_at(analysis.directory(), best.id, checkpoint.iteration));
  trainable.load(checkpoint.path);
}

Analysis run(SizedTrainable trainable, RunOptions options) {
  if (options.resources_per_trial != Resources{}) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("resources_per_trial is given beside a trainable that says what it "
                            "needs: leave it out, and set {} instead",
                            trainable.instead));
  }
  options.resources_per_trial = trainable.resources;
  return run_entry(std::move(trainable.entry), std::move(options));
}

Analysis run_entry(TrainableEntry entry, RunOptions options) {
  std::set_terminate(end_with_message);
  std::vector<std::string>& earlier = earlier_calls();
  const auto call = static_cast<std::uint32_t>(earlier.size() + 1);
  const auto& again = executed_again();
  if (again && call < again->call) {
    earlier.push_back(again->earlier.at(call - 1));
    return Analysis::load(earlier.back());
  }
  if (again && call == again->call && again->role == ExecutedAgain::Role::kZygote) {
    run_zygote(again->control_socket, trainables_of({entry}));
  }
  const bool raise = options.raise_on_failed_trial;
  RunRequest request = make_request(validated_spec(std::move(options), entry), call);
  request.spec.program = this_program(call, earlier);
  request.zygote = make_zygote(entry, *request.spec.program);
  request.reporter = make_reporter(request.spec.options);

  const RunOutcome outcome = run_experiment(std::move(request));
  earlier.push_back(std::filesystem::absolute(outcome.directory));
  if (outcome.signal != 0) {
    throw InterruptedError(outcome.signal,
                           fmt::format("{}: resume with: {}", signal_name(outcome.signal),
                                       how_to_resume(outcome.directory)));
  }
  Analysis analysis = Analysis::load(outcome.directory);
  if (outcome.errored > 0 && raise) throw TrialError(std::move(analysis), outcome.errored);
  return analysis;
}

}  // namespace tune
