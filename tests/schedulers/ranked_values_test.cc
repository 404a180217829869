// Ranks among many values, and how schedulers tell them.
#include "schedulers/ranked_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "core/random.h"
#include "schedulers/asha.h"
#include "schedulers/rung.h"
#include "tune/testing/reports.h"

namespace tune {
namespace {

TEST_CASE("ranks are those of counting, of any number of values and with equal ones") {
  RandomStream random(11, "ranks", 0);
  RankedValues ranked;
  std::vector<double> all;
  for (int i = 0; i < 9000; ++i) {  // several nodes of leaves
    double value = std::floor(random.uniform() * 900) / 100;
    if (i % 50 == 0) value = std::nan("");
    const std::size_t found = ranked.add(ranked.seat(value));
    all.push_back(value);
    if (i % 97 != 0) continue;
    CHECK(found == ranked.better_than(value));
    for (const double one : {value, 4.5, -1.0, 10.0, std::nan("")}) {
      const auto better = static_cast<std::size_t>(std::count_if(
          all.begin(), all.end(), [&](double other) { return is_worse(one, other); }));
      CHECK(ranked.better_than(one) == better);
    }
  }
  std::sort(all.begin(), all.end(), is_worse);
  const std::vector<double> found = ranked.all();
  REQUIRE(found.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const double at = ranked.at(i).value;
    REQUIRE((at == all[i] || (std::isnan(at) && std::isnan(all[i]))));
    const double next = ranked.at(i).next;
    const double following = all[std::min(i + 1, all.size() - 1)];
    REQUIRE((next == following || (std::isnan(next) && std::isnan(following))));
    REQUIRE((found[i] == all[i] || (std::isnan(found[i]) && std::isnan(all[i]))));
  }
}

TEST_CASE("values that only rise, only fall or are all the same keep their places") {
  for (const double slope : {1.0, -1.0, 0.0}) {
    CAPTURE(slope);
    RankedValues ranked;
    for (int i = 0; i < 10000; ++i) {
      REQUIRE(ranked.add(slope * i) == (slope < 0 ? static_cast<std::size_t>(i) : 0));
    }
    for (const int place : {0, 63, 64, 127, 128, 1023, 1024, 4095, 4096, 9999}) {
      const double value = slope < 0 ? place - 9999 : slope * place;
      CHECK(ranked.at(static_cast<std::size_t>(place)).value == value);
    }
  }
}

TEST_CASE("asha tells how a trial stands at its rung, whatever the verdict, also when restored") {
  const auto configured = [] {
    auto made = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3}).make();
    made->configure({"m", Mode::kMin, 7});
    return made;
  };
  auto made = configured();
  const auto judge = [&](std::uint32_t trial, double value) {
    made->add_trial({trial});
    return made->result({trial}, testing::report(trial, 1, value));
  };
  const Decision first = judge(0, 0.5);
  REQUIRE(first.place.has_value());
  CHECK(first.place->milestone == 1);
  CHECK(first.place->value == 0.5);
  CHECK(first.place->rank == 1);
  CHECK(first.place->of == 1);
  CHECK_FALSE(first.place->bracket.has_value());
  judge(1, 0.25);
  auto other = configured();
  other->restore(made->save());
  made = std::move(other);
  const Decision third = judge(2, 0.75);
  CHECK(third.kind == Decision::Kind::kStop);
  REQUIRE(third.place.has_value());
  CHECK(third.place->rank == 3);
  CHECK(third.place->of == 3);
  CHECK(third.place->cut_off.has_value());
  CHECK(*third.place->cut_off < 0.75);
  // One that has not come to a rung, and one at max_t, stand at none.
  made->add_trial({3});
  CHECK_FALSE(made->result({0}, testing::report(0, 2, 0.1)).place.has_value());
  CHECK_FALSE(made->result({0}, testing::report(0, 9, 0.1)).place.has_value());
}

TEST_CASE("asha tells the bracket of a trial where there are several") {
  for (const AshaType type : {AshaType::kStop, AshaType::kPromote}) {
    auto made = asha({.max_t = 9, .brackets = 2, .type = type}).make();
    made->configure({"m", Mode::kMax, 7});
    std::set<std::uint32_t> seen;
    for (std::uint32_t trial = 0; trial < 64; ++trial) {
      made->add_trial({trial});
      const Decision low = made->result({trial}, testing::report(trial, 1, 0.5));
      const Decision high = low.place ? low : made->result({trial}, testing::report(trial, 4, 0.5));
      REQUIRE(high.place.has_value());
      REQUIRE(high.place->bracket.has_value());
      CHECK(*high.place->bracket == (low.place ? 0 : 1));  // bracket 1 leaves the lowest rung out
      seen.insert(*high.place->bracket);
    }
    CHECK(seen.size() == 2);
  }
}

TEST_CASE("so does asha by promotion, when trials pause") {
  auto made =
      asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3, .type = AshaType::kPromote})
          .make();
  made->configure({"m", Mode::kMax, 7});
  Decision last;
  for (std::uint32_t trial = 0; trial < 4; ++trial) {
    made->add_trial({trial});
    last = made->result({trial}, testing::report(trial, 1, trial == 3 ? 1.5 : trial));
  }
  CHECK(last.kind == Decision::Kind::kPause);
  REQUIRE(last.place.has_value());
  CHECK(last.place->value == 1.5);
  CHECK(last.place->rank == 2);
  CHECK(last.place->of == 4);
  CHECK(last.place->cut_off == 2);  // one of four may go on
}

}  // namespace
}  // namespace tune
