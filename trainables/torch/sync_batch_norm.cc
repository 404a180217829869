#include "trainables/torch/sync_batch_norm.h"

#include <ATen/OpMathType.h>
#include <torch/nn/functional/batchnorm.h>

#include <torch/csrc/autograd/custom_function.h>

#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A forward's facts besides its input and parameters.
struct Layer {
  ProcessGroup group;
  Tensor running_mean, running_var;  // undefined: not tracked
  double momentum = 0;
  double eps = 0;
};

// Of all ranks together.
struct Statistics {
  Tensor mean, invstd;  // by feature
  Tensor count;         // of values a feature; on CUDA those of each rank that has any
};

// Every dimension but that of the features.
std::vector<std::int64_t> other_dimensions(const Tensor& input) {
  std::vector<std::int64_t> dimensions{0};
  for (std::int64_t i = 2; i < input.dim(); ++i) dimensions.push_back(i);
  return dimensions;
}

// (features) so that it goes with the shape of `input`.
Tensor along_features(const Tensor& values, const Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

std::int64_t values_a_feature(const Tensor& input) {
  return input.numel() == 0 ? 0 : input.numel() / input.size(1);
}

[[noreturn]] void refuse_one_value(std::int64_t count) {
  throw Error(ErrorCode::kBadInput,
              "batch normalisation over the batches of all ranks: they hold " +
                  std::to_string(count) +
                  " values a feature, at least 2 are wanted for a variance");
}

// Two sums over the ranks in doubles: first the mean, then the squared distances from it. One sum
// of squares would lose the variance where the mean is large.
namespace cpu {

// Half-precision values are computed with in floats, as LibTorch's own batch normalisation does.
Tensor computable(const Tensor& values) {
  return values.to(at::toOpMathType(values.scalar_type()));
}

Statistics statistics(const Tensor& given, Layer& layer) {
  const Tensor input = computable(given);
  const auto dimensions = other_dimensions(input);
  const auto local = static_cast<double>(values_a_feature(input));
  Tensor sums =
      at::cat({input.sum(dimensions, false, at::kDouble), at::full({1}, local, at::kDouble)});
  layer.group.all_reduce(sums, Reduce::kSum, "the means of a batch normalisation");
  const std::int64_t features = input.size(1);
  const double count = sums[features].item<double>();
  if (count < 2) refuse_one_value(static_cast<std::int64_t>(count));
  const Tensor mean = sums.narrow(0, 0, features).div(count);
  const Tensor centred = input - along_features(mean.to(input.scalar_type()), input);
  Tensor squares = centred.square().sum(dimensions, false, at::kDouble);
  layer.group.all_reduce(squares, Reduce::kSum, "the variances of a batch normalisation");
  if (layer.running_mean.defined()) {
    const auto type = layer.running_mean.scalar_type();
    layer.running_mean.lerp_(mean.to(type), layer.momentum);
    layer.running_var.lerp_(squares.div(count - 1).to(type), layer.momentum);
  }
  return {mean, squares.div(count).add_(layer.eps).rsqrt_(), at::full({1}, count, at::kDouble)};
}

Tensor normalised(const Tensor& input, const Tensor& mean, const Tensor& invstd) {
  const auto type = input.scalar_type();
  return (input - along_features(mean.to(type), input)) * along_features(invstd.to(type), input);
}

Tensor apply(const Tensor& given, const Tensor& weight, const Tensor& bias, const Statistics& of) {
  const Tensor input = computable(given);
  const auto type = input.scalar_type();
  Tensor output = normalised(input, of.mean, of.invstd);
  if (weight.defined()) output.mul_(along_features(weight.to(type), input));
  if (bias.defined()) output.add_(along_features(bias.to(type), input));
  return output.to(given.scalar_type());
}

// Of input, weight and bias. The latter two are of this rank's batch alone: the code that averages
// the gradients of a model averages these as well.
variable_list gradients(const Tensor& given_gradient, const Tensor& given, const Tensor& weight,
                        const Statistics& of, ProcessGroup& group) {
  const Tensor output_gradient = computable(given_gradient);
  const Tensor input = computable(given);
  const auto dimensions = other_dimensions(input);
  const auto type = input.scalar_type();
  const Tensor x = normalised(input, of.mean, of.invstd);
  Tensor sums = at::stack({output_gradient.sum(dimensions, false, at::kDouble),
                           (output_gradient * x).sum(dimensions, false, at::kDouble)});
  variable_list result(3);
  if (weight.defined()) {
    result[1] = sums[1].to(weight.scalar_type(), false, true);
    result[2] = sums[0].to(weight.scalar_type(), false, true);
  }
  group.all_reduce(sums, Reduce::kSum, "the gradients of a batch normalisation");
  const Tensor means = sums.div_(of.count).to(type);
  Tensor scale = of.invstd.to(type);
  if (weight.defined()) scale = scale * weight.to(type);
  result[0] =
      ((output_gradient - along_features(means[0], input) - x * along_features(means[1], input)) *
       along_features(scale, input))
          .to(given.scalar_type());
  return result;
}

}  // namespace cpu

// The kernels that Python's SyncBatchNorm uses, in its order.
namespace cuda {

Statistics statistics(const Tensor& input, Layer& layer) {
  const std::int64_t features = input.size(1);
  const std::int64_t local = values_a_feature(input);
  const auto type = input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto options = input.options().dtype(type);
  Tensor own = at::zeros({2 * features + 1}, options);
  if (local > 0) {
    const auto [mean, invstd] = at::batch_norm_stats(input, layer.eps);
    own = at::cat({mean, invstd, at::full({1}, static_cast<double>(local), options)});
  }
  Tensor all = at::stack(layer.group.all_gather(own, "the statistics of a batch normalisation"));
  // A rank without samples has no mean to weigh in.
  all = all.index_select(0, all.select(1, 2 * features).ge(1).nonzero().view(-1));
  const Tensor counts = all.select(1, 2 * features).contiguous();
  const auto total = counts.sum().item<std::int64_t>();
  if (total < 2) refuse_one_value(total);
  const auto optional = [](const Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  const auto counts_type = layer.running_mean.defined() ? layer.running_mean.scalar_type() : type;
  const auto [mean, invstd] = at::batch_norm_gather_stats_with_counts(
      input, all.narrow(1, 0, features).contiguous(),
      all.narrow(1, features, features).contiguous(), optional(layer.running_mean),
      optional(layer.running_var), layer.momentum, layer.eps, counts.to(counts_type));
  return {mean, invstd, counts.to(at::kInt)};
}

Tensor apply(const Tensor& input, const Tensor& weight, const Tensor& bias, const Statistics& of) {
  if (input.numel() == 0) return at::empty_like(input);
  return at::batch_norm_elemt(input, weight, bias, of.mean, of.invstd, 0);
}

variable_list gradients(const Tensor& output_gradient, const Tensor& input, const Tensor& weight,
                        const Statistics& of, ProcessGroup& group) {
  const std::int64_t features = input.size(1);
  Tensor sums = at::zeros({2, features}, of.mean.options());
  variable_list result(3);
  if (input.numel() > 0) {
    const auto [sum, sum_centred, weight_gradient, bias_gradient] =
        at::batch_norm_backward_reduce(output_gradient, input, of.mean, of.invstd, weight, true,
                                       weight.defined(), weight.defined());
    sums = at::stack({sum, sum_centred});
    result[1] = weight_gradient;
    result[2] = bias_gradient;
  } else if (weight.defined()) {
    result[1] = at::zeros_like(weight);
    result[2] = at::zeros_like(weight);
  }
  group.all_reduce(sums, Reduce::kSum, "the gradients of a batch normalisation");
  result[0] = input.numel() == 0 ? at::empty_like(input)
                                 : at::batch_norm_backward_elemt(
                                       output_gradient, input, of.mean, of.invstd, weight,
                                       sums[0].contiguous(), sums[1].contiguous(), of.count);
  return result;
}

}  // namespace cuda

struct Normalise : torch::autograd::Function<Normalise> {
  static Tensor forward(AutogradContext* context, const Tensor& given, const Tensor& weight,
                        const Tensor& bias, Layer* layer) {
    const Tensor input = given.contiguous(given.suggest_memory_format());
    const Statistics of =
        input.is_cuda() ? cuda::statistics(input, *layer) : cpu::statistics(input, *layer);
    context->save_for_backward({input, weight, of.mean, of.invstd, of.count});
    // The layer may be gone when backward runs; the group is a handle.
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<GroupHolder>(layer->group));
    return input.is_cuda() ? cuda::apply(input, weight, bias, of)
                           : cpu::apply(input, weight, bias, of);
  }

  static variable_list backward(AutogradContext* context, variable_list output_gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor& input = saved[0];
    const Tensor gradient = output_gradients[0].contiguous(input.suggest_memory_format());
    const auto holder =
        c10::static_intrusive_pointer_cast<GroupHolder>(context->saved_data["group"].toCapsule());
    const Statistics of{saved[2], saved[3], saved[4]};
    variable_list result = input.is_cuda()
                               ? cuda::gradients(gradient, input, saved[1], of, holder->group)
                               : cpu::gradients(gradient, input, saved[1], of, holder->group);
    result.emplace_back();  // of the layer
    return result;
  }

 private:
  struct GroupHolder : torch::CustomClassHolder {
    explicit GroupHolder(ProcessGroup held) : group(std::move(held)) {}
    ProcessGroup group;
  };
};

template <class Layer>
NormLayer local() {
  return [](std::int64_t features) {
    return torch::nn::AnyModule(Layer(torch::nn::BatchNormOptions(features)));
  };
}

}  // namespace

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& options, ProcessGroup group)
    : BatchNormImplBase(options), group_(std::move(group)) {}

