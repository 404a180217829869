#include "tune/search/gp/posterior.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/random.h"
#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/fitting.h"
#include "tune/search/gp/kernel.h"
#include "tune/search/gp/rough_posterior.h"
#include "tune/search/gp/scale_draws.h"

namespace tune::search::gp {
namespace {

// Four points in two dimensions. The numbers expected are numpy's, by the formulas of the book
// (K = Matern + noise I, mean = k K^-1 y, variance = 1 - k K^-1 k) with numpy.linalg.solve.
struct Small {
  Eigen::MatrixXd points{{0.1, 0.5, 0.8, 0.3}, {0.2, 0.9, 0.4, 0.6}};
  Eigen::VectorXd targets{{-1.2, 0.3, 1.1, -0.2}};
  Scales scales{{std::log(0.5), std::log(2.0)}, std::log(0.01)};  // noise 0.01 + 0.0001
  Eigen::MatrixXd asked{{0.6, 0.1, 0.9}, {0.5, 0.2, 0.9}};
};

void check_close(const Eigen::VectorXd& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == static_cast<Eigen::Index>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[static_cast<Eigen::Index>(i)] == doctest::Approx(expected[i]).epsilon(1e-7));
  }
}

TEST_CASE("the posterior of a small case is the one by the book") {
  const Small small;
  const auto posterior = Posterior::make(small.points, small.targets, small.scales, 0);
  REQUIRE(posterior.has_value());
  const Prediction prediction = posterior->predict(small.asked);
  check_close(prediction.mean, {0.64311643, -1.15879433, 1.03310901});
  check_close(prediction.standard_deviation, {0.21559136, 0.09797931, 0.38844348});
  CHECK(posterior->best() == 1.1);
}

TEST_CASE("a pending point takes uncertainty away and changes no mean, given at once or later") {
  const Small small;
  auto later = Posterior::make(small.points, small.targets, small.scales, 1);
  REQUIRE(later.has_value());
  CHECK(later->believe(small.asked.col(0)));
  CHECK_FALSE(later->believe(small.asked.col(1)));  // there was room for one
  Eigen::MatrixXd points(2, 5);
  points << small.points, small.asked.col(0);
  const auto at_once = Posterior::make(points, small.targets, small.scales, 0);
  REQUIRE(at_once.has_value());
  for (const auto& posterior : {*later, *at_once}) {
    const Prediction prediction = posterior.predict(small.asked);
    check_close(prediction.mean, {0.64311643, -1.15879433, 1.03310901});
    check_close(prediction.standard_deviation, {0.09108817, 0.09797893, 0.35675189});
  }
}

TEST_CASE("a rough posterior is right to four digits, and follows points through believers") {
  const Small small;
  auto posterior = Posterior::make(small.points, small.targets, small.scales, 2);
  REQUIRE(posterior.has_value());
  RoughPosterior rough(*posterior);
  const auto check_close = [&](const Prediction& found, const Eigen::MatrixXd& points) {
    const Prediction exact = posterior->predict(points);
    REQUIRE(found.mean.size() == points.cols());
    CHECK((exact.mean - found.mean).norm() < 1e-4);
    CHECK((exact.standard_deviation - found.standard_deviation).norm() < 1e-4);
  };
  const auto believe = [&](const Eigen::Vector2d& point) {
    REQUIRE(posterior->believe(point));
    rough.take_newest(*posterior);
  };
  rough.follow(small.asked.leftCols(2));
  check_close(rough.predict(small.asked), small.asked);
  check_close(rough.predict_followed(0), small.asked.leftCols(2));
  believe({0.2, 0.3});
  check_close(rough.predict(small.asked), small.asked);
  check_close(rough.predict_followed(0), small.asked.leftCols(2));
  rough.follow(small.asked.rightCols(1));  // later: it knows the believer from the start
  check_close(rough.predict_followed(0), small.asked);
  check_close(rough.predict_followed(2), small.asked.rightCols(1));
  rough.unfollow(0);  // the last one is at its place
  believe({0.7, 0.6});
  Eigen::MatrixXd left(2, 2);
  left << small.asked.col(2), small.asked.col(1);
  check_close(rough.predict_followed(0), left);
  rough.unfollow(1);
  check_close(rough.predict_followed(0), left.leftCols(1));
}

TEST_CASE("neighbours are the most correlated, those of pending points are none") {
  const Small small;
  auto posterior = Posterior::make(small.points, small.targets, small.scales, 1);
  REQUIRE(posterior.has_value());
  posterior->believe(small.asked.col(0));
  // Distances in length scales from (0.6, 0.5): 1.01, 0.28, 0.40, 0.60.
  CHECK(posterior->nearest(small.asked.col(0), 3) == std::vector<std::size_t>{1, 2, 3});
  CHECK(posterior->nearest(small.asked.col(0), 9).size() == 4);
}

