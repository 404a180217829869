// Values as JSON text and back. Text only; files are read and written elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "core/value.h"

namespace tune {

inline constexpr int kMaxNesting = 64;  // deepest nesting read from outside

// Appends one line of JSON. NaN becomes null, infinities "inf" and "-inf"; floats are the shortest
// text that reads back exactly and always look like floats ("1.0").
void append_json(std::string& out, const Value& value);
void append_json_text(std::string& out,
                      std::string_view text);  // quoted; bytes that are not UTF-8 become U+FFFD
void append_json_number(std::string& out, double value);
std::string to_json(const Value& value, int indent = -1);  // indent >= 0: pretty

// Throws Error (kBadInput) with the position and what was expected. `what` names the text in it.
Value parse_json(std::string_view text, std::string_view what);
// The same by the general reader alone, which parse_json asks for what core/quick_json.h leaves.
Value parse_any_json(std::string_view text, std::string_view what);
// The same for a report that a program printed: a map, otherwise an Error. NaN, Infinity and
// -Infinity are numbers, as Python's json writes them; a key "loss/test" is a key path.
Result parse_report_json(std::string_view text, std::string_view what);

}  // namespace tune
