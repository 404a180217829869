#include "trainables/torch/training_operator.h"

#include <torch/torch.h>

#include <iostream>
#include <string>

#include "core/error.h"
#include "trainables/torch/operator_state.h"
#include "trainables/torch/torch_error.h"

namespace tune {

namespace {

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
MixedPrecisionOptions precision_options(const TrainingParts& parts, const OperatorState& s) {
  const bool used = parts.use_fp16 || s.options.use_fp16;
  const PrecisionLevel level = precision_level(parts.opt_level);
  if (!used && level > PrecisionLevel::kO1 && s.group.rank() == 0) {
    std::cerr << "warning: opt_level " << parts.opt_level
              << " does nothing without use_fp16: this trains in floats\n";
  }
  MixedPrecisionOptions options;
  options.level = used ? level : PrecisionLevel::kO0;
  options.dtype = s.group.device().is_cuda() ? at::kHalf : at::kBFloat16;
  return options;
}

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

// In an epoch all ranks take equally many batches, which their samplers see to. A batch of the
// whole group must hold a sample for each of them.
std::shared_ptr<DistributedSampler> sampler_of(const Dataset& data, const ProcessGroup& group,
                                               const DistributedSamplerOptions& options) {
  if (options.pad && data.size() < group.size()) {
    bad_input("register_data: the training set has " + std::to_string(data.size()) +
              " samples, less than one for each of " + std::to_string(group.size()) + " ranks");
  }
  return std::make_shared<DistributedSampler>(data.size(), options);
}

}  // namespace

// ---- Models -------------------------------------------------------------------------------------

OperatorModel::OperatorModel(AnyModel model, const ProcessGroup& group, const DdpOptions& options)
    : model_(std::move(model)), reducer_(*model_.module, group, options) {}

at::Tensor OperatorModel::forward(const at::Tensor& input) {
  if (!model_.forward) {
    bad_input(
        "the model's forward does not take one tensor and return one: override train_batch and "
        "validate_batch, and write model().call([&] { return net->forward(a, b); }) there");
  }
  return call([&] { return model_.forward(input); });
}

// Validation speaks to no other rank: ranks may validate different numbers of batches.
void OperatorModel::before_forward() {
  if (at::GradMode::is_enabled()) reducer_.before_forward();
}

void OperatorModel::after_forward(const std::vector<at::Tensor*>& outputs) {
  if (at::GradMode::is_enabled()) reducer_.after_forward(outputs);
}

// ---- Registering --------------------------------------------------------------------------------

TrainingOperator::TrainingOperator() = default;
TrainingOperator::~TrainingOperator() = default;

OperatorState& TrainingOperator::state() const {
  if (!state_) bad_input("an operator is run by a TorchTrainer or as a trial, not by itself");
  return *state_;
}

void TrainingOperator::register_training(TrainingParts parts) {
  OperatorState& s = state();
  if (!s.models.empty()) bad_input("register_training was called twice");
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
    modules.push_back(model.module.get());
  }
  std::vector<torch::optim::Optimizer*> optimizers;
  for (const auto& each : parts.optimizers) optimizers.push_back(each.get());
  s.precision.emplace(modules, optimizers, precision_options(parts, s));
  for (AnyModel& model : parts.models) {
    s.models.push_back(std::make_unique<OperatorModel>(model, s.group, parts.ddp_args));
  }
  if (const auto& module = parts.criterion.module()) module->to(device());
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i) {
    torch::optim::Optimizer& each = *parts.optimizers[i];
    scale_learning_rate(each, parts.lr_scaling, world_size(), rank());
    if (i < parts.schedulers.size()) s.schedules.emplace_back(each, parts.schedulers[i]);
  }
  s.parts = std::move(parts);
}

void TrainingOperator::register_data(const DataParts& parts) {
  OperatorState& s = state();
  if (s.train_batches) bad_input("register_data was called twice");
  if (!parts.train) bad_input("register_data: .train is missing");
  DistributedSamplerOptions sampling{.rank = rank(),
                                     .world_size = world_size(),
                                     .shuffle = parts.shuffle,
                                     .drop_last = parts.drop_last,
                                     .seed = s.options.seed};
  DataLoaderOptions loading{.batch_size = parts.batch_size,
                            .drop_last = parts.drop_last,
                            .workers = parts.workers,
                            .pin_memory = device().is_cuda()};
  s.train_batches = std::make_unique<DataLoader>(
      parts.train, sampler_of(*parts.train, s.group, sampling), loading);
  if (!parts.validation) return;
  sampling.shuffle = sampling.drop_last = sampling.pad = loading.drop_last = false;
  if (parts.validation_batch_size > 0) loading.batch_size = parts.validation_batch_size;
  s.validation_batches = std::make_unique<DataLoader>(
      parts.validation, sampler_of(*parts.validation, s.group, sampling), loading);
}

// ---- Training -----------------------------------------------------------------------------------

