// A configuration that a user adds to a sweep while it runs. Pure.
#pragma once

#include <cstdint>

#include "core/value.h"
#include "tune/search/searcher.h"

namespace tune {

// `point` with what it leaves out drawn from the sweep's space, by a stream of its own for each
// `number`. Throws Error (kBadInput), naming the key, where one of points_to_evaluate would be
// refused, and where it leaves out a grid_search: one configuration is meant.
Config whole_point(const SearcherSetup& sweep, const Config& point, std::uint64_t number);

}  // namespace tune
