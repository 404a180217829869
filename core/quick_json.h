// The JSON that tune itself writes, read in one pass: a reader of a hundred thousand trials spends
// a third of its time in a general one. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "core/value.h"

namespace tune {

// The value that parse_json gives. Nothing for text of another kind, JSON or not, that is left to
// the general reader: escapes, bytes beyond ASCII, keys with '/' or that are there twice, whole
// numbers of more than 18 digits, numbers beyond what a double holds, deep nesting.
std::optional<Value> quick_json(std::string_view text);

}  // namespace tune
