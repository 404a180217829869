// Ridge: a regression in 30 dimensions with noise, by stochastic gradient descent.
//
//   lr, l2, batch; optimizer: {name: sgd}, or {name: momentum, momentum: ...}
#include <cstddef>

#include "bench/trainings/small_training.h"

namespace tune::bench {
namespace {

constexpr std::size_t kInputs = 30;
constexpr int kUpdates = 20;  // a step
constexpr double kNoise = 0.5;

struct Row {
  std::vector<double> inputs = std::vector<double>(kInputs);
  double target = 0;
};

class Ridge : public SmallTraining {
 public:
  void setup(const Config& config) override {
    lr_ = config.get<double>("lr");
    l2_ = config.get<double>("l2");
    batch_ = config.get<int>("batch");
    momentum_ = config.get_or("optimizer/momentum", 0.0);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> truth(kInputs);
    for (double& each : truth) each = normal(random);
    for (std::vector<Row>* rows : {&training_, &validation_}) {
      rows->resize(rows == &training_ ? 400 : 200);
      for (Row& row : *rows) {
        row.target = kNoise * normal(random);
        for (std::size_t i = 0; i < kInputs; ++i) {
          row.inputs[i] = normal(random);
          row.target += row.inputs[i] * truth[i];
        }
      }
    }
    resize(kInputs);
  }

  Result step() override {
    std::vector<double> gradient(kInputs);
    for (int update = 0; update < kUpdates; ++update) {
      for (std::size_t i = 0; i < kInputs; ++i) gradient[i] = l2_ * weights_[i];
      for (int i = 0; i < batch_; ++i) {
        const Row& row = training_[any_of(training_.size())];
        const double error = error_of(row) / batch_;
        for (std::size_t j = 0; j < kInputs; ++j) gradient[j] += error * row.inputs[j];
      }
      for (std::size_t i = 0; i < kInputs; ++i) {
        first_[i] = momentum_ * first_[i] - lr_ * gradient[i];
        weights_[i] += first_[i];
      }
    }
    double loss = 0;
    for (const Row& row : validation_) loss += error_of(row) * error_of(row);
    return {{"loss", loss / static_cast<double>(validation_.size())}};
  }

 private:
  double error_of(const Row& row) const {
    double error = -row.target;
    for (std::size_t i = 0; i < kInputs; ++i) error += weights_[i] * row.inputs[i];
    return error;
  }

  double lr_ = 0, l2_ = 0, momentum_ = 0;
  int batch_ = 0;
  std::vector<Row> training_, validation_;
};

}  // namespace

TUNE_TRAINABLE(Ridge)

}  // namespace tune::bench
