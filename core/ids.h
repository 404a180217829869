// Identifiers: numbers that cannot be mixed up, and their printed forms.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace tune {

template <class Tag>
struct NumberId {
  std::uint32_t value = 0;
  friend auto operator<=>(const NumberId&, const NumberId&) = default;
  friend std::ostream& operator<<(std::ostream& out, NumberId id) { return out << id.value; }
};

using TrialNumber = NumberId<struct TrialTag>;    // 0, 1, 2 ... in the order of creation
using AttemptNumber = NumberId<struct AttemptTag>;  // 1, 2 ... launches of one trial; 0 is none
using AgentNumber = NumberId<struct AgentTag>;    // 0, 1 ... nodes in the order they joined

// The 5 hex characters that open the trial ids of an experiment: a hash of its name and seed.
std::string experiment_id(std::string_view name, std::uint64_t seed);
// "2f1e0_00003"; the counter has at least 5 digits.
std::string trial_id(std::string_view experiment, TrialNumber number);

}  // namespace tune
