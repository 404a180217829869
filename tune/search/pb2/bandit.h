// A Gaussian process of how much a population gains under which values, at which time: PB2's model
// (Parker-Holder et al., NeurIPS 2020, arXiv 2002.02518). Pure and exact.
//
// The kernel is that of TV-GP-UCB (Bogunovic et al., AISTATS 2016): a squared exponential over
// value features times (1 - epsilon)^(|t - t'| / 2). Ray Tune's pb2 fits it without noise, which
// makes two trials with the same values and other luck a contradiction; here noise is fitted too.
// Length scale, forgetting and noise are those of a grid with the largest marginal likelihood.
#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace tune {

class Bandit {
 public:
  struct Point {
    double time = 0;               // in [0, 1] over the points
    std::vector<double> features;  // each about [0, 1]
  };
  struct Belief {
    double mean = 0;
    double standard_deviation = 1;
  };

  // Values are standardised: what it believes is in their standard deviations from their mean. Of
  // points that are too many the last kMaxPoints count. At least one.
  Bandit(std::vector<Point> points, const std::vector<double>& values);
  static constexpr std::size_t kMaxPoints = 80;

  // Takes what is being tried into account: it is less uncertain there.
  void expect(Point pending);
  Belief at(const Point& point) const;
  // The upper bound that PB2 maximises: mean + kappa * sd, kappa^2 = 0.2 + max(0, ln 0.4 n).
  double upper_bound(const Point& point) const;
  std::size_t size() const { return static_cast<std::size_t>(values_.size()); }

 private:
  struct Shape {
    double length = 0.5;
    double epsilon = 0.1;
    double noise = 0.1;  // a variance, beside a signal of 1
  };
  using Factor = Eigen::LLT<Eigen::MatrixXd>;

  static double covariance(const Shape& shape, const Point& a, const Point& b);
  Factor factor(const Shape& shape) const;  // of all points
  double log_likelihood(const Shape& shape) const;

  std::vector<Point> points_;  // those with values, then those that are being tried
  Eigen::VectorXd values_;
  Shape shape_;
  Eigen::VectorXd weights_;  // the inverse times the values
  Factor factor_;
};

}  // namespace tune
