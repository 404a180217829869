// Spirals: a network of one hidden layer that tells two spirals apart, by stochastic gradient
// descent.
//
//   lr, momentum, l2, init (the scale of first weights), hidden, batch
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "bench/trainings/small_training.h"

namespace tune::bench {
namespace {

constexpr int kUpdates = 60;      // a step
constexpr double kLargest = 1e6;  // weight, where training diverges
constexpr double kNoise = 0.12;

struct Point {
  double x = 0, y = 0;
  bool is_second = false;
};

class Spirals : public SmallTraining {
 public:
  void setup(const Config& config) override {
    lr_ = config.get<double>("lr");
    momentum_ = config.get<double>("momentum");
    l2_ = config.get<double>("l2");
    hidden_ = config.get<std::size_t>("hidden");
    batch_ = config.get<int>("batch");
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (std::vector<Point>* points : {&training_, &validation_}) {
      for (int i = 0; i < 300; ++i) {
        const double radius = uniform(random);
        const double angle = 4.5 * radius + (i % 2) * std::numbers::pi;
        points->push_back({2 * radius * std::cos(angle) + kNoise * normal(random),
                           2 * radius * std::sin(angle) + kNoise * normal(random), i % 2 == 1});
      }
    }
    resize(4 * hidden_ + 1);
    const double scale = config.get<double>("init");
    for (std::size_t i = 0; i + 1 < weights_.size(); ++i) weights_[i] = scale * normal(random);
  }

  Result step() override {
    for (int update = 0; update < kUpdates; ++update) {
      std::vector<double> gradient(weights_.size());
      for (int i = 0; i < batch_; ++i) add_gradient(training_[any_of(300)], gradient);
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        first_[i] = momentum_ * first_[i] - lr_ * (gradient[i] / batch_ + l2_ * weights_[i]);
        weights_[i] += first_[i];
        if (!(std::abs(weights_[i]) < kLargest)) weights_[i] = kLargest;
      }
    }
    double loss = 0;
    std::vector<double> hidden(hidden_);
    for (const Point& point : validation_) {
      const double wrong = output(point, hidden) * (point.is_second ? -1 : 1);
      loss += wrong > 30 ? wrong : std::log1p(std::exp(wrong));
    }
    return {{"loss", loss / static_cast<double>(validation_.size())}};
  }

 private:
  // Weights of x, y and 1 into the hidden units, then those into the output, then its own.
  double output(const Point& point, std::vector<double>& hidden) const {
    double sum = weights_.back();
    for (std::size_t i = 0; i < hidden_; ++i) {
      hidden[i] = std::tanh(weights_[i] * point.x + weights_[hidden_ + i] * point.y +
                            weights_[2 * hidden_ + i]);
      sum += weights_[3 * hidden_ + i] * hidden[i];
    }
    return sum;
  }
  void add_gradient(const Point& point, std::vector<double>& gradient) const {
    std::vector<double> hidden(hidden_);
    const double chance = 1 / (1 + std::exp(-output(point, hidden)));
    const double error = chance - (point.is_second ? 1 : 0);
    gradient.back() += error;
    for (std::size_t i = 0; i < hidden_; ++i) {
      gradient[3 * hidden_ + i] += error * hidden[i];
      const double below = error * weights_[3 * hidden_ + i] * (1 - hidden[i] * hidden[i]);
      gradient[i] += below * point.x;
      gradient[hidden_ + i] += below * point.y;
      gradient[2 * hidden_ + i] += below;
    }
  }

  double lr_ = 0, momentum_ = 0, l2_ = 0;
  std::size_t hidden_ = 0;
  int batch_ = 0;
  std::vector<Point> training_, validation_;
};

}  // namespace

TUNE_TRAINABLE(Spirals)

}  // namespace tune::bench
