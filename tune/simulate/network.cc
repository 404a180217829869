#include "tune/simulate/network.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tune/simulate/dense_kernel.h"

namespace tune {

double Network::apply(const std::vector<Step>& steps, double value) {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kAdd:
        value += step.constant;
        break;
      case Step::Kind::kSubtract:
        value -= step.constant;
        break;
      case Step::Kind::kSubtractFrom:
        value = step.constant - value;
        break;
      case Step::Kind::kMultiply:
        value *= step.constant;
        break;
      case Step::Kind::kDivide:
        value /= step.constant;
        break;
      case Step::Kind::kDivideInto:
        value = step.constant / value;
        break;
      case Step::Kind::kNegate:
        value = -value;
        break;
      case Step::Kind::kExp:
        value = std::exp(value);
        break;
      case Step::Kind::kLog:
        value = std::log(value);
        break;
      case Step::Kind::kRound:
        value = static_cast<float>(value);
        break;
    }
  }
  return value;
}

void Network::run_layer(const Layer& layer, std::span<const std::int32_t> categories,
                        std::size_t rows, float* registers) const {
  float* target = registers + layer.target * kLanes;
  const float* source = registers + layer.source * kLanes;
  const float* other = registers + layer.other * kLanes;
  const std::size_t count = layer.width * kLanes;
  switch (layer.kind) {
    case Layer::Kind::kEmbed:
      for (std::size_t row = 0; row < rows; ++row) {
        const auto chosen =
            static_cast<std::size_t>(categories[row * this->categories() + layer.source]);
        for (std::size_t i = 0; i < layer.width; ++i) {
          target[i * kLanes + row] = layer.weights[chosen * layer.width + i];
        }
      }
      return;
    case Layer::Kind::kColumn:
      for (std::size_t i = 0; i < rows; ++i) {
        target[i] = static_cast<float>(apply(layer.steps, source[i]));
      }
      return;
    case Layer::Kind::kCopy:
      std::copy_n(source, count, target);
      return;
    case Layer::Kind::kDense:
      return dense_layer(layer.weights.data(), layer.shifts.data(), source, target, layer.inputs,
                         layer.width);
    case Layer::Kind::kScale:
      for (std::size_t i = 0; i < count; ++i) {
        target[i] = source[i] * layer.weights[i / kLanes] + layer.shifts[i / kLanes];
      }
      return;
    case Layer::Kind::kAdd:
      for (std::size_t i = 0; i < count; ++i) target[i] = source[i] + other[i];
      return;
    case Layer::Kind::kMultiply:
      for (std::size_t i = 0; i < count; ++i) target[i] = source[i] * other[i];
      return;
    case Layer::Kind::kRelu:
      for (std::size_t i = 0; i < count; ++i) target[i] = std::max(source[i], 0.0f);
      return;
    case Layer::Kind::kSigmoid:
      for (std::size_t i = 0; i < count; ++i) target[i] = 1 / (1 + std::exp(-source[i]));
      return;
  }
}

std::vector<float> Network::run(std::span<const std::int32_t> categories,
                                std::span<const float> numbers) const {
  TUNE_CHECK(numbers.size() % numbers_ == 0u);
  const std::size_t rows = numbers.size() / numbers_;
  TUNE_CHECK(categories.size() == rows * this->categories());
  for (std::size_t i = 0; i < categories.size(); ++i) {
    TUNE_CHECK(categories[i] >= 0);
    TUNE_CHECK(categories[i] < category_limits_[i % this->categories()]);
  }
  std::vector<float> registers(columns_ * kLanes);
  std::vector<float> results(rows * outputs_);
  for (std::size_t first = 0; first < rows; first += kLanes) {
    const std::size_t block = std::min(kLanes, rows - first);
    for (std::size_t row = 0; row < block; ++row) {
      for (std::size_t i = 0; i < numbers_; ++i) {
        registers[(input_ + i) * kLanes + row] = numbers[(first + row) * numbers_ + i];
      }
    }
    for (const Layer& layer : layers_) {
      run_layer(layer, categories.subspan(first * this->categories()), block, registers.data());
    }
    for (std::size_t row = 0; row < block; ++row) {
      for (std::size_t i = 0; i < outputs_; ++i) {
        results[(first + row) * outputs_ + i] = registers[(output_ + i) * kLanes + row];
      }
    }
  }
  return results;
}

}  // namespace tune
