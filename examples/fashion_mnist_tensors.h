// Fashion-MNIST as tensors of LibTorch.
#pragma once

#include <tune/torch.h>

#include <cstdint>

#include "fashion_mnist_data.h"

// {(n, 1, 28, 28) bytes, (n) int64}, copies of the images and labels.
inline tune::Batch to_tensors(const LabelledImages& set) {
  const auto count = static_cast<std::int64_t>(set.count());
  const auto side = static_cast<std::int64_t>(LabelledImages::kSide);
  // from_blob takes no constant pointer; both are copied at once.
  auto* const pixels = const_cast<std::uint8_t*>(set.pixels.data());
  auto* const labels = const_cast<std::uint8_t*>(set.labels.data());
  return {torch::from_blob(pixels, {count, 1, side, side}, torch::kUInt8).clone(),
          torch::from_blob(labels, {count}, torch::kUInt8).to(torch::kInt64)};
}

// Those bytes as a network sees them: floats of mean 0 and deviation 1 over the training set.
inline torch::Tensor to_input(const torch::Tensor& images) {
  return images.to(torch::kFloat32).div_(255).sub_(0.2860).div_(0.3530);
}
