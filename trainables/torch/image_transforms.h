// Changes of an image before a network sees it, as torchvision makes them: the same sizes, and the
// same pixels (resized bytes may differ by one). Random ones draw from a stream of the image's own
// (core/random.h), so that it does not matter which thread loads which image; their draws are not
// torchvision's.
//
//   transforms::compose({transforms::random_resized_crop(224),
//   transforms::random_horizontal_flip(),
//                        transforms::to_tensor(),
//                        transforms::normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})})
//
// An image is (C, H, W), uint8 in [0, 255] or, after to_tensor, float in [0, 1]. Settings that make
// no sense are refused (Error, kBadInput) when a transform is made, images that do not fit when it
// is applied.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/random.h"

namespace tune {

// Gives a new image or the same tensor; never changes the one it is given.
using ImageTransform = std::function<at::Tensor(const at::Tensor& image, RandomStream& random)>;
// The same of a batch, on the device where it is.
using BatchTransform = std::function<at::Tensor(const at::Tensor& batch)>;

}  // namespace tune

namespace tune::transforms {

// One after the other.
ImageTransform compose(std::vector<ImageTransform> transforms);

// Bilinear with antialias; uint8 is rounded to the nearest. One number: the shorter side becomes
// that, the longer one keeps the ratio, rounded down.
ImageTransform resize(std::int64_t shorter_side);
ImageTransform resize(std::int64_t height, std::int64_t width);

// The middle of an image; a smaller one gets a black border.
ImageTransform center_crop(std::int64_t side);
ImageTransform center_crop(std::int64_t height, std::int64_t width);

// A part anywhere, of an image that first gets a black border of `padding` pixels on each side. A
// smaller image is refused.
ImageTransform random_crop(std::int64_t side, std::int64_t padding = 0);
ImageTransform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding);

struct RandomResizedCropOptions {
  std::array<double, 2> scale = {0.08, 1.0};         // of the image's area, uniform
  std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3};  // width / height, uniform in its logarithm
};
// A part of random area and ratio, resized to side x side. Ten tries that do not fit into the image
// end with its middle, at the nearest ratio allowed.
ImageTransform random_resized_crop(std::int64_t side, const RandomResizedCropOptions& options = {});

// Left becomes right, with that probability.
ImageTransform random_horizontal_flip(double probability = 0.5);

// uint8 in [0, 255] to float in [0, 1]; a float image stays as it is.
ImageTransform to_tensor();

// (x - mean) / deviation for each channel of a float image; one number each is for all channels.
ImageTransform normalize(std::vector<double> mean, std::vector<double> deviation);

// to_tensor and normalize of a whole batch (n, C, H, W), for DataParts::prepare: images travel as
// bytes then, a quarter of the floats. The result lies as the batch does.
BatchTransform normalize_batch(std::vector<double> mean, std::vector<double> deviation);

}  // namespace tune::transforms
