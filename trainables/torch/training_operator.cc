#include "trainables/torch/training_operator.h"

#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/torch_error.h"
#include "trainables/torch/training_run.h"

namespace tune {

namespace {

// Counts samples among metrics that are means over them.
constexpr const char* kSamplesMetric = "num_samples";

// Means over a batch, as train_batch and validate_batch return them.
void add_batch(Metrics& metrics, const Result& result, const std::string& from,
               const std::string& example) {
  const Value* samples = result.find("num_samples");
  if (samples != nullptr && samples->type() != Value::Type::kInt) {
    bad_input(from + " returned " + samples->dump() +
              " as num_samples, a whole number is wanted: batch.size()");
  }
  if (samples == nullptr) {
    bad_input(from + " returned no num_samples, the number of samples its means are over: write " +
              "return {{\"" + example +
              "\", loss.item<double>()}, {\"num_samples\", batch.size()}}");
  }
  for (const auto& [path, value] : result.leaves()) {
    if (path == "num_samples" || !value->is_number()) continue;
    metrics.add(path, value->number(), samples->integer());
  }
  metrics.add(kSamplesMetric, 1, samples->integer());
}

// num_samples are those of all ranks.
Result epoch_result(const Metrics& metrics) {
  Result result = metrics.result();
  result.erase(kSamplesMetric);
  result.set("num_samples", metrics.contains(kSamplesMetric) ? metrics.samples(kSamplesMetric) : 0);
  return result;
}

// Half precision on GPUs, and what CPUs know of it.
MixedPrecisionOptions precision_options(const TrainingParts& parts, bool use_fp16,
                                        const ProcessGroup& group) {
  const Precision precision =
      parts.precision.value_or(!parts.use_fp16 && !use_fp16 ? Precision::kFloat32
                               : group.device().is_cuda()   ? Precision::kFloat16
                                                            : Precision::kBFloat16);
  const bool used = precision != Precision::kFloat32;
  const PrecisionLevel level = precision_level(parts.opt_level);
  if (!used && level > PrecisionLevel::kO1 && group.rank() == 0) {
    std::cerr << "warning: opt_level " << parts.opt_level
              << " does nothing without use_fp16: this trains in floats\n";
  }
  MixedPrecisionOptions options;
  options.level = used ? level : PrecisionLevel::kO0;
  options.dtype = precision == Precision::kFloat16 ? at::kHalf : at::kBFloat16;
  return options;
}

TrainingStepOptions step_options(const TrainingParts& parts) {
  return {.criterion = parts.criterion,
          .clip = parts.clip,
          .accumulate = parts.accumulate,
          .ema_decay = parts.ema_decay,
          .ddp = parts.ddp_args,
          .split_when_out_of_memory = parts.split_when_out_of_memory,
          .cuda_graph = parts.cuda_graph};
}

void expect_criterion(const Criterion& criterion) {
  if (criterion) return;
  bad_input(
      "no criterion is registered: give .criterion to register_training, or override train_batch "
      "and validate_batch");
}

// Sets a value for the time of a loop.
class Measuring {
 public:
  Measuring(Metrics*& place, Metrics& metrics) : place_(place), before_(place) { place = &metrics; }
  ~Measuring() { place_ = before_; }
  Measuring(const Measuring&) = delete;

 private:
  Metrics*& place_;
  Metrics* before_;
};

// Calls of a pointer that is null would end the process without a word.
template <class Parts, class IsNull>
void expect_all(const char* name, const Parts& parts, IsNull is_null) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_null(parts[i])) {
      bad_input(std::string("register_training: ") + name + "[" + std::to_string(i) + "] is null");
    }
  }
}

bool is_classification(const at::Tensor& output, const at::Tensor& target) {
  return output.dim() == 2 && target.dim() == 1 && output.size(0) == target.size(0) &&
         at::isIntegralType(target.scalar_type(), /*includeBool=*/false);
}

