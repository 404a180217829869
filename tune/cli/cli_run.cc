// tune run, resume and validate.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/fingerprint.h"
#include "core/platform/side_output.h"
#include "schedulers/merit.h"
#include "tune/cli/cli_commands.h"
#include "tune/cli/cli_detach.h"
#include "tune/cli/cli_dry.h"
#include "tune/cli/cli_pool.h"
#include "tune/drive/driver.h"
#include "tune/drive/program_call.h"
#include "tune/drive/resume.h"
#include "tune/results/analysis.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/warm_start.h"
#include "tune/search/learning.h"
#include "tune/show/make_reporter.h"
#include "tune/spec/command_options.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/objectives.h"
#include "tune/spec/overrides.h"
#include "tune/spec/python_options.h"
#include "tune/spec/yaml_spec.h"

namespace tune {

namespace {

void warn(const std::string& text) {
  fmt::print(stderr, "warning: {}\n", text);
}

// The sweep is over: a terminal that is not read must not keep the process.
void tell(int descriptor, const std::string& line) {
  const SideOutput::Written written = write_or_give_up(descriptor, line + "\n");
  if (descriptor == STDOUT_FILENO && written == SideOutput::Written::kRefused) {
    throw Error(ErrorCode::kProcess, "writing to stdout failed");
  }
}

// With several objectives the configurations of the front, one a line.
std::string best_lines(const Analysis& analysis) {
  if (analysis.objectives().empty()) return analysis.best_config().dump();
  std::string lines;
  for (const TrialSummary& trial : analysis.pareto()) {
    lines += (lines.empty() ? "" : "\n") + trial.config().dump();
  }
  return lines;
}

// Prints the best configuration as the last line of stdout. False: there is none, but should be.
bool print_best(const std::filesystem::path& directory) {
  std::string best;
  try {
    const Analysis analysis = Analysis::load(directory);
    if (analysis.metric().empty() && analysis.objectives().empty()) {
      tell(STDERR_FILENO, "no best configuration: the experiment has no metric");
      return true;
    }
    best = best_lines(analysis);
  } catch (const Error& error) {
    tell(STDERR_FILENO, fmt::format("no best configuration: {}", error.what()));
    return false;
  }
  tell(STDOUT_FILENO, best);
  return true;
}

int run_to_end(RunRequest request) {
  if (!request.reporter) request.reporter = make_reporter(request.spec.options);
  const RunOutcome outcome = run_experiment(std::move(request));
  const bool has_best = print_best(outcome.directory);
  if (outcome.signal != 0) return 128 + outcome.signal;
  if (outcome.errored > 0) return exit_code(ErrorCode::kTrialFailed);
  return has_best ? 0 : exit_code(ErrorCode::kBadInput);  // the metric was never reported
}

void add_on_end(const EndArguments& given, OnEnd& on_end) {
  if (!given.program.empty()) on_end.command = {given.program};
  if (given.bell) on_end.terminal = true;
  if (given.webhook.empty()) return;
  on_end.webhook = given.webhook;
  if (given.webhook.starts_with("http://") || given.webhook.starts_with("https://")) return;
  throw Error(ErrorCode::kBadInput,
              "--webhook: expected an address that begins with https:// or http://");
}

// Values of env are not stored: a resumed sweep takes them from the environment.
void fetch_env(std::map<std::string, std::string>& env) {
  for (auto entry = env.begin(); entry != env.end();) {
    if (const char* value = std::getenv(entry->first.c_str())) {
      entry->second = value;
      ++entry;
    } else {
      warn(fmt::format(
          "the value of env {} is not stored: set {} in the environment when the trials "
          "need it",
          entry->first, entry->first));
      entry = env.erase(entry);
    }
  }
}

void warn_of_changed_sweep(const ExperimentSpec& spec) {
  const std::string sweep = spec.sweep.empty() ? "" : fingerprint(spec.sweep);
  if (!sweep.empty() && sweep != spec.sweep_hash) {
    warn(fmt::format("{} has changed since the experiment began: it goes on as it was begun",
                     spec.sweep));
  }
}

void check_trainable_file(const ExperimentSpec& spec) {
  const std::string file = trainable_file(spec);
  if (file.empty()) return;  // a Python module, or programs
  const std::string plugin = fingerprint(file);
  if (plugin.empty()) {
    throw Error(ErrorCode::kBadInput,
                spec.python ? fmt::format("resuming {}: its trainable's file {} is not there: put "
                                          "it back",
                                          spec.name, file)
                            : fmt::format("resuming {}: its plugin {} is not there: build it again "
                                          "at that place",
                                          spec.name, file));
  }
  if (!spec.plugin_hash.empty() && plugin != spec.plugin_hash) {
    warn(fmt::format("{} has changed since the experiment began: trials go on with the new one",
                     file));
  }
}

// What a sweep's file goes on with by if_exists.
void check_goes_on(const RunRequest& request) {
  if (request.spec.program) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} holds the sweep of a program, not of a file: go on with `{}`",
                            request.resume.string(), how_to_resume(request.resume)));
  }
  check_trainable_file(request.spec);
}

