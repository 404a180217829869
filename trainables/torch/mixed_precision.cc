#include "trainables/torch/mixed_precision.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <string>

#include "core/error.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Every batch norm has it in its class's name, those of users too.
bool is_batch_norm(const torch::nn::Module& module) {
  return module.name().find("BatchNorm") != std::string::npos;
}

// Type by type as Module::to does it: the tensors stay the same objects, which optimizers hold.
// Batch norms stay whole in floats, as Python's do: half counts and variances end at 65,504, and
// CPUs refuse half weights beside buffers in floats.
void convert(torch::nn::Module& model, at::ScalarType dtype) {
  model.apply([&](torch::nn::Module& module) {
    if (is_batch_norm(module)) return;
    for (const bool of_parameters : {true, false}) {
      auto tensors = of_parameters ? module.parameters(false) : module.buffers(false);
      for (at::Tensor& tensor : tensors) {
        if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(dtype));
      }
    }
  });
}

GradScalerOptions scaler_options(const MixedPrecisionOptions& options) {
  GradScalerOptions scaler = options.scaler;
  const bool is_mixed =
      options.level == PrecisionLevel::kO1 || options.level == PrecisionLevel::kO2;
  scaler.enabled = scaler.enabled && is_mixed && options.dtype == at::kHalf;
  return scaler;
}

constexpr const char* kFile = "precision.pt";

}  // namespace

Autocast::Autocast(at::DeviceType device, at::ScalarType dtype, bool enabled)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      old_dtype_(at::autocast::get_autocast_dtype(device)) {
  if (dtype != at::kHalf && dtype != at::kBFloat16) {
    bad_input(std::string("autocast to ") + c10::toString(dtype) + ": Half or BFloat16 is wanted");
  }
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, dtype);
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  // The outermost one forgets the converted weights: the next step changes them.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_dtype_);
}

Precision precision_named(std::string_view name) {
  if (name == "fp32") return Precision::kFloat32;
  if (name == "fp16") return Precision::kFloat16;
  if (name == "bf16") return Precision::kBFloat16;
  bad_input("precision is " + std::string(name) + ": fp32, fp16 or bf16 is wanted");
}

PrecisionLevel precision_level(std::string_view name) {
  if (name == "O0") return PrecisionLevel::kO0;
  if (name == "O1") return PrecisionLevel::kO1;
  if (name == "O2") return PrecisionLevel::kO2;
  if (name == "O3") return PrecisionLevel::kO3;
  bad_input("opt_level is " + std::string(name) + ": O0, O1, O2 or O3 is wanted (the letter O)");
}

MixedPrecision::MixedPrecision(const std::vector<torch::nn::Module*>& models,
                               const std::vector<torch::optim::Optimizer*>& optimizers,
                               const MixedPrecisionOptions& options)
    : options_(options),
      models_(models),
      optimizers_(optimizers),
      scaler_(scaler_options(options)) {
  if (options.dtype != at::kHalf && options.dtype != at::kBFloat16) {
    bad_input(std::string("mixed precision with ") + c10::toString(options.dtype) +
              ": Half or BFloat16 is wanted");
  }
  if (options.level < PrecisionLevel::kO2) return;
  for (const torch::optim::Optimizer* optimizer : optimizers) {
    if (!optimizer->state().empty()) {
      bad_input("levels O2 and O3 want optimizers that have not made a step");
    }
  }
  for (torch::nn::Module* model : models) convert(*model, options.dtype);
  if (options.level == PrecisionLevel::kO3) return;
  for (torch::optim::Optimizer* optimizer : optimizers) make_masters(*optimizer);
}

// From the rounded weights, as apex does: model and optimizer agree from the start.
void MixedPrecision::make_masters(torch::optim::Optimizer& optimizer) {
  std::vector<Weight>& weights = weights_[&optimizer];
  for (auto& group : optimizer.param_groups()) {
    for (at::Tensor& parameter : group.params()) {
      if (parameter.scalar_type() != options_.dtype) continue;
      const at::Tensor master =
          parameter.detach().to(at::kFloat).requires_grad_(parameter.requires_grad());
      weights.push_back({parameter, master});
      parameter = master;
    }
  }
}

