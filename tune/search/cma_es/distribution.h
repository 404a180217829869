// The search distribution of CMA-ES with categories and margin, as a plain value: a normal
// distribution of the numbers, and the chances of each category. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "tune/search/cma_es/variables.h"

namespace tune::search::cma_es {

inline constexpr double kTiny = 1e-8;  // keeps quotients and chances off their bounds

struct Distribution {
  std::uint64_t population = 0;
  std::uint64_t generation = 0;

  // Of the numbers. A number is mean + step_size * its scale * what the covariance gives.
  std::vector<double> mean;
  double step_size = 1;
  std::vector<double> covariance;      // row by row
  std::vector<double> scales;          // 1 but for cells, where it keeps their chances up
  std::vector<double> path_step;       // evolution paths: for the step size,
  std::vector<double> path;            // and for the covariance
  std::vector<double> mutation_rates;  // of numbers in cells: the chance of another one
  std::vector<std::uint8_t> mutated;   // whether one of the better half had another one
  std::vector<double> ranges;          // of earlier losses, the newest first; at most some dozen

  // Of the categories.
  std::vector<std::vector<double>> chances;
  double stride = 1;     // of the chances in the next generation
  double caution = 1;    // what strides are divided by, the larger the less their directions agree
  double certainty = 0;  // how long the direction would be if all of them agreed
  std::vector<double> direction;

  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.population, s.generation, s.mean, s.step_size, s.covariance, s.scales, s.path_step, s.path,
      s.mutation_rates, s.mutated, s.ranges, s.chances, s.stride, s.caution, s.certainty,
      s.direction);
  }
};

// 4 + floor(3 ln d) in d dimensions.
std::uint64_t default_population(const Variables& variables);
// Before the first generation: the mean in the middle, standard deviations a sixth of the range, a
// fifth for cells, all options alike.
Distribution first_distribution(const Variables& variables, std::uint64_t population);
// Whether it is one of these variables, with finite numbers.
bool fits(const Distribution& distribution, const Variables& variables);

// Draws from a distribution, whose covariance is taken apart once.
class Sampler {
 public:
  explicit Sampler(const Distribution& distribution);  // must outlive it
  Drawn draw(RandomStream& random) const;

 private:
  const Distribution& distribution_;
  std::vector<double> root_;  // of the covariance, row by row
};

// The largest standard deviation of the continuous numbers, 0 when there are none.
double largest_deviation(const Distribution& distribution, const Variables& variables);

}  // namespace tune::search::cma_es
