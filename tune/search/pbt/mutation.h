// Mutation: how population based training changes the values of a configuration. Pure.
//
// The rules are those of Ray Tune's `_explore` (Jaderberg et al., arXiv 1711.09846). For each
// parameter: with resample_probability a value is drawn from its domain or list anew; else a list's
// value moves to one of its neighbours, and a number is multiplied by one of the factors. Where
// ours differs: a number stays within its domain (Ray multiplies a dropout of .9 to 1.08), a
// multiple of q stays one, a whole number that rounding would leave as it is moves by one, and
// `choice` is a list (Ray multiplies its numbers to what is no option, and fails on texts). A
// parameter that the configuration does not hold, of another branch of a conditional space, is left
// out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

// Where its luck comes from: a test gives it what another tool has drawn.
class Chance {
 public:
  virtual ~Chance() = default;
  virtual double uniform() = 0;                      // [0, 1)
  virtual std::size_t index(std::size_t count) = 0;  // [0, count)
  virtual Value draw(const Domain& domain) = 0;      // neither a grid nor a function
};

class StreamChance : public Chance {
 public:
  explicit StreamChance(RandomStream random) : random_(random) {}
  double uniform() override { return random_.uniform(); }
  std::size_t index(std::size_t count) override;
  Value draw(const Domain& domain) override { return domain.draw(random_); }

 private:
  RandomStream random_;
};

struct MutationRules {
  double resample_probability = 0.25;
  std::vector<double> perturbation_factors = {1.2, 0.8};
};

struct Mutated {
  Config config;
  std::string changes;  // "lr 0.1 * 1.2 = 0.12, act tanh drawn anew"
};

// A space of domains, of lists (choices of their values) and of functions.
Mutated mutate(const Config& config, const SearchSpace& mutations, const MutationRules& rules,
               Chance& chance);

// The fault of a space of mutations: a constant that is not a list, a grid, an empty list.
std::vector<SpaceComplaint> complaints_about_mutations(const SearchSpace& mutations);
// The key paths of the parameters that it changes.
std::vector<std::string> mutated_paths(const SearchSpace& mutations);

}  // namespace tune
