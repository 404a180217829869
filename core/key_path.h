// Key paths: the names of nested maps joined by '/', as in "model/layers". Pure.
#pragma once

#include <string>
#include <string_view>

namespace tune {

// The path of a key in the map at `path`; the map at "" is the outermost.
std::string join_path(const std::string& path, const std::string& key);
// Whether no name in it is empty.
bool is_key_path(std::string_view text);

}  // namespace tune
