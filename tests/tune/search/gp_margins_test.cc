// Margins of constraints, as a Gaussian process learns them.
#include "numbers.h"
#include "tune/search/gp/margins.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace tune::search::gp {
namespace {

using tune::testing::kInfinity;

TEST_CASE("targets of margins have mean 0 and variance 1, and the bound parts kept from broken") {
  const std::vector<double> margins = {-3, -1, -0.5, 0.25, 2, -0.75};
  const MarginTargets made = margin_targets(margins);
  REQUIRE(made.targets.size() == margins.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < margins.size(); ++i) {
    sum += made.targets[i];
    squares += made.targets[i] * made.targets[i];
    CHECK((made.targets[i] > made.bound) == (margins[i] > 0));
  }
  CHECK(sum == doctest::Approx(0));
  CHECK(squares == doctest::Approx(6));
}

TEST_CASE("how far away the bound is counts, and is the same in any unit") {
  const MarginTargets near = margin_targets({-0.1, -0.5, -1, -2});
  const MarginTargets far = margin_targets({-0.9, -1.3, -1.8, -2.8});  // .8 further
  CHECK(far.bound - far.targets[0] > 2 * (near.bound - near.targets[0]));
  const MarginTargets in_thousands = margin_targets({-100, -500, -1000, -2000});
  CHECK(in_thousands.bound == doctest::Approx(near.bound));
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(in_thousands.targets[i] == doctest::Approx(near.targets[i]));
  }
}

TEST_CASE("what breaks a constraint by far is all alike, and so is what is not finite") {
  const MarginTargets made = margin_targets({-1, -2, 0.5, -1e9, -kInfinity, 3});
  CHECK(made.targets[3] == made.targets[4]);
  CHECK(std::isfinite(made.targets[3]));
  CHECK(made.targets[3] < made.targets[1]);
  // The others are still told apart: log 2 - log 1.5 = .29 of log 11 + log 2.5 = 3.3 in all.
  CHECK(made.targets[0] - made.targets[1] > 0.05 * (made.targets[5] - made.targets[3]));
}

TEST_CASE("a margin of 0 keeps the constraint: the bound lies below it") {
  const MarginTargets whole_numbers = margin_targets({0, 0, -0.25, -0.5, 0.25});
  CHECK(whole_numbers.bound < whole_numbers.targets[0]);
  CHECK(whole_numbers.bound > whole_numbers.targets[2]);
  const MarginTargets none_broken = margin_targets({0, 0, 1});
  CHECK(none_broken.bound < none_broken.targets[0]);
}

TEST_CASE("of margins that are all alike there is nothing to learn") {
  CHECK(margin_targets({}).targets.empty());
  CHECK(margin_targets({-0.5, -0.5}).targets.empty());
  CHECK(margin_targets({-kInfinity, -kInfinity}).targets.empty());
  CHECK(margin_targets({0, 0, 0}).targets.empty());
}

}  // namespace
}  // namespace tune::search::gp
