// The tree of conditions of a space: its parameters in groups that are active together. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tune/search/encoding.h"

namespace tune::search::tpe {

// The parameters that one option of a choice makes active, or those that always are.
struct SubSpace {
  std::optional<Condition> condition;
  std::vector<std::size_t> parameters;
};

// Each after the one that has its choice. A space without conditions is one sub-space; without
// parameters it has none.
std::vector<SubSpace> sub_spaces_of(const Encoding& encoding);

// Whether its parameters are active in the point; its choice has been settled.
bool is_active(const SubSpace& sub_space, const UnitPoint& point, const Encoding& encoding);

}  // namespace tune::search::tpe