// An experiment that has ended, and what of it is not done.
struct Ended {
  std::uint64_t errored = 0;
  bool is_cut = false;  // by its time_budget_s, before all trials had begun
};

// Nothing: it has not ended.
std::optional<Ended> ended_experiment(const std::filesystem::path& directory,
                                      const RunOptions& options) {
  const std::optional<RunRecord> record = read_record(directory);
  if (!record || record->state != RunState::kFinished) return std::nullopt;
  const Analysis analysis = Analysis::load(directory);
  const auto& trials = analysis.trials();
  Ended ended;
  ended.errored = static_cast<std::uint64_t>(
      std::count_if(trials.begin(), trials.end(),
                    [](const TrialSummary& trial) { return trial.status == TrialStatus::kError; }));
  ended.is_cut = options.time_budget_s > 0 &&
                 (options.num_samples < 0 || std::ssize(trials) < options.num_samples);
  return ended;
}

// The hints of what would go on.
std::string hints(const Ended& ended, const RunOptions& options) {
  std::string text;
  if (ended.errored > 0) text += ": --errored tries its failed trials again";
  if (ended.is_cut) {
    text += fmt::format("{}its time_budget_s of {:g} s is spent, --time-budget-s gives more",
                        text.empty() ? ": " : "; ", options.time_budget_s);
  }
  return text;
}

// Whether there is more to do than before. A grid's samples are whole grids.
bool takes_more_samples(RunOptions& options, std::optional<std::int64_t> num_samples) {
  if (!num_samples) return false;
  const bool is_more =
      options.num_samples != -1 && (*num_samples == -1 || *num_samples > options.num_samples);
  if (!is_more) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("--num-samples {}: the experiment has num_samples {} already: give "
                            "more{}",
                            *num_samples, options.num_samples,
                            options.num_samples == -1 ? ", though there is no more than no end"
                                                      : ", or -1 for no end"));
  }
  if (*num_samples == -1 && options.stop.empty() && options.time_budget_s == 0) {
    throw Error(ErrorCode::kBadInput,
                "--num-samples -1: the experiment has neither stop rule nor time_budget_s, so that "
                "nothing would end it: give a number");
  }
  options.num_samples = *num_samples;
  return true;
}

// A program brings its own budget each time, in place of the stored one.
bool takes_more_time(ExperimentSpec& spec, std::optional<double> time_budget_s) {
  if (!time_budget_s) return false;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kBadInput, fmt::format("--time-budget-s {:g}: {}", *time_budget_s, why));
  };
  const double before = spec.options.time_budget_s;
  if (!(*time_budget_s >= 0) || std::isinf(*time_budget_s)) {
    refuse("give seconds, or 0 for no end");
  }
  if (!spec.program && before == 0) refuse("the experiment has no time_budget_s that could end it");
  if (!spec.program && *time_budget_s != 0 && *time_budget_s <= before) {
    refuse(fmt::format("the experiment has time_budget_s {:g} already: give more, or 0 for no end",
                       before));
  }
  spec.options.time_budget_s = *time_budget_s;
  return true;
}

// ---- validate ----

std::string summary(const ExperimentSpec& spec, const std::optional<std::uint64_t>& total) {
  const RunOptions& options = spec.options;
  std::string text =
      fmt::format("ok: {} of {}", total ? fmt::format("{} trials", *total) : "trials without end",
                  spec.trainable);
  text += fmt::format(", each with {:g} CPUs and {:g} GPUs",
                      static_cast<double>(spec.request.cpu_units) / kUnit,
                      static_cast<double>(spec.request.gpu_units) / kUnit);
  if (spec.request.ranks > 1) text += fmt::format(" for {} ranks", spec.request.ranks);
  text += fmt::format(", scheduler {}", options.scheduler.name());
  const bool had_choice = !spec.searcher_choice.empty() && has_objective(options);
  if (had_choice) {
    text += fmt::format(", searcher auto ({})", spec.searcher_choice);
  } else if (options.searcher.name() != "basic_variant") {
    text += fmt::format(", searcher {}", options.searcher.name());
  }
  if (!options.metric.empty() && options.constraints.empty()) {
    text +=
        fmt::format(", metric {} ({})", options.metric, options.mode == Mode::kMin ? "min" : "max");
  }
  if (!options.objectives.empty() || !options.constraints.empty()) {
    text += fmt::format(", objective {}", describe(objective_of(options)));
  }
  for (const StopRule& rule : spec.stop) {
    text += fmt::format(", stop at {} {} {:g}", rule.path, rule.at_most ? "<=" : ">=", rule.bound);
  }
  return text;
}

}  // namespace

