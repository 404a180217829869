// tune pool and tune validate --pool: the machines that an engine starts. Both return an exit code
// and throw Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tune/spec/experiment_spec.h"

namespace tune {

struct PoolArguments {
  std::string directory;
  std::optional<std::uint32_t> max;
  bool pause = false;
  bool resume = false;
};
int pool_command(const PoolArguments& arguments);

// Prints what the engine would be given, after it was asked whether it could start anything.
int print_pool(const ExperimentSpec& spec);

}  // namespace tune
