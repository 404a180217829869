// points_to_evaluate: configurations that a user names, whole or in part, and how they fit a space.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

// The options of a choice that a value given for it may be: all of its keys are keys of the option,
// and where that has constants they are the same. Keys may be missing.
std::vector<std::size_t> fitting_options(const Domain::Choice& choice, const Value& value);

// The presets, numbers in the types that the space draws: 8.0 is 8 for a whole number and for a
// choice of 8, and 1 is 1.0 for a float. What may become of one number by its option of a choice
// stays as it is. Throws Error (kBadInput), naming point and key, when a value of a preset replaces
// neither a domain nor a constant of the space, or a key is one that the preset's option of a choice
// does not have; and when there are more than samples (-1: no end). Values may be others than the
// space has, but for the constants within options.
std::vector<Config> checked_presets(const SearchSpace& space, const std::vector<Config>& presets,
                                    std::int64_t num_samples);

}  // namespace tune