Autocast MixedPrecision::autocast(at::DeviceType device) const {
  const bool is_mixed =
      options_.level == PrecisionLevel::kO1 || options_.level == PrecisionLevel::kO2;
  return Autocast(device, options_.dtype, is_mixed);
}

at::Tensor MixedPrecision::input(const at::Tensor& tensor) const {
  const bool converts = options_.level >= PrecisionLevel::kO2 && tensor.is_floating_point();
  return converts ? tensor.to(options_.dtype) : tensor;
}

void MixedPrecision::backward(const at::Tensor& loss) {
  scaler_.scale(loss).backward();
}

void MixedPrecision::unscale(torch::optim::Optimizer& optimizer) {
  for (Weight& weight : weights_[&optimizer]) {
    const at::Tensor gradient = weight.half.grad();
    weight.master.mutable_grad() = gradient.defined() ? gradient.to(at::kFloat) : at::Tensor();
  }
  scaler_.unscale(optimizer);
}

bool MixedPrecision::step() {
  bool all_stepped = true;
  for (torch::optim::Optimizer* optimizer : optimizers_) {
    if (!step(*optimizer)) all_stepped = false;
  }
  update();
  return all_stepped;
}

bool MixedPrecision::step(torch::optim::Optimizer& optimizer) {
  if (!is_unscaled(optimizer)) unscale(optimizer);
  const bool stepped = scaler_.step(optimizer);
  if (stepped) copy_to_models(weights_[&optimizer]);
  return stepped;
}

void MixedPrecision::update() {
  scaler_.update();
}

void MixedPrecision::zero_grad() {
  for (torch::nn::Module* model : models_) model->zero_grad();
}

void MixedPrecision::copy_to_models(const std::vector<Weight>& weights) {
  const at::NoGradGuard no_gradients;
  for (const Weight& weight : weights) weight.half.copy_(weight.master);
}

CheckpointWriter MixedPrecision::writer(const fs::path& directory, CheckpointCopies* copies) const {
  const Value scaler = scaler_.state();
  std::vector<at::Tensor> tensors = {
      at::tensor({scaler.get<double>("scale"), scaler.get<double>("growth_tracker")}, at::kDouble)};
  for (const torch::optim::Optimizer* optimizer : optimizers_) {
    const auto found = weights_.find(optimizer);
    if (found == weights_.end()) continue;
    for (const Weight& weight : found->second) {
      const at::Tensor master = weight.master.detach();
      tensors.push_back(copies != nullptr ? copies->copy(master) : master.cpu());
    }
  }
  return [file = directory / kFile, tensors = std::move(tensors)] {
    try {
      torch::save(tensors, file.string());
    } catch (const c10::Error& error) {
      throw Error(ErrorCode::kIo,
                  "writing " + file.string() + ": " + error.what_without_backtrace());
    }
  };
}

void MixedPrecision::load(const fs::path& directory) {
  const fs::path file = directory / kFile;
  std::vector<at::Tensor> tensors;
  try {
    torch::load(tensors, file.string(), at::Device(at::kCPU));
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::kIo, "reading " + file.string() + ": " + error.what_without_backtrace());
  }
  std::vector<Weight> weights;
  for (const torch::optim::Optimizer* optimizer : optimizers_) {
    const auto found = weights_.find(optimizer);
    if (found == weights_.end()) continue;
    weights.insert(weights.end(), found->second.begin(), found->second.end());
  }
  bool fits = tensors.size() == weights.size() + 1 && tensors[0].numel() == 2;
  for (std::size_t i = 0; fits && i < weights.size(); ++i) {
    fits = tensors[i + 1].sizes() == weights[i].master.sizes();
  }
  if (!fits)
    bad_input("loading " + file.string() + ": it is of another model or another opt_level");
  scaler_.load_state({{"scale", tensors[0][0].item<double>()},
                      {"growth_tracker", tensors[0][1].to(at::kLong).item<std::int64_t>()}});
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].master.copy_(tensors[i + 1]);
  copy_to_models(weights);
}

}  // namespace tune
