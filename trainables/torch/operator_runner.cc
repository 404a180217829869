#include "trainables/torch/operator_runner.h"

#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "core/error.h"
#include "trainables/torch/checkpoint.h"
#include "trainables/torch/operator_state.h"
#include "trainables/torch/random.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

fs::path made(const fs::path& directory) {
  fs::create_directories(directory);
  return directory;
}

// One has the checkpoint's folder to itself, so that predict programs find model.safetensors there.
fs::path part_directory(const fs::path& directory, std::size_t index, std::size_t count) {
  return count == 1 ? directory : directory / std::to_string(index);
}

fs::path rank_directory(const fs::path& directory, int rank) {
  return directory / ("rank_" + std::to_string(rank));
}

// Statistics of batch norms, say, which ranks gathered each for itself: rank 0's are what is saved,
// so they are what is judged.
void share_buffers(OperatorState& state) {
  if (state.group.size() == 1) return;
  for (const auto& model : state.models) {
    for (const at::Tensor& buffer : model->module().buffers()) {
      state.group.broadcast(buffer, 0, "buffers before validation");
    }
  }
}

void set_training(OperatorState& state, bool training) {
  for (const auto& model : state.models) model->module().train(training);
}

// An exception of LibTorch says what was wrong, and then lists the stack.
template <class Call>
auto without_stack(Call&& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace

OperatorRunner::OperatorRunner(std::unique_ptr<TrainingOperator> training, ProcessGroup group,
                               const Config& config, const RunnerOptions& options)
    : training_(std::move(training)) {
  training_->state_ = std::make_shared<OperatorState>(OperatorState{std::move(group), options});
  seed_all(options.seed);
  without_stack([&] { training_->setup(config); });
  // From here on random numbers, such as those of dropout, differ between ranks.
  seed_all(options.seed + static_cast<std::uint64_t>(state().group.rank()));
  if (!state().train_batches) {
    throw Error(ErrorCode::kBadInput,
                "the operator's setup registered no data: call register_data");
  }
}

OperatorRunner::~OperatorRunner() = default;

OperatorState& OperatorRunner::state() const {
  return training_->state();
}

Result OperatorRunner::train() {
  OperatorState& s = state();
  set_training(s, true);
  s.train_batches->set_epoch(s.epoch);
  s.batches = s.train_batches->batches();
  Result result = without_stack([&] { return training_->train_epoch(*s.train_batches); });
  s.global_step += s.batches;
  ++s.epoch;
  if (s.parts.scheduler_step == SchedulerStep::kEpoch) training_->step_schedulers();
  result.set("epoch", s.epoch);
  result.set("batch_count", s.batches);
  return result;
}

Result OperatorRunner::validate() {
  OperatorState& s = state();
  if (!s.validation_batches) {
    throw Error(ErrorCode::kBadInput,
                "there is no validation set: give .validation to register_data");
  }
  const torch::NoGradGuard no_gradients;
  share_buffers(s);
  set_training(s, false);
  s.validation_batches->set_epoch(0);
  Result result = without_stack([&] { return training_->validate(*s.validation_batches); });
  set_training(s, true);
  return result;
}

bool OperatorRunner::has_validation() const {
  return state().validation_batches != nullptr;
}

void OperatorRunner::save(const fs::path& directory) {
  OperatorState& s = state();
  save_random_state(made(rank_directory(directory, s.group.rank())));
  if (s.group.rank() != 0) return;
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    save_model(made(part_directory(directory, i, s.models.size())), s.models[i]->module());
  }
  for (std::size_t i = 0; i < s.parts.optimizers.size(); ++i) {
    save_optimizer(made(part_directory(directory, i, s.parts.optimizers.size())),
                   *s.parts.optimizers[i]);
  }
  if (s.precision) s.precision->save(directory);
  Value::List schedules;
  for (const LearningRateSchedule& schedule : s.schedules) schedules.push_back(schedule.state());
  Value progress = Value::make_map();
  progress.set("epoch", s.epoch);
  progress.set("global_step", s.global_step);
  progress.set("schedules", Value::make_list(std::move(schedules)));
  save_state(directory / kProgressFile, progress);
  training_->save(made(directory / "operator"));
}

void OperatorRunner::load(const fs::path& directory) {
  OperatorState& s = state();
  const Value progress = load_state(directory / kProgressFile);
  for (std::size_t i = 0; i < s.models.size(); ++i) {
    load_model(part_directory(directory, i, s.models.size()), s.models[i]->module());
  }
  for (std::size_t i = 0; i < s.parts.optimizers.size(); ++i) {
    load_optimizer(part_directory(directory, i, s.parts.optimizers.size()), *s.parts.optimizers[i]);
  }
  if (s.precision) s.precision->load(directory);
  const Value::List& schedules = progress.at("schedules").list();
  if (schedules.size() != s.schedules.size()) {
    throw Error(ErrorCode::kBadInput,
                "loading " + directory.string() + ": it holds " + std::to_string(schedules.size()) +
                    " schedules, the operator registered " + std::to_string(s.schedules.size()));
  }
  for (std::size_t i = 0; i < schedules.size(); ++i) s.schedules[i].load_state(schedules[i]);
  s.epoch = progress.get<std::int64_t>("epoch");
  s.global_step = progress.get<std::int64_t>("global_step");
  // A group of another size goes on with fresh random numbers.
  const fs::path own = rank_directory(directory, s.group.rank());
  if (fs::exists(own)) load_random_state(own);
  training_->load(directory / "operator");
}

}  // namespace tune
