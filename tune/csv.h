// Reading CSV (RFC 4180): quoted cells may hold commas, line breaks and doubled quotes. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tune {

// Takes the next row off the front of `text`; false when nothing is left. Accepts \n and \r\n.
bool next_csv_row(std::string_view& text, std::vector<std::string>& row);

}  // namespace tune
