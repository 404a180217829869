// A generation of cma_es against the package cmaes (tests/data/search/make_traces.py).
#include "tune/search/cma_es/update.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tune/search/recorded.h"

namespace tune::search::cma_es {
namespace {

const std::string kGenerations = TUNE_SOURCE_DIR "/tests/data/search/cmaes_generations.txt";

Encoding recorded_space(const std::string& name) {
  SearchSpace space;
  if (name == "continuous") {
    for (const char* path : {"a", "b", "c"}) space.set(path, uniform(0, 1));
  } else if (name == "mixed") {
    for (const char* path : {"a", "b"}) space.set(path, uniform(0, 1));
    for (const char* path : {"m", "n"}) space.set(path, randint(0, 5));
    space.set("k", choice({"x", "y", "z"}));
    space.set("l", choice({"x", "y"}));
  } else if (name == "categories") {
    space.set("k", choice({"x", "y", "z"}));
    space.set("l", choice({"w", "x", "y", "z"}));
  } else {
    for (const char* path : {"l", "m", "n"}) space.set(path, randint(0, 7));
  }
  return Encoding(space);
}

// Numbers are those of the file: a line for each, but for the chances, which have one a category.
struct State {
  Distribution distribution;
  void read(const Line& line) {
    const std::vector<double> numbers = line.numbers();
    Distribution& d = distribution;
    if (line.kind() == "mean") d.mean = numbers;
    if (line.kind() == "step_size") d.step_size = numbers[0];
    if (line.kind() == "covariance") d.covariance = numbers;
    if (line.kind() == "scales") d.scales = numbers;
    if (line.kind() == "path_step") d.path_step = numbers;
    if (line.kind() == "path") d.path = numbers;
    if (line.kind() == "ranges") d.ranges = numbers;
    if (line.kind() == "mutation_rates") d.mutation_rates = numbers;
    if (line.kind() == "mutated") d.mutated.assign(numbers.begin(), numbers.end());
    if (line.kind() == "chances") d.chances.push_back(numbers);
    if (line.kind() == "stride") d.stride = numbers[0];
    if (line.kind() == "caution") d.caution = numbers[0];
    if (line.kind() == "certainty") d.certainty = numbers[0];
    if (line.kind() == "direction") d.direction = numbers;
  }
};

void check_same(const Distribution& found, const Distribution& expected) {
  constexpr double kTolerance = 1e-9;
  check_near(found.mean, expected.mean, kTolerance, "mean");
  check_near({found.step_size}, {expected.step_size}, kTolerance, "step size");
  check_near(found.covariance, expected.covariance, kTolerance, "covariance");
  check_near(found.scales, expected.scales, kTolerance, "scales");
  check_near(found.path_step, expected.path_step, kTolerance, "path of the step size");
  check_near(found.path, expected.path, kTolerance, "path");
  check_near(found.ranges, expected.ranges, kTolerance, "ranges");
  check_near(found.mutation_rates, expected.mutation_rates, kTolerance, "mutation rates");
  CHECK(found.mutated == expected.mutated);
  REQUIRE(found.chances.size() == expected.chances.size());
  for (std::size_t i = 0; i < found.chances.size(); ++i) {
    check_near(found.chances[i], expected.chances[i], kTolerance, "chances");
  }
  check_near({found.stride, found.caution, found.certainty},
             {expected.stride, expected.caution, expected.certainty}, kTolerance, "strides");
  check_near(found.direction, expected.direction, kTolerance, "direction");
}

Judged sample_of(const Line& line, const Variables& variables) {
  const std::vector<double> numbers = line.numbers();
  Judged sample;
  sample.loss = numbers[0];
  const auto end = numbers.begin() + 1 + static_cast<std::ptrdiff_t>(variables.numbers());
  sample.drawn.numbers.assign(numbers.begin() + 1, end);
  sample.drawn.categories.assign(end, numbers.end());
  return sample;
}

// The lines of one space: its first state, then samples and the state after each generation.
void check_space(const std::vector<Line>& lines, std::size_t begin, std::size_t end) {
  CAPTURE(lines[begin].words[1]);
  const Encoding encoding = recorded_space(lines[begin].words[1]);
  const Variables variables(encoding);
  const auto population = static_cast<std::uint64_t>(std::stoul(lines[begin].words[2]));
  CHECK(default_population(variables) == population);
  std::size_t at = begin + 1;
  const auto read_state = [&] {
    State state;
    while (at < end && lines[at].kind() != "sample") state.read(lines[at++]);
    return state.distribution;
  };
  Distribution distribution = read_state();
  distribution.population = population;
  REQUIRE(fits(distribution, variables));
  int generations = 0;
  while (at < end) {
    CAPTURE(generations);
    std::vector<Judged> judged;
    for (; lines[at].kind() == "sample"; ++at) judged.push_back(sample_of(lines[at], variables));
    REQUIRE(update(distribution, variables, judged));
    check_same(distribution, read_state());
    ++generations;
  }
  CHECK(generations >= 8);
  CHECK(distribution.generation == static_cast<std::uint64_t>(generations));
}

TEST_CASE("generations of every kind of space are those of the package cmaes") {
  const std::vector<Line> lines = recorded_lines(kGenerations);
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].kind() == "space") begins.push_back(i);
  }
  REQUIRE(begins.size() == 4);
  begins.push_back(lines.size());
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) check_space(lines, begins[i], begins[i + 1]);
}

TEST_CASE("numbers that fail change nothing") {
  const Encoding encoding = recorded_space("continuous");
  const Variables variables(encoding);
  Distribution distribution = first_distribution(variables, 4);
  const std::vector<double> mean = distribution.mean;
  std::vector<Judged> judged(4);
  for (std::size_t i = 0; i < 4; ++i) {
    judged[i].drawn.numbers = {0.1, 0.2, i == 0 ? std::numeric_limits<double>::infinity() : 0.5};
    judged[i].loss = static_cast<double>(i);
  }
  CHECK(update(distribution, variables, judged) == false);
  CHECK(distribution.mean == mean);
  CHECK(distribution.generation == 0);
}

TEST_CASE("numbers beyond the bounds rank behind what lies inside") {
  const Encoding encoding = recorded_space("continuous");
  const Variables variables(encoding);
  Distribution inside = first_distribution(variables, 4);
  std::vector<Judged> judged;
  for (const double x : {1.6, 0.6, 0.5, 0.4}) judged.push_back({{{x, 0.5, 0.5}, {}}, 0});
  for (std::size_t i = 0; i < 4; ++i) judged[i].loss = static_cast<double>(i) / 100;
  REQUIRE(update(inside, variables, judged));
  CHECK(inside.mean[0] < 1);  // without the penalty it would be at 1.28
}

TEST_CASE("what is far from the mean is pulled in, on the way to it") {
  const Encoding encoding = recorded_space("continuous");
  const Variables variables(encoding);
  const Distribution distribution = first_distribution(variables, 4);
  Drawn near = {{0.6, 0.5, 0.45}, {}};
  pull_in(near, distribution);
  CHECK(near.numbers == std::vector<double>{0.6, 0.5, 0.45});
  // Three dimensions: sqrt(3) + 6 / 5 deviations of a sixth.
  Drawn far = {{0.5 + 3, 0.5, 0.5 - 4}, {}};
  pull_in(far, distribution);
  const double length = (std::sqrt(3.0) + 1.2) / 6;
  check_near(far.numbers, {0.5 + length * 0.6, 0.5, 0.5 - length * 0.8}, 1e-12, "pulled in");
}

}  // namespace
}  // namespace tune::search::cma_es
