// Small text helpers: what error messages and tables need. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

// The known word nearest to a wrong one (fewest edits, first wins); empty when none is near.
std::string nearest(std::string_view wrong, const std::vector<std::string>& known);
// As one word of a shell's line: as it is, or between single quotes.
std::string shell_word(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The shortest text that reads back exactly; always looks like a float ("1.0", "1e+20", "nan").
void append_number(std::string& out, double value);
void append_integer(std::string& out, std::int64_t value);
// Appends the first character of `text`, or U+FFFD for a byte that begins none; returns how many
// bytes that took.
std::size_t append_utf8(std::string& out, std::string_view text);

}  // namespace tune
