#include "trainables/torch/image_transforms.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"

namespace tune::transforms {
namespace {

struct Size {
  std::int64_t height;
  std::int64_t width;
};

struct Box {
  std::int64_t top;
  std::int64_t left;
  Size size;
};

void expect_input(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorCode::kBadInput, message);
}

std::string text(const Size& size) {
  return std::to_string(size.height) + " x " + std::to_string(size.width);
}

Size wanted(const char* transform, std::int64_t height, std::int64_t width) {
  const Size size = {height, width};
  expect_input(height >= 1 && width >= 1,
         std::string(transform) + " to " + text(size) + " pixels leaves nothing");
  return size;
}

Size size_of(const at::Tensor& image) {
  expect_input(image.dim() == 3, "an image has three dimensions (channels, height, width), not " +
                               std::to_string(image.dim()));
  return {image.size(1), image.size(2)};
}

at::Tensor crop(const at::Tensor& image, const Box& box) {
  return image.slice(1, box.top, box.top + box.size.height)
      .slice(2, box.left, box.left + box.size.width);
}

at::Tensor resized(const at::Tensor& image, const Size& size) {
  const Size old = size_of(image);
  if (old.height == size.height && old.width == size.width) return image;
  // Of bytes LibTorch computes in whole numbers, vectorised: eight times as fast as floats.
  return at::_upsample_bilinear2d_aa(image.unsqueeze(0), {size.height, size.width}, false)
      .squeeze(0);
}

// To even at a half, as Python rounds, whatever the mode of rounding of this thread is.
std::int64_t half_of(std::int64_t number) {
  return number / 2 + (number % 2 == 1 && number / 2 % 2 == 1 ? 1 : 0);
}

// A part of random area and ratio; empty when none of ten fitted.
Box draw_box(const Size& image, const RandomResizedCropOptions& options, RandomStream& random) {
  const auto area = static_cast<double>(image.height * image.width);
  const auto between = [&](double low, double high) {
    return low + (high - low) * random.uniform();
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * between(options.scale[0], options.scale[1]);
    const double ratio = std::exp(between(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const Size size = {std::llround(std::sqrt(target / ratio)),
                       std::llround(std::sqrt(target * ratio))};
    if (size.height < 1 || size.height > image.height) continue;
    if (size.width < 1 || size.width > image.width) continue;
    const std::int64_t top = random.integer(0, image.height - size.height + 1);
    return {top, random.integer(0, image.width - size.width + 1), size};
  }
  return {0, 0, {0, 0}};
}

// The largest part in the middle whose ratio is allowed.
Box middle_box(const Size& image, const std::array<double, 2>& ratios) {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  Size size = image;
  if (width / height < ratios[0]) {
    size.height = std::max<std::int64_t>(std::llround(width / ratios[0]), 1);
  } else if (width / height > ratios[1]) {
    size.width = std::max<std::int64_t>(std::llround(height * ratios[1]), 1);
  }
  return {(image.height - size.height) / 2, (image.width - size.width) / 2, size};
}

}  // namespace

ImageTransform compose(std::vector<ImageTransform> transforms) {
  return [transforms = std::move(transforms)](const at::Tensor& image, RandomStream& random) {
    at::Tensor result = image;
    for (const ImageTransform& transform : transforms) result = transform(result, random);
    return result;
  };
}

ImageTransform resize(std::int64_t shorter_side) {
  wanted("resize", shorter_side, shorter_side);
  return [shorter_side](const at::Tensor& image, RandomStream&) {
    const auto [height, width] = size_of(image);
    const std::int64_t shorter = std::min(height, width);
    const std::int64_t longer = shorter_side * std::max(height, width) / shorter;
    return resized(image,
                   height <= width ? Size{shorter_side, longer} : Size{longer, shorter_side});
  };
}

ImageTransform resize(std::int64_t height, std::int64_t width) {
  return [size = wanted("resize", height, width)](const at::Tensor& image, RandomStream&) {
    return resized(image, size);
  };
}

ImageTransform center_crop(std::int64_t side) {
  return center_crop(side, side);
}

ImageTransform center_crop(std::int64_t height, std::int64_t width) {
  return [size = wanted("center_crop", height, width)](const at::Tensor& image, RandomStream&) {
    const Size old = size_of(image);
    const std::int64_t rows = std::max<std::int64_t>(size.height - old.height, 0);
    const std::int64_t columns = std::max<std::int64_t>(size.width - old.width, 0);
    at::Tensor result = image;
    if (rows > 0 || columns > 0) {
      result = at::constant_pad_nd(image,
                                   {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
    }
    const Size padded = size_of(result);
    return crop(result,
                {half_of(padded.height - size.height), half_of(padded.width - size.width), size});
  };
}

ImageTransform random_crop(std::int64_t side, std::int64_t padding) {
  return random_crop(side, side, padding);
}

ImageTransform random_crop(std::int64_t height, std::int64_t width, std::int64_t padding) {
  const Size size = wanted("random_crop", height, width);
  expect_input(padding >= 0,
         "the padding of random_crop is " + std::to_string(padding) + ", at least 0 is wanted");
  return [size, padding](const at::Tensor& image, RandomStream& random) {
    at::Tensor result = image;
    if (padding > 0) {
      result = at::constant_pad_nd(image, {padding, padding, padding, padding});
    }
    const Size padded = size_of(result);
    expect_input(padded.height >= size.height && padded.width >= size.width,
           "random_crop takes " + text(size) + " pixels, the padded image has " + text(padded));
    const std::int64_t top = random.integer(0, padded.height - size.height + 1);
    return crop(result, {top, random.integer(0, padded.width - size.width + 1), size});
  };
}

ImageTransform random_resized_crop(std::int64_t side, const RandomResizedCropOptions& options) {
  const Size size = wanted("random_resized_crop", side, side);
  const auto is_range = [](const std::array<double, 2>& range) {
    return range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1]);
  };
  expect_input(is_range(options.scale) && is_range(options.ratio),
         "scale and ratio of random_resized_crop are ranges {low, high} above 0");
  return [size, options](const at::Tensor& image, RandomStream& random) {
    const Size old = size_of(image);
    Box box = draw_box(old, options, random);
    if (box.size.height == 0) box = middle_box(old, options.ratio);
    return resized(crop(image, box), size);
  };
}

ImageTransform random_horizontal_flip(double probability) {
  expect_input(probability >= 0 && probability <= 1,
         "the probability of random_horizontal_flip is " + std::to_string(probability));
  return [probability](const at::Tensor& image, RandomStream& random) {
    return random.uniform() < probability ? image.flip({-1}) : image;
  };
}

ImageTransform to_tensor() {
  return [](const at::Tensor& image, RandomStream&) {
    if (image.scalar_type() != at::kByte) return image;
    return image.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous)
        .div_(255);
  };
}

namespace {

void expect_statistics(const char* what, const std::vector<double>& mean,
                       const std::vector<double>& deviation) {
  expect_input(!mean.empty() && mean.size() == deviation.size(),
               std::string(what) + " has " + std::to_string(mean.size()) + " means and " +
                   std::to_string(deviation.size()) + " deviations");
  expect_input(std::find(deviation.begin(), deviation.end(), 0.0) == deviation.end(),
               std::string("a deviation of ") + what + " is 0");
}

}  // namespace

BatchTransform normalize_batch(std::vector<double> mean, std::vector<double> deviation) {
  expect_statistics("normalize_batch", mean, deviation);
  const auto channels = static_cast<std::int64_t>(mean.size());
  const auto by_channel = [&](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({1, channels, 1, 1});
  };
  return [means = by_channel(mean), deviations = by_channel(deviation),
          channels](const at::Tensor& batch) {
    expect_input(batch.dim() == 4,
                 "normalize_batch takes a batch of images (n, channels, height, "
                 "width), not " +
                     std::to_string(batch.dim()) + " dimensions");
    expect_input(channels == 1 || channels == batch.size(1),
                 "normalize_batch has " + std::to_string(channels) + " means, the images " +
                     std::to_string(batch.size(1)) + " channels");
    const double whole = batch.scalar_type() == at::kByte ? 255 : 1;
    at::Tensor result = batch.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    return result.sub_(means.to(batch.device()) * whole)
        .div_(deviations.to(batch.device()) * whole);
  };
}

ImageTransform normalize(std::vector<double> mean, std::vector<double> deviation) {
  expect_statistics("normalize", mean, deviation);
  const auto channels = static_cast<std::int64_t>(mean.size());
  const auto by_channel = [&](const std::vector<double>& numbers) {
    return at::tensor(numbers, at::kFloat).view({channels, 1, 1});
  };
  return [means = by_channel(mean), deviations = by_channel(deviation), channels](
             const at::Tensor& image, RandomStream&) {
    expect_input(image.is_floating_point(), "normalize wants floats: put to_tensor before it");
    expect_input(channels == 1 || channels == image.size(0),
           "normalize has " + std::to_string(channels) + " means, the image " +
               std::to_string(image.size(0)) + " channels");
    return (image - means) / deviations;
  };
}

}  // namespace tune::transforms
