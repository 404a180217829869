// Factors: ratings of 50 things by 60 users as products of factors, by stochastic gradient descent.
//
//   lr, decay (of it), reg, init (the scale of first factors), rank
#include <cmath>
#include <cstddef>

#include "bench/trainings/small_training.h"

namespace tune::bench {
namespace {

constexpr std::size_t kUsers = 60;
constexpr std::size_t kThings = 50;
constexpr std::size_t kTrueRank = 4;
constexpr double kLargest = 1e5;  // factor, where training diverges
constexpr double kNoise = 0.4;

struct Rating {
  std::size_t user = 0, thing = 0;
  double value = 0;
};

class Factors : public SmallTraining {
 public:
  void setup(const Config& config) override {
    lr_ = config.get<double>("lr");
    decay_ = config.get<double>("decay");
    reg_ = config.get<double>("reg");
    rank_ = config.get<std::size_t>("rank");
    std::mt19937 random(9);
    std::normal_distribution<double> normal;
    std::vector<double> of_users(kUsers * kTrueRank), of_things(kThings * kTrueRank);
    for (double& each : of_users) each = normal(random);
    for (double& each : of_things) each = normal(random);
    for (std::size_t user = 0; user < kUsers; ++user) {
      for (std::size_t thing = 0; thing < kThings; ++thing) {
        double value = kNoise * normal(random);
        for (std::size_t k = 0; k < kTrueRank; ++k) {
          value += of_users[user * kTrueRank + k] * of_things[thing * kTrueRank + k] /
                   static_cast<double>(k + 1);
        }
        const auto share = random() % 10;
        if (share < 3) training_.push_back({user, thing, value});
        if (share == 3 || share == 4) validation_.push_back({user, thing, value});
      }
    }
    resize((kUsers + kThings) * rank_);
    const double scale = config.get<double>("init");
    for (double& each : weights_) each = scale * normal(random);
  }

  Result step() override {
    const double lr = lr_ / (1 + decay_ * static_cast<double>(steps_++));
    for (std::size_t i = 0; i < training_.size(); ++i) {
      const Rating& rating = training_[any_of(training_.size())];
      double* user = &weights_[rating.user * rank_];
      double* thing = &weights_[(kUsers + rating.thing) * rank_];
      const double error = error_of(rating);
      for (std::size_t k = 0; k < rank_; ++k) {
        const double old = user[k];
        user[k] = bounded(user[k] - lr * (error * thing[k] + reg_ * user[k]));
        thing[k] = bounded(thing[k] - lr * (error * old + reg_ * thing[k]));
      }
    }
    double squares = 0;
    for (const Rating& rating : validation_) squares += error_of(rating) * error_of(rating);
    return {{"loss", std::sqrt(squares / static_cast<double>(validation_.size()))}};
  }

 private:
  static double bounded(double value) { return std::abs(value) < kLargest ? value : kLargest; }
  double error_of(const Rating& rating) const {
    double error = -rating.value;
    for (std::size_t k = 0; k < rank_; ++k) {
      error += weights_[rating.user * rank_ + k] * weights_[(kUsers + rating.thing) * rank_ + k];
    }
    return error;
  }

  double lr_ = 0, decay_ = 0, reg_ = 0;
  std::size_t rank_ = 0;
  std::vector<Rating> training_, validation_;
};

}  // namespace

TUNE_TRAINABLE(Factors)

}  // namespace tune::bench
