// TorchTrainer: trains a TrainingOperator in a group of worker processes of this machine, from a
// program; and as_trainable, which makes the same training a trial of a sweep.
//
//   tune::TorchTrainer<Images> trainer({.num_workers = 2, .config = {{"lr", 0.1}}});
//   for (int epoch = 0; epoch < 5; ++epoch) std::cout << trainer.train().dump() << "\n";
//   std::cout << trainer.validate().dump() << "\n";
//   trainer.save("model");
//
//   auto analysis = tune::run(tune::TorchTrainer<Images>::as_trainable({.num_workers = 2}),
//                             {.config = {{"lr", tune::loguniform(1e-3, 1.0)}}, ...});
//
// Workers are forked from the program as it stands when the trainer is made: what it loaded is
// shared, captures work, but it must not have started threads or CUDA by then. Sweeps from YAML
// name an operator that a plugin makes known by TUNE_TRAINING_OPERATOR, with resources_per_trial as
// for any other trainable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <typeinfo>

#include "core/value.h"
#include "trainables/registry.h"
#include "trainables/torch/training_operator.h"
#include "trainables/trainable.h"

namespace tune {

struct TrainerOptions {
  int num_workers = 1;             // 1 to 4096
  double num_cpus_per_worker = 1;  // may be less than 1; all together no more than there are
  bool use_gpu = false;            // one a worker
  bool use_fp16 = false;
  Config config = {};      // of a trial: what its own configuration leaves out
  std::uint64_t seed = 0;  // of a trial: its own seed goes before
  // The time that ranks wait for each other. Empty: a trial's is the sweep's, a trainer's 60 s.
  std::optional<double> group_timeout_s = {};
};

using MakeOperator = std::function<std::unique_ptr<TrainingOperator>()>;

// An operator as a trial: each step is an epoch of training, or its next `report_every` batches,
// then validation if there is data for it. The result has train_loss, val_loss, val_accuracy,
// num_samples (trained with, on all ranks), epoch and batch_count, and what else the operator
// reports; validation's number of samples is val_num_samples.
class OperatorTrainable : public Trainable {
 public:
  explicit OperatorTrainable(MakeOperator make, TrainerOptions options = {});
  ~OperatorTrainable() override;
  void setup(const Config& config) override;
  Result step() override;
  void save(const std::filesystem::path& directory) override;
  void load(const std::filesystem::path& directory) override;

 private:
  MakeOperator make_;
  TrainerOptions options_;
  std::unique_ptr<TrainingRun> run_;
};

SizedTrainable operator_as_trainable(const std::string& name, MakeOperator make,
                                     const TrainerOptions& options);

class TrainerWorkers;

// The workers of a TorchTrainer, of any operator. Errors end all of them; each is an Error that
// names the rank and says what it threw, or how its process ended.
class TorchTrainerBase {
 public:
  // Returns when every worker is set up. Throws Error (kBadInput) also for options that do not fit
  // this machine.
  TorchTrainerBase(MakeOperator make, const TrainerOptions& options);
  ~TorchTrainerBase();
  TorchTrainerBase(const TorchTrainerBase&) = delete;

  Result train();  // as a step of OperatorTrainable, without validation
  Result validate();
  // A checkpoint as those of trials. An older one, or an empty folder, of that name is replaced
  // when the new one is whole; Error (kBadInput) for a folder that holds anything else.
  void save(const std::filesystem::path& directory);
  void load(const std::filesystem::path& directory);
  void shutdown();  // ends the workers; the destructor does as well

 private:
  Value call(const std::string& command, const std::filesystem::path& directory = {});
  std::unique_ptr<TrainerWorkers> workers_;
};

template <class Operator>
class TorchTrainer : public TorchTrainerBase {
 public:
  explicit TorchTrainer(const TrainerOptions& options = {}) : TorchTrainerBase(make(), options) {}

  // For tune::run, which takes the resources of each trial from the options.
  static SizedTrainable as_trainable(const TrainerOptions& options = {}) {
    return operator_as_trainable(short_type_name(typeid(Operator)), make(), options);
  }

 private:
  static MakeOperator make() {
    return [] { return std::make_unique<Operator>(); };
  }
};

}  // namespace tune

// Makes an operator known to YAML sweeps under its own name. At namespace scope of one source file.
#define TUNE_TRAINING_OPERATOR(Operator)                                                           \
  namespace {                                                                                      \
  struct TUNE_DETAIL_JOIN(Trainable_, Operator) : ::tune::OperatorTrainable {                      \
    TUNE_DETAIL_JOIN(Trainable_, Operator)                                                         \
    () : OperatorTrainable([] { return std::make_unique<Operator>(); }) {}                         \
  };                                                                                               \
  const ::tune::RegisterTrainable TUNE_DETAIL_JOIN(tune_register_, __COUNTER__){                   \
      ::tune::trainable_entry<TUNE_DETAIL_JOIN(Trainable_, Operator)>(#Operator), &::tune_plugin}; \
  }