// The tensors stay the same objects, which optimizers hold.
void lay_channels_last(torch::nn::Module& model) {
  for (at::Tensor& weight : model.parameters()) {
    if (weight.dim() != 4) continue;
    weight.set_data(weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  }
}

// The host is ahead of a GPU: the batch is copied there while it computes with the one before.
Batch moved_to(at::Device device, const Batch& batch) {
  Batch moved = batch;
  std::vector<at::Tensor*> tensors{&moved.data, &moved.target};
  for (at::Tensor& tensor : moved.more) tensors.push_back(&tensor);
  std::erase_if(tensors,
                [&](const at::Tensor* one) { return !one->defined() || one->device() == device; });
  const auto are_on_cpu = [](const at::Tensor* one) { return one->is_cpu(); };
  if (device.is_cuda() && std::ranges::all_of(tensors, are_on_cpu)) {
    std::vector<at::Tensor> given;
    for (const at::Tensor* one : tensors) given.push_back(*one);
    const std::vector<at::Tensor> copies = cuda_part().copied_beside(given);
    for (std::size_t i = 0; i < tensors.size(); ++i) *tensors[i] = copies[i];
  } else {
    for (at::Tensor* one : tensors) *one = one->to(device);
  }
  return moved;
}

// In an epoch all ranks take equally many batches, which their samplers see to. A batch of the
// whole group must hold a sample for each of them.
std::shared_ptr<Sampler> sampler_of(const Dataset& data, const ProcessGroup& group,
                                    const DistributedSamplerOptions& options) {
  if (options.pad && data.size() < group.size()) {
    bad_input("register_data: the training set has " + std::to_string(data.size()) +
              " samples, less than one for each of " + std::to_string(group.size()) + " ranks");
  }
  return data.sampler(options);
}

}  // namespace

// ---- Registering --------------------------------------------------------------------------------

TrainingOperator::TrainingOperator() = default;
TrainingOperator::~TrainingOperator() = default;

TrainingRun& TrainingOperator::run() const {
  if (run_ == nullptr) {
    bad_input("an operator is run by a TorchTrainer or as a trial, not by itself");
  }
  return *run_;
}

void TrainingOperator::register_training(TrainingParts parts) {
  TrainingRun& r = run();
  if (!r.steps_.empty()) bad_input("register_training was called twice");
  if (parts.models.empty()) bad_input("register_training: .models is empty, give at least one");
  if (parts.optimizers.empty()) {
    bad_input("register_training: .optimizers is empty, give at least one");
  }
  if (parts.schedulers.size() > parts.optimizers.size()) {
    bad_input("register_training: " + std::to_string(parts.schedulers.size()) + " schedulers for " +
              std::to_string(parts.optimizers.size()) + " optimizers: one each at most");
  }
  expect_all(".models", parts.models, [](const AnyModel& model) { return !model.module; });
  expect_all(".optimizers", parts.optimizers, [](const auto& optimizer) { return !optimizer; });
  expect_all(".schedulers", parts.schedulers, [](const auto& schedule) { return !schedule; });
  std::vector<torch::nn::Module*> modules;
  for (const AnyModel& model : parts.models) {
    model.module->to(device());
    if (parts.channels_last) lay_channels_last(*model.module);
    modules.push_back(model.module.get());
  }
  std::vector<torch::optim::Optimizer*> optimizers;
  for (const auto& each : parts.optimizers) optimizers.push_back(each.get());
  r.precision_ = std::make_shared<MixedPrecision>(
      modules, optimizers, precision_options(parts, r.options_.use_fp16, r.group_));
  for (std::size_t i = 0; i < parts.models.size(); ++i) {
    r.steps_.push_back(std::make_unique<TrainingStep>(
        parts.models[i], i < parts.optimizers.size() ? parts.optimizers[i] : nullptr, r.group_,
        step_options(parts), r.precision_));
  }
  if (const auto& module = parts.criterion.module()) module->to(device());
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i) {
    torch::optim::Optimizer& each = *parts.optimizers[i];
    scale_learning_rate(each, parts.lr_scaling, world_size(), rank());
    if (i < parts.schedulers.size()) r.schedules_.emplace_back(each, parts.schedulers[i]);
  }
  if (parts.profile.batches != std::array<std::int64_t, 2>{0, 0}) {
    r.trace_.emplace(parts.profile,
                     r.options_.directory / ("trace_rank_" + std::to_string(rank()) + ".json"),
                     device().is_cuda());
  }
  r.parts_ = std::move(parts);
}

