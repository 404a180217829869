// ResNet-18 (He et al., Deep Residual Learning for Image Recognition, 2015), with the names of
// torchvision's parameters.
#pragma once

#include <tune/torch.h>

#include <cstdint>

struct ResNetOptions {
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  std::int64_t width = 64;    // of the first of the four stages; each next one has twice as many
  bool small_images = false;  // below about 64 x 64: the first layers keep the size
  tune::NormLayer norm = tune::batch_norm_2d();
};

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride,
                 const tune::NormLayer& norm);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut_conv{nullptr};
  torch::nn::AnyModule bn1, bn2, shortcut_norm;
};
TORCH_MODULE(BasicBlock);

struct ResNet18Impl : torch::nn::Module {
  explicit ResNet18Impl(const ResNetOptions& options = {});
  // (n, channels, height, width) float to (n, classes) scores.
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::Sequential stage(std::int64_t in, std::int64_t out, std::int64_t stride);

  ResNetOptions options_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::AnyModule bn1_;
  torch::nn::Sequential layer1_{nullptr}, layer2_{nullptr}, layer3_{nullptr}, layer4_{nullptr};
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet18);
