// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) as tensors, read from the .gz files of Debian's package
// dataset-fashion-mnist, or of the folder in TUNE_FASHION_MNIST_DIR.
#pragma once

#include <torch/torch.h>

#include <cstdint>

struct Images {
  torch::Tensor pixels;  // [n, 1, 28, 28] float, normalised by the training set's mean and deviation
  torch::Tensor labels;  // [n] int64, 0 to 9
};

enum class Part { kTrain, kTest };  // 60,000 and 10,000 images

// The first `count` images. Throws std::runtime_error naming the file, and the package when it is missing.
Images load_fashion_mnist(Part part, std::int64_t count);