void TrainingOperator::register_data(const DataParts& parts) {
  TrainingRun& r = run();
  if (r.train_batches_) bad_input("register_data was called twice");
  if (!parts.train) bad_input("register_data: .train is missing");
  DistributedSamplerOptions sampling{.rank = rank(),
                                     .world_size = world_size(),
                                     .shuffle = parts.shuffle,
                                     .drop_last = parts.drop_last,
                                     .seed = r.options_.seed};
  DataLoaderOptions loading{.batch_size = parts.batch_size,
                            .drop_last = parts.drop_last,
                            .workers = parts.workers,
                            .pin_memory = device().is_cuda(),
                            .collate = parts.collate};
  r.train_batches_ = std::make_unique<DataLoader>(
      parts.train, sampler_of(*parts.train, r.group_, sampling), loading);
  r.train_batches_->set_batches_per_loop(parts.report_every);
  r.report_every_ = parts.report_every;
  r.prepare_ = parts.prepare;
  if (!parts.validation) return;
  sampling.shuffle = sampling.drop_last = sampling.pad = loading.drop_last = false;
  if (parts.validation_batch_size > 0) loading.batch_size = parts.validation_batch_size;
  r.validation_batches_ = std::make_unique<DataLoader>(
      parts.validation, sampler_of(*parts.validation, r.group_, sampling), loading);
}

// ---- Training -----------------------------------------------------------------------------------

Result TrainingOperator::train_epoch(DataLoader& batches) {
  TrainingRun& r = run();
  Metrics metrics;
  const Measuring measuring(r.metrics_, metrics);
  BatchInfo info{
      .epoch = r.epoch_, .batch = batches.batches_given(), .global_step = r.global_step_};
  const std::int64_t begin = info.batch;
  std::int64_t left = batches.batches_left();
  for (const Batch& batch : batches) {
    for (const auto& step : r.steps_) step->set_batches_left(left);
    --left;
    if (r.trace_) r.trace_->before(info.global_step);
    add_batch(metrics, train_batch(on_device(batch), info), "train_batch", "train_loss");
    if (r.trace_) r.trace_->after(info.global_step);
    if (r.parts_.scheduler_step == SchedulerStep::kBatch) step_schedulers();
    ++info.batch;
    ++info.global_step;
  }
  r.batches_ = info.batch - begin;
  return epoch_result(metrics.over(r.group_));
}

Result TrainingOperator::train_batch(const Batch& batch, const BatchInfo&) {
  const TrainingRun& r = run();
  if (r.steps_.size() > 1) {
    bad_input("there are " + std::to_string(r.steps_.size()) +
              " models: override train_batch, or train_epoch, and say how they are trained");
  }
  if (r.parts_.optimizers.size() > 1) {
    bad_input("there are " + std::to_string(r.parts_.optimizers.size()) +
              " optimizers of one model: give one optimizer with several groups of parameters, or "
              "override train_batch and step each there");
  }
  expect_criterion(r.parts_.criterion);
  Result result = {{"num_samples", batch.size()}};
  TrainingStep& step = model();
  const bool is_due = step.is_due();
  put(result, "train_loss", step.run(batch), batch.size());
  if (is_due && step.gradient_norm().defined()) {
    put(result, "gradient_norm", step.gradient_norm(), batch.size());
  }
  return result;
}

Result TrainingOperator::validate(DataLoader& batches) {
  TrainingRun& r = run();
  Metrics metrics;
  const Measuring measuring(r.metrics_, metrics);
  BatchInfo info{.epoch = r.epoch_, .batch = 0, .global_step = r.global_step_};
  for (const Batch& batch : batches) {
    add_batch(metrics, validate_batch(on_device(batch), info), "validate_batch", "val_loss");
    ++info.batch;
  }
  return epoch_result(metrics.over(r.group_));
}

