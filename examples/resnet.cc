#include "resnet.h"

namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride) {
  nn::Conv2d layer(
      nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
  nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
  return layer;
}

}  // namespace

BasicBlockImpl::BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride,
                               const tune::NormLayer& norm)
    : bn1(norm(out)), bn2(norm(out)) {
  conv1 = register_module("conv1", convolution(in, out, 3, stride));
  register_module("bn1", bn1.ptr());
  conv2 = register_module("conv2", convolution(out, out, 3, 1));
  register_module("bn2", bn2.ptr());
  if (stride == 1 && in == out) return;
  shortcut_norm = norm(out);
  nn::Sequential shortcut;
  shortcut_conv = convolution(in, out, 1, stride);
  shortcut->push_back(shortcut_conv);
  shortcut->push_back(shortcut_norm);
  register_module("downsample", shortcut);
}

torch::Tensor BasicBlockImpl::forward(const torch::Tensor& x) {
  torch::Tensor out = bn1.forward(conv1->forward(x));
  out = bn2.forward(conv2->forward(out.relu_()));
  out += shortcut_conv ? shortcut_norm.forward(shortcut_conv->forward(x)) : x;
  return out.relu_();
}

ResNet18Impl::ResNet18Impl(const ResNetOptions& options)
    : options_(options), bn1_(options.norm(options.width)) {
  const std::int64_t width = options.width;
  conv1_ =
      register_module("conv1", options.small_images ? convolution(options.channels, width, 3, 1)
                                                    : convolution(options.channels, width, 7, 2));
  register_module("bn1", bn1_.ptr());
  layer1_ = register_module("layer1", stage(width, width, 1));
  layer2_ = register_module("layer2", stage(width, 2 * width, 2));
  layer3_ = register_module("layer3", stage(2 * width, 4 * width, 2));
  layer4_ = register_module("layer4", stage(4 * width, 8 * width, 2));
  fc_ = register_module("fc", nn::Linear(8 * width, options.classes));
}

nn::Sequential ResNet18Impl::stage(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return nn::Sequential(BasicBlock(in, out, stride, options_.norm),
                        BasicBlock(out, out, 1, options_.norm));
}

torch::Tensor ResNet18Impl::forward(torch::Tensor x) {
  x = bn1_.forward(conv1_->forward(x));
  x.relu_();
  if (!options_.small_images) {
    x = torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  }
  x = layer4_->forward(layer3_->forward(layer2_->forward(layer1_->forward(x))));
  return fc_->forward(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}
