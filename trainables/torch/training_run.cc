#include "trainables/torch/training_run.h"

#include <torch/torch.h>

#include <stdexcept>
#include <string>

#include "core/error.h"
#include "trainables/torch/checkpoint.h"
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

// An exception of LibTorch says what was wrong, and then lists the stack.
template <class Call>
auto without_stack(Call&& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

// Of a sampler's state that a rank of `before` ranks saved, for one of `now`. Ranks take the
// samples of one order in turn: so many of all have been trained with.
Value position_for(Value state, std::int64_t before, std::int64_t now) {
  state.set("position", state.get<std::int64_t>("position") * before / now);
  return state;
}

}  // namespace

TrainingRun::TrainingRun(std::unique_ptr<TrainingOperator> training, ProcessGroup group,
                         const Config& config, const TrainingRunOptions& options)
    : training_(std::move(training)), group_(std::move(group)), options_(options) {
  training_->run_ = this;
  seed_all(options.seed);
  without_stack([&] { training_->setup(config); });
  // From here on random numbers, such as those of dropout, differ between ranks.
  seed_all(options.seed + static_cast<std::uint64_t>(group_.rank()));
  if (!train_batches_) {
    throw Error(ErrorCode::kBadInput,
                "the operator's setup registered no data: call register_data");
  }
}

TrainingRun::~TrainingRun() = default;

Result TrainingRun::train() {
  set_training(true);
  batches_ = train_batches_->batches_left();
  Result result = without_stack([&] { return training_->train_epoch(*train_batches_); });
  global_step_ += batches_;
  result.set("epoch", epoch_ + 1);
  result.set("batch_count", batches_);
  if (report_every_ == 0 || train_batches_->epoch() != epoch_) end_epoch();
  return result;
}

void TrainingRun::end_epoch() {
  ++epoch_;
  // A custom train_epoch may have left its loop early.
  if (train_batches_->epoch() != epoch_) train_batches_->set_epoch(epoch_);
  if (parts_.scheduler_step == SchedulerStep::kEpoch) training_->step_schedulers();
}

Result TrainingRun::validate() {
  if (!validation_batches_) {
    throw Error(ErrorCode::kBadInput,
                "there is no validation set: give .validation to register_data");
  }
  const torch::NoGradGuard no_gradients;
  share_buffers();
  std::deque<WeightAverage::InUse> averages;
  for (const auto& step : steps_) {
    if (const WeightAverage* average = step->average()) averages.emplace_back(*average);
  }
  set_training(false);
  validation_batches_->set_epoch(0);
  Result result = without_stack([&] { return training_->validate(*validation_batches_); });
  set_training(true);
  return result;
}

// Statistics of batch norms, say, which ranks gathered each for itself: rank 0's are what is saved,
// so they are what is judged.
void TrainingRun::share_buffers() {
  if (group_.size() == 1) return;
  for (const auto& step : steps_) {
    for (const at::Tensor& buffer : step->module().buffers()) {
      group_.broadcast(buffer, 0, "buffers before validation");
    }
  }
}

void TrainingRun::set_training(bool training) {
  for (const auto& step : steps_) step->module().train(training);
}

// ---- Checkpoints --------------------------------------------------------------------------------

void TrainingRun::save(const fs::path& directory) {
  writer(directory, nullptr)();
}

void TrainingRun::save(const fs::path& directory,
                       const std::function<void(CheckpointWriter)>& beside) {
  if (!parts_.asynchronous_checkpoints) return save(directory);
  beside(writer(directory, &copies_));
}

// The operator's own part is written at once.
CheckpointWriter TrainingRun::writer(const fs::path& directory, CheckpointCopies* copies) {
  std::vector<CheckpointWriter> parts;
  parts.push_back(random_state_writer(made(rank_directory(directory, group_.rank()))));
  if (group_.rank() != 0) return all_of(std::move(parts));
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const fs::path part = made(part_directory(directory, i, steps_.size()));
    parts.push_back(model_writer(part, steps_[i]->module(), copies));
    if (const WeightAverage* average = steps_[i]->average()) {
      parts.push_back(average->writer(part, copies));
    }
  }
  for (std::size_t i = 0; i < parts_.optimizers.size(); ++i) {
    parts.push_back(optimizer_writer(made(part_directory(directory, i, parts_.optimizers.size())),
                                     *parts_.optimizers[i], copies));
  }
  if (precision_) parts.push_back(precision_->writer(directory, copies));
  parts.push_back(state_writer(directory / kProgressFile, progress()));
  training_->save(made(directory / "operator"));
  return all_of(std::move(parts));
}

void TrainingRun::load(const fs::path& directory) {
  const Value progress = load_state(directory / kProgressFile);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const fs::path part = part_directory(directory, i, steps_.size());
    load_model(part, steps_[i]->module());
    if (WeightAverage* average = steps_[i]->average()) average->load(part);
  }
  for (std::size_t i = 0; i < parts_.optimizers.size(); ++i) {
    load_optimizer(part_directory(directory, i, parts_.optimizers.size()), *parts_.optimizers[i]);
  }
  if (precision_) precision_->load(directory);
  load_progress(progress, directory);
  // A group of another size goes on with fresh random numbers.
  const fs::path own = rank_directory(directory, group_.rank());
  if (fs::exists(own)) load_random_state(own);
  training_->load(directory / "operator");
}

Value TrainingRun::progress() const {
  Value::List schedules;
  for (const LearningRateSchedule& schedule : schedules_) schedules.push_back(schedule.state());
  Value progress = Value::make_map();
  progress.set("epoch", epoch_);
  progress.set("global_step", global_step_);
  progress.set("schedules", Value::make_list(std::move(schedules)));
  progress.set("data", train_batches_->state());
  progress.set("ranks", group_.size());
  return progress;
}

void TrainingRun::load_progress(const Value& progress, const fs::path& directory) {
  const Value::List& schedules = progress.at("schedules").list();
  if (schedules.size() != schedules_.size()) {
    throw Error(ErrorCode::kBadInput,
                "loading " + directory.string() + ": it holds " + std::to_string(schedules.size()) +
                    " schedules, the operator registered " + std::to_string(schedules_.size()));
  }
  for (std::size_t i = 0; i < schedules.size(); ++i) schedules_[i].load_state(schedules[i]);
  epoch_ = progress.get<std::int64_t>("epoch");
  global_step_ = progress.get<std::int64_t>("global_step");
  if (const Value* data = progress.find("data")) {
    train_batches_->load_state(
        position_for(*data, progress.get<std::int64_t>("ranks"), group_.size()));
  } else {
    train_batches_->set_epoch(epoch_);  // of a version that saved at the end of epochs alone
  }
}

}  // namespace tune
