// Reads Fashion-MNIST: 28 x 28 grey images of clothes in ten classes, 60,000 to train with and
// 10,000 to test with, in the gzipped IDX files that Debian's package dataset-fashion-mnist
// installs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

struct LabelledImages {
  static constexpr std::size_t kSide = 28;
  std::size_t count() const { return labels.size(); }
  std::vector<std::uint8_t> pixels;  // kSide x kSide each, row by row, 0 is white
  std::vector<std::uint8_t> labels;  // 0 ... 9
};

// $TUNE_FASHION_MNIST_DIR, else where Debian's package puts the files.
std::filesystem::path fashion_mnist_directory();

// The first `limit` images, or all. Throw tune::Error (kBadInput) when a file is missing, naming
// the package, or when its header, length or labels are not as they should be.
LabelledImages fashion_mnist_training(std::size_t limit = std::numeric_limits<std::size_t>::max());
LabelledImages fashion_mnist_test(std::size_t limit = std::numeric_limits<std::size_t>::max());
