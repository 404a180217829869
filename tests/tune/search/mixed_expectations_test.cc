#include "tune/search/gp/mixed_expectations.h"

#include <doctest/doctest.h>

#include <cmath>

namespace tune::search::gp {
namespace {

TEST_CASE("what one model expects is not changed") {
  const std::vector<Expectation> one = {{0.5, 0.25, -3}, {-1, 2, -900}};
  const std::vector<Expectation> all = mixed({one});
  REQUIRE(all.size() == 2);
  CHECK(all[0].mean == 0.5);
  CHECK(all[1].standard_deviation == 2);
  CHECK(all[1].acquisition == -900);
}

TEST_CASE("two models are mixed: their variance, and that of their means; the mean improvement") {
  const std::vector<Expectation> all = mixed({{{1, 1, std::log(0.2)}}, {{3, 2, std::log(0.4)}}});
  REQUIRE(all.size() == 1);
  CHECK(all[0].mean == doctest::Approx(2));
  CHECK(all[0].standard_deviation == doctest::Approx(std::sqrt((1 + 4) / 2.0 + 1)));
  CHECK(all[0].acquisition == doctest::Approx(std::log(0.3)));
}

TEST_CASE("improvements too small for a double are mixed as well") {
  CHECK(mixed({{{0, 1, -2000}}, {{0, 1, -3000}}})[0].acquisition ==
        doctest::Approx(-2000 - std::log(2)));
}

}  // namespace
}  // namespace tune::search::gp
