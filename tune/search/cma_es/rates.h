// The constants of CMA-ES by dimensions and population (Hansen, "The CMA Evolution Strategy: A
// Tutorial", 2016, table 1). Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/search/cma_es/variables.h"

namespace tune::search::cma_es {

struct Rates {
  double dimensions = 0;        // of the numbers
  std::size_t better = 0;       // so many of a population have positive weights
  std::vector<double> weights;  // of the population, the best first
  double effective = 0;         // how many of those all alike would weigh as much
  double rank_one = 0;          // learning rates of the covariance
  double rank_many = 0;
  double step_path = 0;  // and of the evolution paths
  double path = 0;
  double step_damping = 0;
  double expected_length = 0;  // of a normal vector
};

Rates rates_of(const Variables& variables, std::size_t population);
// The least chance of another value that numbers in cells and categories have together.
double margin_of(const Variables& variables);

}  // namespace tune::search::cma_es
