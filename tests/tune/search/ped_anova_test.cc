// Importances of functions whose importances are known.
#include "tune/search/ped_anova.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include "core/random.h"

namespace tune {
namespace {

using Function = std::function<double(const Config&)>;

std::vector<ParameterImportance> of(const SearchSpace& space, int trials,
                                    const Function& function) {
  const Encoding encoding(space);
  RandomStream random(3, "trials", 0);
  std::vector<UnitPoint> points;
  std::vector<double> scores;
  for (int i = 0; i < trials; ++i) {
    points.push_back(encoding.draw(random));
    scores.push_back(function(encoding.decode(points.back())));
  }
  return ped_anova(encoding, points, scores);
}

SearchSpace cube(int dimensions) {
  SearchSpace space;
  for (int i = 0; i < dimensions; ++i) space.set("x" + std::to_string(i), uniform(0, 1));
  return space;
}

TEST_CASE("of few trials more than a tenth are the best ones") {
  CHECK(best_of(20) == 5);
  CHECK(best_of(32) == 8);
  CHECK(best_of(80) == 8);
  CHECK(best_of(81) == 9);
  CHECK(best_of(1000) == 100);
}

TEST_CASE("a parameter that decides all gets nearly all, and alone stands out") {
  for (const int trials : {20, 40, 200, 1000}) {
    CAPTURE(trials);
    const auto found =
        of(cube(5), trials, [](const Config& config) { return config.get<double>("x2"); });
    CHECK(found[2].share > 0.75);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(found[i].stands_out == (i == 2));
      CHECK(found[i].trials == static_cast<std::size_t>(trials));
    }
  }
}

TEST_CASE("without what chance gives, the others of few trials would get a good part") {
  const auto found = of(cube(8), 20, [](const Config& config) { return config.get<double>("x2"); });
  double plain = 0;
  for (const ParameterImportance& one : found) plain += one.divergence;
  CHECK(found[2].divergence / plain < 0.75);
  CHECK(found[2].share > found[2].divergence / plain + 0.1);
}

TEST_CASE("a value without effect changes nothing: no parameter stands out") {
  RandomStream noise(5, "noise", 0);
  const auto found = of(cube(6), 300, [&](const Config&) { return noise.uniform(); });
  for (const ParameterImportance& one : found) CHECK_FALSE(one.stands_out);
}

TEST_CASE("parameters that count alike get alike, and one that counts more gets more") {
  const auto alike = of(cube(3), 2000, [](const Config& config) {
    return -std::pow(config.get<double>("x0") - 0.5, 2) -
           std::pow(config.get<double>("x1") - 0.5, 2);
  });
  CHECK(std::abs(alike[0].share - alike[1].share) < 0.1);
  CHECK(alike[2].share < 0.03);
  const auto unlike = of(cube(3), 2000, [](const Config& config) {
    return 3 * config.get<double>("x0") + config.get<double>("x1");
  });
  CHECK(unlike[0].share > 2 * unlike[1].share);
  CHECK(unlike[1].stands_out);
  CHECK(unlike[2].share < 0.03);
}

// 200 trials, 50 of each option. The best 20 all have the first: 1 / 0.25 - 1 = 3. Of 20 drawn at
// random: the sum over options of q (p / q - 1)^2 has the mean (4 - 1) / 20, less the share that
// drawing without replacement takes away: 3 / 20 * 180 / 199 = 0.1357.
TEST_CASE("the divergence of a choice and of chance are what arithmetic says") {
  const Encoding encoding({{"act", choice({"a", "b", "c", "d"})}});
  std::vector<UnitPoint> points;
  std::vector<double> scores;
  for (int i = 0; i < 200; ++i) {
    points.push_back({(i % 4 + 0.5) / 4});
    scores.push_back(i % 4 == 0 ? 1 : 0);
  }
  const ParameterImportance found = ped_anova(encoding, points, scores).front();
  CHECK(found.divergence == doctest::Approx(3));
  CHECK(std::abs(found.chance - 0.1357) < 0.02);
  CHECK(found.share == 1);
}

TEST_CASE("a parameter counts on the scale on which it is drawn") {
  const SearchSpace space = {{"lr", loguniform(1e-6, 1)}, {"width", randint(1, 100)}};
  const auto found = of(space, 100, [](const Config& config) {
    return -std::abs(std::log10(config.get<double>("lr")) + 4);
  });
  CHECK(found[0].share > 0.9);
  const auto width = of(
      space, 100, [](const Config& config) { return -std::abs(config.get<double>("width") - 20); });
  CHECK(width[1].share > 0.9);
}

TEST_CASE("a parameter that depends on a choice counts where the best ones have it") {
  const SearchSpace space = {{"opt", choice({{{"kind", "bad"}, {"p", uniform(0, 1)}},
                                             {{"kind", "good"}, {"q", uniform(0, 1)}}})},
                             {"other", uniform(0, 1)}};
  const auto found = of(space, 200, [](const Config& config) {
    if (config.get<std::string>("opt/kind") == "bad") return config.get<double>("opt/p") - 2;
    return -std::abs(config.get<double>("opt/q") - 0.3);
  });
  REQUIRE(found.size() == 4);
  const ParameterImportance &opt = found[0], &p = found[1], &q = found[2], &other = found[3];
  CHECK(opt.stands_out);
  CHECK(q.stands_out);
  CHECK(q.share > opt.share);
  CHECK(p.share == 0);  // none of the best has it
  CHECK_FALSE(other.stands_out);
  CHECK(opt.trials == 200);
  CHECK(p.trials + q.trials == 200);
}

TEST_CASE("a parameter that all trials have alike counts nothing") {
  const Encoding encoding({{"x", uniform(0, 1)}, {"y", uniform(0, 1)}});
  std::vector<UnitPoint> points;
  std::vector<double> scores;
  for (int i = 0; i < 40; ++i) {
    points.push_back({0.5, i / 40.0});
    scores.push_back(i);
  }
  const auto found = ped_anova(encoding, points, scores);
  CHECK(found[0].share == 0);
  CHECK_FALSE(found[0].stands_out);
  CHECK(found[1].share == 1);
}

TEST_CASE("the same trials give the same importances") {
  const auto by_first = [](const Config& config) { return config.get<double>("x0"); };
  const auto one = of(cube(3), 60, by_first);
  const auto other = of(cube(3), 60, by_first);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].share == other[i].share);
}

}  // namespace
}  // namespace tune
