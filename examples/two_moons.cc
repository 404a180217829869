// A plugin for YAML sweeps without LibTorch: a small network that learns to tell two moons apart.
// config/conditional.yaml searches an optimiser with what that one needs, config/objectives.yaml
// for networks that are accurate and small.
//
// Configuration:
//   lr                   > 0
//   hidden               units of the hidden layer
//   batch_size           of 400 points
//   schedule             {warmup, decay}: the rate rises for so many steps; halves in each from
//   decay on optimiser            {kind: sgd, momentum} or {kind: adam, beta1, beta2}
#include <tune/tune.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kPoints = 400;

struct Point {
  std::array<double, 2> at{};
  double label = 0;  // 0 or 1: its moon
};

std::vector<Point> moons(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.15);
  std::vector<Point> points(kPoints);
  for (std::size_t i = 0; i < kPoints; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i / 2) / (kPoints / 2.0);
    const bool is_lower = i % 2 == 1;
    const double x = is_lower ? 1 - std::cos(angle) : std::cos(angle);
    const double y = is_lower ? 0.5 - std::sin(angle) : std::sin(angle);
    points[i] = {{x + noise(random), y + noise(random)}, is_lower ? 1.0 : 0.0};
  }
  return points;
}

}  // namespace

class TwoMoons : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    lr_ = config.get<double>("lr");
    hidden_ = config.get<std::size_t>("hidden");
    batch_size_ = config.get<std::size_t>("batch_size");
    warmup_ = config.get_or("schedule/warmup", 0);
    decay_ = config.get_or("schedule/decay", 1000);
    // Only the taken optimiser's keys are there.
    is_adam_ = config.get<std::string>("optimiser/kind") == "adam";
    momentum_ = config.get<double>(is_adam_ ? "optimiser/beta1" : "optimiser/momentum");
    if (is_adam_) beta2_ = config.get<double>("optimiser/beta2");
    std::mt19937_64 random(context().seed());
    std::normal_distribution<double> normal;
    weights_.resize(4 * hidden_ + 1);
    for (double& weight : weights_) weight = normal(random);
    first_.assign(weights_.size(), 0);
    second_.assign(weights_.size(), 0);
  }

  tune::Result step() override {
    ++step_;
    std::mt19937_64 random(context().seed() + step_);
    std::shuffle(train_.begin(), train_.end(), random);
    for (std::size_t begin = 0; begin < train_.size(); begin += batch_size_) {
      const std::size_t end = std::min(begin + batch_size_, train_.size());
      std::vector<double> gradient(weights_.size());
      for (std::size_t i = begin; i < end; ++i) {
        add_gradient(train_[i], 1 / static_cast<double>(end - begin), gradient);
      }
      update(gradient);
    }
    double correct = 0;
    for (const Point& point : test_) correct += (output(point) > 0.5) == (point.label > 0.5);
    return {{"mean_accuracy", correct / kPoints}, {"num_weights", weights_.size()}};
  }

  void save(const std::filesystem::path& directory) override {
    std::ofstream file(directory / "weights");
    file << std::hexfloat << step_ << ' ' << updates_;
    for (const auto* values : {&weights_, &first_, &second_}) {
      for (const double value : *values) file << ' ' << value;
    }
  }
  void load(const std::filesystem::path& directory) override {
    std::ifstream file(directory / "weights");
    file >> step_ >> updates_;
    std::string text;  // streams do not read what std::hexfloat writes
    for (auto* values : {&weights_, &first_, &second_}) {
      for (double& value : *values) {
        file >> text;
        value = std::stod(text);
      }
    }
  }

 private:
  double unit(const Point& point, std::size_t i) const {
    const double* w = &weights_[4 * i];
    return std::tanh(w[0] * point.at[0] + w[1] * point.at[1] + w[2]);
  }
  double output(const Point& point) const {
    double sum = weights_.back();
    for (std::size_t i = 0; i < hidden_; ++i) sum += weights_[4 * i + 3] * unit(point, i);
    return 1 / (1 + std::exp(-sum));
  }
  // Of the cross entropy.
  void add_gradient(const Point& point, double share, std::vector<double>& gradient) const {
    const double error = share * (output(point) - point.label);
    gradient.back() += error;
    for (std::size_t i = 0; i < hidden_; ++i) {
      const double value = unit(point, i);
      const double inner = error * weights_[4 * i + 3] * (1 - value * value);
      gradient[4 * i] += inner * point.at[0];
      gradient[4 * i + 1] += inner * point.at[1];
      gradient[4 * i + 2] += inner;
      gradient[4 * i + 3] += error * value;
    }
  }
  void update(const std::vector<double>& gradient) {
    ++updates_;
    const double rise = std::min(1.0, static_cast<double>(step_) / (warmup_ + 1));
    const double rate = lr_ * rise * std::pow(0.5, std::max(0, static_cast<int>(step_) - decay_));
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      first_[i] = momentum_ * first_[i] + (is_adam_ ? 1 - momentum_ : 1) * gradient[i];
      if (!is_adam_) {
        weights_[i] -= rate * first_[i];
        continue;
      }
      second_[i] = beta2_ * second_[i] + (1 - beta2_) * gradient[i] * gradient[i];
      const auto count = static_cast<double>(updates_);
      const double mean = first_[i] / (1 - std::pow(momentum_, count));
      const double square = second_[i] / (1 - std::pow(beta2_, count));
      weights_[i] -= rate * mean / (std::sqrt(square) + 1e-8);
    }
  }

  double lr_ = 0, momentum_ = 0, beta2_ = 0;
  std::size_t hidden_ = 0, batch_size_ = 1;
  int warmup_ = 0, decay_ = 0;
  bool is_adam_ = false;
  std::vector<Point> train_ = moons(1), test_ = moons(2);
  std::uint64_t step_ = 0, updates_ = 0;
  std::vector<double> weights_, first_, second_;  // four of each unit, and the bias
};

TUNE_TRAINABLE(TwoMoons)
