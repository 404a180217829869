// Reading result.json and params.json. result.json: one JSON object a line, line n is iteration n.
// A last line without its end was cut short and does not count. Throws Error (kIo) when an existing
// file cannot be read, Error (kBadInput) naming file and line when a line is not a JSON object.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune {

// Visits every complete line; a missing file has none.
void for_each_line(const std::filesystem::path& file,
                   const std::function<void(std::string_view line, std::size_t number)>& visit);
// Nothing when there is no complete line.
std::optional<std::string> last_line(const std::filesystem::path& file);
// The offset after the first `count` lines (all of them when there are fewer).
std::size_t offset_after_lines(const std::filesystem::path& file, std::size_t count);

// One line as the user reported it: null is NaN again, "inf" and "-inf" are infinite.
Result result_from_line(std::string_view line, const std::string& where);

// The number at a path of line `iteration` of result.json (1, 2 ...): what core/result_view.h says
// of a result that runs, of one that was written. A number that the user reported goes first; where
// something else stands under training_iteration, the count of steps is that of lines. (Other
// fields of the framework that a text hides are not in the file.)
std::optional<double> number_at(const Result& result, std::size_t iteration, std::string_view path);

// The last complete line of a trial's result.json.
struct ResultLine {
  Result result;              // empty when there is none
  std::size_t iteration = 0;  // as it says, else its place
  std::optional<double> number(std::string_view path) const {
    return number_at(result, iteration, path);
  }
};
ResultLine last_result_line(const std::filesystem::path& trial_directory);

// params.json: "inf" and "-inf" are infinite; null is what the user wrote.
Config config_from_json(std::string_view text, const std::string& where);

}  // namespace tune