int run_command(const RunArguments& arguments) {
  SweepOptions options;
  for (const auto& [path, option, value] : arguments.shorthands) {
    parse_shorthand(option, path, value, options.overrides, options.complaints);
  }
  for (const std::string& set : arguments.sets) {
    parse_set(set, options.overrides, options.complaints);
  }
  if (!arguments.warm_start.empty()) {
    options.overrides.push_back({"--warm-start", "warm_start", Value(arguments.warm_start)});
  }
  if (arguments.dry) return dry_run(spec_from_yaml_file(arguments.sweep, std::move(options)));
  NodeResources node;
  options.node = &node;
  ExperimentSpec spec = spec_from_yaml_file(arguments.sweep, std::move(options));
  RunOptions& run = spec.options;
  if (arguments.fresh) run.if_exists = IfExists::kFresh;
  if (arguments.quiet) run.quiet = true;
  if (arguments.wait_gpus) run.wait_gpus = true;
  add_on_end(arguments.on_end, run.on_end);
  RunRequest request = request_by_if_exists(std::move(spec));
  if (!request.resume.empty()) check_goes_on(request);
  request.node = node;
  if (!arguments.keys.empty()) request.keys = std::filesystem::absolute(arguments.keys);
  if (arguments.detach) return run_detached(std::move(request), run_to_end);
  return run_to_end(std::move(request));
}

int resume_command(const ResumeArguments& arguments) {
  RunRequest request = resume_request(arguments.directory);
  add_on_end(arguments.on_end, request.spec.options.on_end);
  if (!arguments.listen.empty()) request.spec.options.listen = arguments.listen;
  const bool has_more_time = takes_more_time(request.spec, arguments.time_budget_s);
  const bool has_more_samples = takes_more_samples(request.spec.options, arguments.num_samples);
  const auto ended = ended_experiment(request.resume, request.spec.options);
  const bool is_retried = ended && ended->errored > 0 && arguments.errored;
  if (ended && !has_more_time && !has_more_samples && !is_retried) {
    fmt::print(stderr, "{} is finished, nothing to resume{}\n", arguments.directory,
               hints(*ended, request.spec.options));
    print_best(request.resume);
    return ended->errored > 0 ? exit_code(ErrorCode::kTrialFailed) : 0;
  }
  ExperimentSpec& spec = request.spec;
  if (spec.program) {
    const EndArguments& end = arguments.on_end;
    if (!end.program.empty() || !end.webhook.empty() || end.bell) {
      throw Error(ErrorCode::kBadInput,
                  "--on-end, --webhook and --bell: this is the sweep of a program: set on_end in "
                  "its RunOptions");
    }
    if (arguments.detach) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("--detach: this is the sweep of a program, which is executed: nohup "
                              "{} &",
                              how_to_resume(request.resume)));
    }
    execute_to_resume(
        *spec.program, std::filesystem::absolute(request.resume),
        {arguments.errored, arguments.quiet, arguments.wait_gpus, arguments.num_samples,
         arguments.time_budget_s, spec.options.listen});
  }
  warn_of_changed_sweep(spec);
  check_trainable_file(spec);
  fetch_env(spec.options.env);
  spec.options.quiet = arguments.quiet;
  if (arguments.wait_gpus) spec.options.wait_gpus = true;
  request.retry_errored = arguments.errored;
  if (arguments.detach) return run_detached(std::move(request), run_to_end);
  return run_to_end(std::move(request));
}

int validate_command(const ValidateArguments& arguments) {
  SweepOptions options;
  options.load_plugin = true;
  for (const std::string& set : arguments.sets) {
    parse_set(set, options.overrides, options.complaints);
  }
  ExperimentSpec spec = spec_from_yaml_file(arguments.sweep, std::move(options));
  const bool drawn = !spec.options.seed;
  if (drawn) spec.options.seed = std::random_device()();
  if (arguments.pool) return print_pool(spec);
  for (const std::string& remark : remarks_on(spec)) fmt::print(stderr, "{}\n", remark);
  const std::string learnt = read_warm_start(spec);
  if (!learnt.empty()) fmt::print(stderr, "{}\n", learnt);
  const auto searcher = searcher_of(spec);
  if (!arguments.configs) {
    fmt::print("{}\n", summary(spec, searcher->total()));
    return 0;
  }
  if (drawn) fmt::print(stderr, "seed: {}\n", *spec.options.seed);
  if (learns_from_results(spec.options.searcher.name())) {
    fmt::print(stderr,
               "searcher {}: such configurations come first; later ones follow from results\n",
               spec.options.searcher.name());
  }
  for (std::uint64_t i = 0; i < *arguments.configs; ++i) {
    const auto config = suggest_now(*searcher, TrialNumber{static_cast<std::uint32_t>(i)});
    if (!config) break;
    fmt::print("{}\n", config->dump());
  }
  return 0;
}

}  // namespace tune
