#include "tune/search/gp/scale_draws.h"

#include <algorithm>
#include <cmath>

#include "tune/search/gp/fitting.h"

namespace tune::search::gp {

namespace {

constexpr Eigen::Index kMostMoved = 10;
constexpr int kDraws = 8;
constexpr int kRoundsEach = 2;
constexpr double kBracket = 4;           // in logarithms
constexpr int kTries = 30;               // until a bracket has shrunk to nothing
constexpr double kLowestLogLength = -4;  // of a logarithm of a length
constexpr double kHighestLogLength = 6;
constexpr double kLowestLogNoise = -9;
constexpr double kHighestLogNoise = 1;

class Chain {
 public:
  Chain(const NegativeLogPosterior& posterior, Eigen::VectorXd start, RandomStream& random)
      : posterior_(posterior), random_(random), at_(std::move(start)) {
    value_ = posterior_.value(at_);
  }
  void move() {
    const Eigen::Index size = at_.size();
    const Eigen::Index first = random_.integer(0, size);
    for (Eigen::Index i = 0; i < std::min(size, kMostMoved); ++i) move((first + i) % size);
  }
  const Eigen::VectorXd& at() const { return at_; }

 private:
  void move(Eigen::Index coordinate) {
    const bool is_noise = coordinate + 1 == at_.size();
    const double old = at_[coordinate];
    const double highest_value = value_ - std::log(1 - random_.uniform());  // of the slice
    double low = old - kBracket * random_.uniform();
    double high = std::min(low + kBracket, is_noise ? kHighestLogNoise : kHighestLogLength);
    low = std::max(low, is_noise ? kLowestLogNoise : kLowestLogLength);
    for (int i = 0; i < kTries; ++i) {
      at_[coordinate] = low + (high - low) * random_.uniform();
      const double value = posterior_.value(at_);
      if (value <= highest_value) {
        value_ = value;
        return;
      }
      (at_[coordinate] < old ? low : high) = at_[coordinate];
    }
    at_[coordinate] = old;
  }

  const NegativeLogPosterior& posterior_;
  RandomStream& random_;
  Eigen::VectorXd at_;
  double value_ = 0;
};

Eigen::VectorXd coordinates_of(const Scales& scales) {
  const auto d = static_cast<Eigen::Index>(scales.log_lengths.size());
  Eigen::VectorXd theta(d + 1);
  theta.head(d) = Eigen::Map<const Eigen::VectorXd>(scales.log_lengths.data(), d);
  theta[d] = scales.log_noise;
  return theta;
}

}  // namespace

std::vector<Scales> drawn_scales(const Eigen::MatrixXd& points, const Eigen::VectorXd& targets,
                                 const Scales& likeliest, RandomStream& random) {
  const NegativeLogPosterior posterior(points, targets);
  Chain chain(posterior, coordinates_of(likeliest), random);
  std::vector<Scales> draws;
  for (int i = 0; i < kDraws; ++i) {
    for (int round = 0; round < kRoundsEach; ++round) chain.move();
    const Eigen::VectorXd& at = chain.at();
    draws.push_back({{at.data(), at.data() + at.size() - 1}, at[at.size() - 1]});
  }
  return draws;
}

}  // namespace tune::search::gp
