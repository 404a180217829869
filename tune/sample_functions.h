// Puts a configuration together: chosen values by path, constants, and the values that functions of the
// space (sample_from) compute from the others. Pure.
#pragma once

#include <map>
#include <string>

#include "tune/search_space.h"

namespace tune {

// `chosen` has every domain but the functions, and what a preset replaces. Keys come in the order of the
// space. Throws Error (kBadInput) when functions depend on each other in a cycle, which it names, or
// when one throws.
Config assemble(const SearchSpace& space, std::map<std::string, Value> chosen);

}  // namespace tune
