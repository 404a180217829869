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

// Throws Error (kBadInput), naming point and key, when a value of a preset replaces neither a domain
// nor a constant of the space, or a key is one that the preset's option of a choice does not have;
// and when there are more than samples (-1: no end). Values may be others than the space has, but
// for the constants within options.
void check_presets(const SearchSpace& space, const std::vector<Config>& presets,
                   std::int64_t num_samples);

}  // namespace tune