TEST_CASE("the density of a small case is the one by the book") {
  const Small small;
  NegativeLogPosterior posterior(small.points, small.targets);
  Eigen::VectorXd gradient;
  // By numpy: y K^-1 y / 2 + log det K / 2 + the two priors.
  CHECK(posterior(Eigen::Vector3d(std::log(0.5), std::log(2.0), std::log(0.01)), gradient) ==
        doctest::Approx(1.99580134342556).epsilon(1e-12));
}

struct Random {
  Eigen::MatrixXd points;
  Eigen::VectorXd targets;
};

Random random_case(Eigen::Index dimensions, Eigen::Index count, std::uint64_t number) {
  RandomStream random(7, "gp_posterior_test", number);
  Random made{Eigen::MatrixXd(dimensions, count), Eigen::VectorXd(count)};
  for (double& each : made.points.reshaped()) each = random.uniform();
  for (Eigen::Index i = 0; i < count; ++i) {
    made.targets[i] = std::sin(6 * made.points(0, i)) + 0.1 * random.normal();
  }
  return made;
}

TEST_CASE("gradients are those of finite differences") {
  for (const Eigen::Index d : {1, 3, 8}) {
    CAPTURE(d);
    const Random data = random_case(d, 25, 1);
    NegativeLogPosterior posterior(data.points, data.targets);
    RandomStream random(7, "gp_posterior_test", 2);
    for (int round = 0; round < 5; ++round) {
      Eigen::VectorXd theta(d + 1);
      for (double& each : theta) each = random.uniform() * 3 - 2;
      theta[d] -= 3;
      Eigen::VectorXd gradient, unused;
      posterior(theta, gradient);
      for (Eigen::Index i = 0; i <= d; ++i) {
        Eigen::VectorXd more = theta, less = theta;
        more[i] += 1e-5;
        less[i] -= 1e-5;
        const double slope = (posterior(more, unused) - posterior(less, unused)) / 2e-5;
        CHECK(gradient[i] == doctest::Approx(slope).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("a fit finds out which dimension matters") {
  const Random data = random_case(3, 60, 3);
  const FitOutcome outcome = fitted(data.points, data.targets, first_fit(3));
  REQUIRE(outcome.fit.has_value());
  CHECK(outcome.trouble == "");
  const std::vector<double>& scales = outcome.fit->scales.log_lengths;
  CHECK(scales[0] < std::log(0.8));
  CHECK(scales[1] > scales[0] + 1);
  CHECK(scales[2] > scales[0] + 1);
  CHECK(outcome.fit->scales.log_noise < std::log(0.1));
  // And no direction leads to a larger density.
  NegativeLogPosterior posterior(data.points, data.targets);
  Eigen::VectorXd gradient;
  posterior(Eigen::Vector4d(scales[0], scales[1], scales[2], outcome.fit->scales.log_noise),
            gradient);
  CHECK(gradient.norm() < 0.1);
}

TEST_CASE("a fit in haste goes on from the last one, and is nearly as good") {
  const Random data = random_case(3, 60, 3);
  const Fit last = *fitted(data.points.leftCols(50), data.targets.head(50), first_fit(3)).fit;
  const auto density_of = [&](const Fit& fit) {
    NegativeLogPosterior posterior(data.points, data.targets);
    Eigen::VectorXd gradient;
    const std::vector<double>& scales = fit.scales.log_lengths;
    return -posterior(Eigen::Vector4d(scales[0], scales[1], scales[2], fit.scales.log_noise),
                      gradient);
  };
  const FitOutcome hasty = fitted_in_haste(data.points, data.targets, last);
  REQUIRE(hasty.fit.has_value());
  CHECK(density_of(*hasty.fit) >= density_of(last));
  CHECK(density_of(*hasty.fit) > density_of(*fitted(data.points, data.targets, last).fit) - 0.1);
}

TEST_CASE("what is not a number is refused in words, by fit and posterior") {
  const Small small;
  Eigen::MatrixXd broken = small.points;
  broken(0, 0) = std::nan("");
  const FitOutcome outcome = fitted(broken, small.targets, first_fit(2));
  CHECK_FALSE(outcome.fit.has_value());
  CHECK(outcome.trouble != "");
  CHECK_FALSE(Posterior::make(broken, small.targets, small.scales, 0).has_value());
}

TEST_CASE("where an optimiser cannot begin at the last fit, it begins at the very first") {
  const Random data = random_case(3, 60, 3);
  Fit last = first_fit(3);
  last.scales.log_lengths[0] = std::nan("");
  const FitOutcome outcome = fitted(data.points, data.targets, last);
  REQUIRE(outcome.fit.has_value());
  CHECK(outcome.fit->scales.log_lengths ==
        fitted(data.points, data.targets, first_fit(3)).fit->scales.log_lengths);
}

TEST_CASE("where a result says nothing of length scales they are drawn as the prior has them") {
  const Eigen::MatrixXd point = Eigen::MatrixXd::Constant(2, 1, 0.5);
  const Eigen::VectorXd target = Eigen::VectorXd::Zero(1);
  std::vector<double> lengths;
  for (std::uint64_t i = 0; i < 200; ++i) {
    RandomStream random(5, "gp_posterior_test", i);
    for (const Scales& each : drawn_scales(point, target, first_fit(2).scales, random)) {
      REQUIRE(each.log_lengths.size() == 2);
      lengths.insert(lengths.end(), each.log_lengths.begin(), each.log_lengths.end());
    }
  }
  REQUIRE(lengths.size() == 3200);
  double mean = 0;
  for (const double one : lengths) mean += one / 3200;
  double variance = 0;
  for (const double one : lengths) variance += (one - mean) * (one - mean) / 3200;
  // N(sqrt(2) + log(2) / 2, sqrt(3)), cut off at -4 and 6.
  CHECK(mean == doctest::Approx(std::sqrt(2.0) + 0.5 * std::log(2.0)).epsilon(0.1));
  CHECK(std::sqrt(variance) == doctest::Approx(std::sqrt(3.0)).epsilon(0.06));
}

TEST_CASE("draws of length scales lie about the likeliest where there are many results") {
  const Random data = random_case(3, 100, 5);
  const Scales likeliest = fitted(data.points, data.targets, first_fit(3)).fit->scales;
  RandomStream random(5, "gp_posterior_test", 0);
  const std::vector<Scales> draws = drawn_scales(data.points, data.targets, likeliest, random);
  CHECK(draws.size() == 8);
  RandomStream again(5, "gp_posterior_test", 0);
  CHECK(drawn_scales(data.points, data.targets, likeliest, again) == draws);
  NegativeLogPosterior posterior(data.points, data.targets);
  const auto density_of = [&](const Scales& scales) {
    const std::vector<double>& lengths = scales.log_lengths;
    return -posterior.value(Eigen::Vector4d(lengths[0], lengths[1], lengths[2], scales.log_noise));
  };
  for (const Scales& each : draws) {
    CHECK(each != likeliest);
    CHECK(density_of(each) < density_of(likeliest) + 0.1);
    CHECK(density_of(each) > density_of(likeliest) - 15);  // four coordinates: mostly within 5
  }
}

TEST_CASE("the density alone is the one that comes with the gradient") {
  const Small small;
  NegativeLogPosterior posterior(small.points, small.targets);
  const Eigen::Vector3d theta(std::log(0.3), std::log(1.5), std::log(0.1));
  Eigen::VectorXd gradient;
  CHECK(posterior.value(theta) == doctest::Approx(posterior(theta, gradient)).epsilon(1e-12));
  CHECK(posterior.value(Eigen::Vector3d(std::nan(""), 0, 0)) == 1e10);
}

TEST_CASE("equal points, as many as there are, keep the covariance positive definite") {
  const Eigen::MatrixXd points = Eigen::MatrixXd::Constant(3, 200, 0.5);
  Eigen::VectorXd targets(200);
  for (Eigen::Index i = 0; i < 200; ++i) targets[i] = i % 2 == 0 ? 1 : -1;
  const FitOutcome outcome = fitted(points, targets, first_fit(3));
  REQUIRE(outcome.fit.has_value());
  const auto posterior = Posterior::make(points, targets, outcome.fit->scales, 0);
  REQUIRE(posterior.has_value());
  CHECK(posterior->predict(points.leftCols(1)).mean[0] == doctest::Approx(0).epsilon(1e-3));
}

// By mpmath with 60 digits.
TEST_CASE("the logarithm of the expected improvement is exact near and far") {
  CHECK(log_expected_improvement(0.5, 0.2, 0.3) == doctest::Approx(-1.5294116935847934));
  CHECK(log_expected_improvement(-1, 0.1, 1) == doctest::Approx(-209.22042360241912));
  CHECK(log_expected_improvement(-3, 0.1, 1) == doctest::Approx(-810.60115344961392).epsilon(1e-9));
  CHECK(log_expected_improvement(-4, 0.1, 1) == doctest::Approx(-1261.0467679614548).epsilon(1e-9));
  CHECK(std::isfinite(log_expected_improvement(-1e6, 1e-5, 1e6)));
  // No step where the formulas change.
  CHECK(log_expected_improvement(-25.0001, 1, 0) ==
        doctest::Approx(log_expected_improvement(-24.9999, 1, 0)).epsilon(1e-4));
}

}  // namespace
}  // namespace tune::search::gp
