// Reading CSV (RFC 4180): quoted cells may hold commas, line breaks and doubled quotes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

// Takes the next row off the front of `text`; false when nothing is left. Accepts \n and \r\n.
bool next_csv_row(std::string_view& text, std::vector<std::string>& row);

enum class Quotes { kQuote, kAreText };
// The offset at which the first `rows` rows of `text` end (all of them when there are fewer), each
// with its \n. Where quotes quote, line breaks between them do not end a row.
std::size_t offset_after_rows(std::string_view text, std::uint64_t rows, Quotes quotes);

}  // namespace tune