Result TrainingOperator::train_epoch(DataLoader& batches) {
  OperatorState& s = state();
  Metrics metrics;
  BatchInfo info{.epoch = s.epoch, .batch = 0, .global_step = s.global_step};
  for (const Batch& batch : batches) {
    add_batch(metrics, train_batch(on_device(batch), info), "train_batch", "train_loss");
    if (s.parts.scheduler_step == SchedulerStep::kBatch) step_schedulers();
    ++info.batch;
    ++info.global_step;
  }
  s.batches = info.batch;
  return epoch_result(metrics.over(s.group));
}

Result TrainingOperator::train_batch(const Batch& batch, const BatchInfo&) {
  const OperatorState& s = state();
  if (s.models.size() > 1) {
    bad_input("there are " + std::to_string(s.models.size()) +
              " models: override train_batch, or train_epoch, and say how they are trained");
  }
  if (s.parts.optimizers.size() > 1) {
    bad_input("there are " + std::to_string(s.parts.optimizers.size()) +
              " optimizers of one model: give one optimizer with several groups of parameters, or "
              "override train_batch and step each there");
  }
  at::Tensor value;
  {
    const Autocast scope = autocast();
    value = loss(model().forward(s.precision->input(batch.data)), batch.target);
  }
  step(value);
  return {{"train_loss", value.item<double>()}, {"num_samples", batch.size()}};
}

Result TrainingOperator::validate(DataLoader& batches) {
  OperatorState& s = state();
  Metrics metrics;
  BatchInfo info{.epoch = s.epoch, .batch = 0, .global_step = s.global_step};
  for (const Batch& batch : batches) {
    add_batch(metrics, validate_batch(on_device(batch), info), "validate_batch", "val_loss");
    ++info.batch;
  }
  return epoch_result(metrics.over(s.group));
}

Result TrainingOperator::validate_batch(const Batch& batch, const BatchInfo&) {
  const OperatorState& s = state();
  if (s.models.size() > 1) {
    bad_input("there are " + std::to_string(s.models.size()) +
              " models: override validate_batch, or validate, and say how they are judged");
  }
  const Autocast scope = autocast();
  const at::Tensor output = model().forward(s.precision->input(batch.data));
  Result result = {{"val_loss", loss(output, batch.target).item<double>()},
                   {"num_samples", batch.size()}};
  if (is_classification(output, batch.target)) {
    result.set("val_accuracy",
               output.argmax(1).eq(batch.target).to(at::kDouble).mean().item<double>());
  }
  return result;
}

void TrainingOperator::save(const std::filesystem::path&) {}
void TrainingOperator::load(const std::filesystem::path&) {}

// ---- The parts of own methods ------------------------------------------------------------------

OperatorModel& TrainingOperator::model(std::size_t index) {
  OperatorState& s = state();
  if (index >= s.models.size()) {
    bad_input("model(" + std::to_string(index) + "): " + std::to_string(s.models.size()) +
              " are registered");
  }
  return *s.models[index];
}

torch::optim::Optimizer& TrainingOperator::optimizer(std::size_t index) {
  OperatorState& s = state();
  if (index >= s.parts.optimizers.size()) {
    bad_input("optimizer(" + std::to_string(index) +
              "): " + std::to_string(s.parts.optimizers.size()) + " are registered");
  }
  return *s.parts.optimizers[index];
}

Batch TrainingOperator::on_device(const Batch& batch) const {
  const at::Device device = this->device();
  const auto move = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true)
                            : tensor;
  };
  return {move(batch.data), move(batch.target)};
}

void TrainingOperator::step_schedulers() {
  for (LearningRateSchedule& schedule : state().schedules) schedule.step();
}

at::Tensor TrainingOperator::loss(const at::Tensor& output, const at::Tensor& target) const {
  const Criterion& criterion = state().parts.criterion;
  if (!criterion) {
    bad_input(
        "no criterion is registered: give .criterion to register_training, or override "
        "train_batch and validate_batch");
  }
  return criterion(output, target);
}

bool TrainingOperator::step(const at::Tensor& loss, std::size_t index) {
  OperatorState& s = state();
  torch::optim::Optimizer& chosen = optimizer(index);
  model(index).reducer().zero_grad();
  model(index).reducer().guarded("backward", [&] { s.precision->backward(loss); });
  const bool done = s.precision->step(chosen);
  s.precision->update();
  return done;
}

Autocast TrainingOperator::autocast() const {
  return state().precision->autocast(device().type());
}

ProcessGroup& TrainingOperator::group() {
  return state().group;
}

int TrainingOperator::rank() const {
  return state().group.rank();
}

int TrainingOperator::world_size() const {
  return state().group.size();
}

at::Device TrainingOperator::device() const {
  return state().group.device();
}

std::int64_t TrainingOperator::epoch() const {
  return state().epoch;
}

NormLayer TrainingOperator::norm_layer_2d(bool synced) {
  return synced && world_size() > 1 ? sync_batch_norm(group()) : batch_norm_2d();
}

}  // namespace tune