Tensor SyncBatchNormImpl::forward(const Tensor& input) {
  if (!is_training() || group_.size() == 1) return BatchNormImplBase::forward(input);
  _check_input_dim(input);
  return normalise(input);
}

Tensor SyncBatchNormImpl::normalise(const Tensor& input) {
  Layer layer{group_, running_mean, running_var, options.momentum().value_or(0), options.eps()};
  if (num_batches_tracked.defined()) {
    num_batches_tracked += 1;
    if (!options.momentum()) layer.momentum = 1 / num_batches_tracked.item<double>();
  }
  return Normalise::apply(input, weight, bias, &layer);
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << "tune::SyncBatchNorm(" << options.num_features() << ", eps=" << options.eps()
         << ", ranks=" << group_.size() << ")";
}

void SyncBatchNormImpl::_check_input_dim(const Tensor& input) {
  if (input.dim() >= 2 && input.size(1) == options.num_features()) return;
  std::ostringstream shape;
  shape << input.sizes();
  throw Error(ErrorCode::kBadInput, "batch normalisation of " +
                                        std::to_string(options.num_features()) +
                                        " features: the input's shape is " + shape.str() +
                                        ", its second dimension has to be the features");
}

NormLayer batch_norm_1d() {
  return local<torch::nn::BatchNorm1d>();
}
NormLayer batch_norm_2d() {
  return local<torch::nn::BatchNorm2d>();
}
NormLayer batch_norm_3d() {
  return local<torch::nn::BatchNorm3d>();
}

NormLayer sync_batch_norm(ProcessGroup& group) {
  return [own = group.for_layers()](std::int64_t features) {
    return torch::nn::AnyModule(SyncBatchNorm(torch::nn::BatchNormOptions(features), own));
  };
}

}  // namespace tune
