// Softmax: five classes of points in 40 dimensions, some of another scale, by Adam.
//
//   lr, beta1, one_minus_beta2, eps, weight_decay, dropout (of inputs), smoothing (of labels)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "bench/trainings/small_training.h"

namespace tune::bench {
namespace {

constexpr std::size_t kInputs = 40;
constexpr std::size_t kTelling = 10;  // inputs that differ between classes
constexpr std::size_t kClasses = 5;
constexpr int kUpdates = 30;  // a step
constexpr int kBatch = 8;

using Inputs = std::array<double, kInputs>;
struct Row {
  Inputs inputs = {};
  std::size_t label = 0;
};

class Softmax : public SmallTraining {
 public:
  void setup(const Config& config) override {
    lr_ = config.get<double>("lr");
    beta1_ = config.get<double>("beta1");
    beta2_ = 1 - config.get<double>("one_minus_beta2");
    eps_ = config.get<double>("eps");
    weight_decay_ = config.get<double>("weight_decay");
    dropout_ = config.get<double>("dropout");
    smoothing_ = config.get<double>("smoothing");
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    std::array<Inputs, kClasses> middles = {};
    for (Inputs& middle : middles) {
      for (std::size_t i = 0; i < kTelling; ++i) middle[i] = 0.6 * normal(random);
    }
    for (std::vector<Row>* rows : {&training_, &validation_}) {
      rows->resize(rows == &training_ ? 250 : 300);
      for (Row& row : *rows) {
        row.label = random() % kClasses;
        for (std::size_t i = 0; i < kInputs; ++i) {
          row.inputs[i] = (middles[row.label][i] + normal(random)) * (i % 7 == 0 ? 10 : 1);
        }
      }
    }
    resize(kClasses * (kInputs + 1));
  }

  Result step() override {
    for (int update = 0; update < kUpdates; ++update) {
      std::vector<double> gradient(weights_.size());
      for (int i = 0; i < kBatch; ++i) add_gradient(training_[any_of(250)], gradient);
      ++steps_;
      const auto age = static_cast<double>(steps_);
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        first_[i] = beta1_ * first_[i] + (1 - beta1_) * gradient[i];
        second_[i] = beta2_ * second_[i] + (1 - beta2_) * gradient[i] * gradient[i];
        const double mean = first_[i] / (1 - std::pow(beta1_, age));
        const double square = second_[i] / (1 - std::pow(beta2_, age));
        weights_[i] -= lr_ * (mean / (std::sqrt(square) + eps_) + weight_decay_ * weights_[i]);
      }
    }
    double loss = 0;
    for (const Row& row : validation_)
      loss -= std::log(std::max(chances(row.inputs)[row.label], 1e-300));
    return {{"loss", loss / static_cast<double>(validation_.size())}};
  }

 private:
  std::array<double, kClasses> chances(const Inputs& inputs) const {
    std::array<double, kClasses> all = {};
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double* weights = &weights_[c * (kInputs + 1)];
      all[c] = weights[kInputs];
      for (std::size_t i = 0; i < kInputs; ++i) all[c] += weights[i] * inputs[i];
    }
    const double top = *std::max_element(all.begin(), all.end());
    double sum = 0;
    for (double& each : all) sum += each = std::exp(each - top);
    for (double& each : all) each /= sum;
    return all;
  }
  void add_gradient(const Row& row, std::vector<double>& gradient) {
    Inputs inputs = row.inputs;
    for (double& each : inputs) {
      const bool is_dropped = static_cast<double>(random_() % 65536) < dropout_ * 65536;
      each = is_dropped ? 0 : each / (1 - dropout_);
    }
    const std::array<double, kClasses> found = chances(inputs);
    for (std::size_t c = 0; c < kClasses; ++c) {
      const double wanted = (c == row.label ? 1 - smoothing_ : 0) + smoothing_ / kClasses;
      const double error = (found[c] - wanted) / kBatch;
      double* of_class = &gradient[c * (kInputs + 1)];
      for (std::size_t i = 0; i < kInputs; ++i) of_class[i] += error * inputs[i];
      of_class[kInputs] += error;
    }
  }

  double lr_ = 0, beta1_ = 0, beta2_ = 0, eps_ = 0, weight_decay_ = 0, dropout_ = 0, smoothing_ = 0;
  std::vector<Row> training_, validation_;
};

}  // namespace

TUNE_TRAINABLE(Softmax)

}  // namespace tune::bench
