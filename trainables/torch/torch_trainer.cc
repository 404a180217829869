#include "trainables/torch/torch_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/node.h"
#include "trainables/torch/device.h"
#include "trainables/torch/random.h"
#include "trainables/torch/torch_error.h"
#include "trainables/torch/trainer_workers.h"
#include "trainables/torch/training_run.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxWorkers = 4096;

void check(const TrainerOptions& options) {
  if (options.group_timeout_s && !(*options.group_timeout_s > 0)) {
    bad_input("group_timeout_s is " + std::to_string(*options.group_timeout_s) +
              ", more than 0 is wanted");
  }
  if (options.num_workers < 1 || options.num_workers > kMaxWorkers) {
    bad_input("num_workers is " + std::to_string(options.num_workers) + ", 1 to " +
              std::to_string(kMaxWorkers) + " are wanted");
  }
  if (!(options.num_cpus_per_worker > 0)) {
    bad_input("num_cpus_per_worker is " + std::to_string(options.num_cpus_per_worker) +
              ", more than 0 is wanted");
  }
}

ProcessGroup make_group(const TrainerOptions& options) {
  GroupOptions group{.device = own_device()};
  if (options.group_timeout_s) {
    group.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(*options.group_timeout_s));
  }
  return ProcessGroup(Rendezvous::from_environment(), group);
}

Config merged(Config config, const Config& defaults) {
  for (const auto& [path, value] : defaults.leaves()) {
    if (!config.contains(path)) config.set(path, *value);
  }
  return config;
}

Result train_and_validate(TrainingRun& run) {
  Result result = run.train();
  if (!run.has_validation()) return result;
  const Result validation = run.validate();
  for (const auto& [path, value] : validation.leaves()) {
    result.set(path == "num_samples" ? "val_num_samples" : path, *value);
  }
  return result;
}

}  // namespace

// ---- As a trial ---------------------------------------------------------------------------------

OperatorTrainable::OperatorTrainable(MakeOperator make, TrainerOptions options)
    : make_(std::move(make)), options_(std::move(options)) {}

OperatorTrainable::~OperatorTrainable() = default;

void OperatorTrainable::setup(const Config& config) {
  set_threads(context().cpus());
  run_ =
      std::make_unique<TrainingRun>(make_(), make_group(options_), merged(config, options_.config),
                                    TrainingRunOptions{.use_fp16 = options_.use_fp16,
                                                       .seed = context().seed(),
                                                       .directory = context().trial_directory()});
}

Result OperatorTrainable::step() {
  return train_and_validate(*run_);
}

void OperatorTrainable::save(const fs::path& directory) {
  run_->save(directory,
             [this](CheckpointWriter write) { context().write_beside(std::move(write)); });
}

void OperatorTrainable::load(const fs::path& directory) {
  run_->load(directory);
}

SizedTrainable operator_as_trainable(const std::string& name, MakeOperator make,
                                     const TrainerOptions& options) {
  check(options);
  SizedTrainable sized;
  sized.entry.name = name;
  sized.entry.can_save = true;
  sized.entry.make = [make = std::move(make), options] {
    return std::make_unique<OperatorTrainable>(make, options);
  };
  sized.resources.cpu = options.num_workers * options.num_cpus_per_worker;
  sized.resources.gpu = options.use_gpu ? options.num_workers : 0;
  sized.resources.ranks = options.num_workers;
  sized.instead = "num_workers, num_cpus_per_worker and use_gpu of as_trainable";
  return sized;
}

// ---- In a program -------------------------------------------------------------------------------

namespace {

void check_gpus(const TrainerOptions& options) {
  const int gpus = options.use_gpu ? gpu_count() : 0;
  if (!options.use_gpu || gpus >= options.num_workers) return;
  const std::string wanted = std::to_string(options.num_workers);
  bad_input("use_gpu with num_workers " + wanted + " needs " + wanted + " GPUs, this node has " +
            std::to_string(gpus) +
            (gpus == 0 ? ": leave use_gpu out to train on CPUs" : ": lower num_workers"));
}

void check_cpus(const TrainerOptions& options) {
  const auto here = static_cast<double>(discover_node({}).cpu_units) / kUnit;
  const double wanted = options.num_workers * options.num_cpus_per_worker;
  if (wanted <= here) return;
  std::ostringstream text;
  text << "num_workers " << options.num_workers << " with num_cpus_per_worker "
       << options.num_cpus_per_worker << " needs " << wanted << " CPUs, this node has " << here
       << ": lower one of them";
  bad_input(text.str());
}

Value serve(TrainingRun& run, const Value& command) {
  const auto name = command.get<std::string>("command");
  const fs::path directory = command.get<std::string>("directory");
  if (name == "train") return run.train();
  if (name == "validate") return run.validate();
  if (name == "save") {
    run.save(directory);
  } else {
    run.load(directory);
  }
  return {};
}

}  // namespace

TorchTrainerBase::TorchTrainerBase(MakeOperator make, const TrainerOptions& options) {
  check(options);
  const int threads = std::max(1, static_cast<int>(std::floor(options.num_cpus_per_worker)));
  check_gpus(options);
  check_cpus(options);
  workers_ = std::make_unique<TrainerWorkers>(
      options.num_workers, threads, options.use_gpu, [&]() -> TrainerWorkers::Serve {
        set_threads(threads);
        auto run = std::make_shared<TrainingRun>(
            make(), make_group(options), options.config,
            TrainingRunOptions{.use_fp16 = options.use_fp16, .seed = options.seed});
        return [run](const Value& command) { return serve(*run, command); };
      });
}

TorchTrainerBase::~TorchTrainerBase() = default;

Value TorchTrainerBase::call(const std::string& command, const fs::path& directory) {
  if (!workers_) bad_input("trainer." + command + "() after shutdown(): make a new TorchTrainer");
  return workers_->call({{"command", command}, {"directory", directory.string()}});
}

Result TorchTrainerBase::train() {
  return Result(call("train"));
}

Result TorchTrainerBase::validate() {
  return Result(call("validate"));
}

void TorchTrainerBase::save(const fs::path& directory) {
  replace_folder(directory, kProgressFile, [&](const fs::path& folder) { call("save", folder); });
}

void TorchTrainerBase::load(const fs::path& directory) {
  if (!fs::exists(directory / kProgressFile)) {
    bad_input("loading " + directory.string() + ": there is no " + kProgressFile +
              " in it, so it is not a checkpoint of a TorchTrainer");
  }
  call("load", fs::absolute(directory));
}

void TorchTrainerBase::shutdown() {
  if (workers_) workers_->end();
  workers_.reset();
}

}  // namespace tune
