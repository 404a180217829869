// Surrogate tasks: YAHPO Gym's networks, which predict what a training would report. One network
// answers for many tasks (data sets). Pure.
//
// A budget named epoch makes the steps of a curve: step 1 is epoch 2, since epoch 1 of these
// networks is the untrained net. Other budgets (training fraction, repetitions) stand at their
// most; without epochs a training has one step. A step takes the time that the network gives for
// the whole training over the number of steps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tune/simulate/network.h"
#include "tune/simulate/surrogate_space.h"
#include "tune/simulate/task.h"

namespace tune {

struct Surrogate {
  std::string name;  // of its folder
  SurrogateSpace space;
  Network network;

  // Throws Error (kBadInput) when the network is not one of this space.
  Surrogate(std::string name, SurrogateSpace space, Network network);

  std::uint64_t steps = 1;
  double first_epoch = 0;  // of step 1; 0: it has no epochs
  std::size_t epoch_column = 0;
};

// All tasks that its encoding names.
std::vector<std::unique_ptr<Task>> tasks_of(std::shared_ptr<const Surrogate> surrogate);

}  // namespace tune
