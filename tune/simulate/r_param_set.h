// A param_set.R of YAHPO Gym: paradox's parameter sets, as `name = ps(a = p_dbl(lower =
// 0,
// ...), ...)`. Read as text, never executed. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tune {

struct RParameter {
  std::string name;
  std::string kind;       // "p_dbl"
  std::string arguments;  // as written
  bool has_tag(std::string_view tag) const;
};

// The parameters of the set of that name, in order. Throws Error (kBadInput) naming `what`.
std::vector<RParameter> read_param_set(std::string_view text, std::string_view set,
                                       const std::string& what);

}  // namespace tune
