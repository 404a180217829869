#include "tune/control/experiment_setup.h"

#include <algorithm>
#include <utility>

#include "tune/search/where.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"
#include "tune/spec/searcher_setup.h"

namespace tune {

namespace {

constexpr double kUsualPatienceS = 1800;  // of agents that outlive their driver

SetupExperiment setup_message(const ExperimentSpec& spec, std::string directory) {
  const RunOptions& options = spec.options;
  SetupExperiment message;
  message.experiment_id = experiment_id_of(spec);
  message.experiment_directory = std::move(directory);
  message.trainable = spec.trainable;
  message.stop = spec.stop;
  message.checkpoint = {static_cast<std::uint32_t>(options.checkpoint.frequency),
                        options.checkpoint.at_end,
                        static_cast<std::uint32_t>(options.checkpoint.keep)};
  message.max_trial_time = from_seconds(options.max_trial_time_s);
  message.hang_timeout = from_seconds(options.hang_timeout_s);
  message.group_timeout = from_seconds(options.group_timeout_s);
  if (options.alone_timeout_s > 0) {
    message.alone_timeout =
        from_seconds(std::max(options.alone_timeout_s, options.group_timeout_s));
  }
  message.save_grace = from_seconds(options.save_grace_s);
  message.gpu_visibility = options.gpu_visibility;
  message.environment = options.env;
  message.joined.plugin = spec.plugin;
  if (spec.command.is_given()) message.joined.zygote_program = ZygoteProgram::kTuneWorker;
  if (spec.program) message.joined.earlier = spec.program->earlier;
  if (spec.python) message.joined.zygote_program = ZygoteProgram::kPython;
  message.joined.trial_memory_bytes = spec.request.memory_bytes;
  message.joined.patience = from_seconds(options.patience_s.value_or(kUsualPatienceS));
  return message;
}

void tell_rules(const RunOptions& options, TrialScheduler& scheduler) {
  if (options.where.empty()) return;
  scheduler.take_rules([where = Where(options.where, options.config)](const Config& config) {
    return where.holds(config);
  });
}

}  // namespace

ControllerSetup controller_setup(const ExperimentSpec& spec, std::string experiment_directory) {
  const Objective objective = objective_of(spec);
  ControllerSetup setup;
  setup.experiment = setup_message(spec, std::move(experiment_directory));
  setup.allocation_prefix = allocation_prefix_of(spec);
  setup.plugin = spec.plugin;
  setup.request = spec.request;
  setup.seed = objective.seed;
  setup.fail_fast = spec.options.fail_fast;
  setup.scheduler = spec.options.scheduler.make();
  setup.scheduler->configure(objective);
  tell_rules(spec.options, *setup.scheduler);
  setup.objective = setup.scheduler->objective();
  setup.searcher = spec.options.searcher.make();
  setup.space = searcher_setup(spec, setup.objective);
  setup.searcher->configure(setup.space);
  setup.space.earlier.clear();
  return setup;
}

DriverStarted driver_started(const ExperimentSpec& spec, std::uint64_t epoch, bool retry_errored) {
  DriverStarted event;
  event.epoch = epoch;
  event.retry_errored = retry_errored;
  event.num_samples = spec.options.num_samples;
  event.max_failures = static_cast<std::uint32_t>(spec.options.max_failures);
  event.max_concurrent_trials = static_cast<std::uint32_t>(spec.options.max_concurrent_trials);
  event.time_budget = from_seconds(spec.options.time_budget_s);
  event.nodes_may_join = takes_machines(spec.options);
  event.keeps_joined = awaits_agents(spec.options);
  event.has_pool = spec.options.pool.is_given();
  return event;
}

}  // namespace tune
