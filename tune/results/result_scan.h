// The numbers of one line of result.json, read without building a value of it: a reader of a
// hundred thousand trials reads a million such lines. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tune {

// Visits every number with its key path ("loss/train"), in order. Bools are 0 and 1, null is NaN,
// "inf" and "-inf" are infinite, as the line was reported; other texts and lists are left out. Of a
// key that is there twice both are visited. Throws Error (kBadInput) naming `where` when the line is
// not a JSON object.
void scan_numbers(std::string_view line, const std::string& where,
                  const std::function<void(std::string_view path, double value)>& visit);

}  // namespace tune