Result TrainingOperator::validate_batch(const Batch& batch, const BatchInfo&) {
  const TrainingRun& r = run();
  if (r.steps_.size() > 1) {
    bad_input("there are " + std::to_string(r.steps_.size()) +
              " models: override validate_batch, or validate, and say how they are judged");
  }
  const Autocast scope = autocast();
  const at::Tensor output = model().forward(r.precision_->input(batch.data));
  Result result = {{"num_samples", batch.size()}};
  put(result, "val_loss", loss(output, batch.target), batch.size());
  if (is_classification(output, batch.target)) {
    put(result, "val_accuracy", output.argmax(1).eq(batch.target).to(at::kDouble).mean(),
        batch.size());
  }
  return result;
}

void TrainingOperator::save(const std::filesystem::path&) {}
void TrainingOperator::load(const std::filesystem::path&) {}

// ---- The parts of own methods ------------------------------------------------------------------

TrainingStep& TrainingOperator::model(std::size_t index) {
  TrainingRun& r = run();
  if (index >= r.steps_.size()) {
    bad_input("model(" + std::to_string(index) + "): " + std::to_string(r.steps_.size()) +
              " are registered");
  }
  return *r.steps_[index];
}

torch::optim::Optimizer& TrainingOperator::optimizer(std::size_t index) {
  TrainingRun& r = run();
  if (index >= r.parts_.optimizers.size()) {
    bad_input("optimizer(" + std::to_string(index) +
              "): " + std::to_string(r.parts_.optimizers.size()) + " are registered");
  }
  return *r.parts_.optimizers[index];
}

void TrainingOperator::measure(const std::string& name, const at::Tensor& mean,
                               std::int64_t samples) {
  Metrics* metrics = run().metrics_;
  if (metrics == nullptr) {
    bad_input("measure(\"" + name +
              "\") is for train_batch and validate_batch as the default loops call them: a custom "
              "train_epoch or validate adds it to a tune::Metrics");
  }
  metrics->add(name, mean, samples);
}

// Into the loop's sums, or into a result that a custom loop reads.
void TrainingOperator::put(Result& result, const std::string& name, const at::Tensor& mean,
                           std::int64_t samples) {
  if (run().metrics_ != nullptr) {
    measure(name, mean, samples);
  } else {
    result.set(name, mean.item<double>());
  }
}

Batch TrainingOperator::on_device(const Batch& batch) const {
  Batch moved = moved_to(device(), batch);
  const TrainingRun& r = run();
  if (r.prepare_) moved.data = r.prepare_(moved.data);
  if (r.parts_.channels_last && moved.data.dim() == 4) {
    moved.data = moved.data.contiguous(at::MemoryFormat::ChannelsLast);
  }
  return moved;
}

void TrainingOperator::step_schedulers() {
  for (LearningRateSchedule& schedule : run().schedules_) schedule.step();
}

at::Tensor TrainingOperator::loss(const at::Tensor& output, const at::Tensor& target) const {
  const Criterion& criterion = run().parts_.criterion;
  expect_criterion(criterion);
  return criterion(output, target);
}

bool TrainingOperator::step(const at::Tensor& loss, std::size_t index) {
  optimizer(index);  // an error where there is none
  return model(index).learn(loss);
}

Autocast TrainingOperator::autocast() const {
  return run().precision_->autocast(device().type());
}

ProcessGroup& TrainingOperator::group() {
  return run().group_;
}

int TrainingOperator::rank() const {
  return run().group_.rank();
}

int TrainingOperator::world_size() const {
  return run().group_.size();
}

at::Device TrainingOperator::device() const {
  return run().group_.device();
}

std::int64_t TrainingOperator::epoch() const {
  return run().epoch_;
}

NormLayer TrainingOperator::norm_layer_2d(bool synced) {
  return synced && world_size() > 1 ? sync_batch_norm(group()) : batch_norm_2d();
}

}  // namespace tune
