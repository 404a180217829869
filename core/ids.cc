#include "core/ids.h"

#include <fmt/format.h>

#include "core/random.h"

namespace tune {

std::string experiment_id(std::string_view name, std::uint64_t seed) {
  const std::uint64_t hash = hash64(fmt::format("{}\n{}", name, seed));
  return fmt::format("{:05x}", (hash ^ hash >> 20 ^ hash >> 40) & 0xfffff);
}

std::string trial_id(std::string_view experiment, TrialNumber number) {
  return fmt::format("{}_{:05}", experiment, number.value);
}

}  // namespace tune
