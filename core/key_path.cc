#include "core/key_path.h"

namespace tune {

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "/" + key;
}

bool is_key_path(std::string_view text) {
  return !text.empty() && text.front() != '/' && text.back() != '/' &&
         text.find("//") == std::string_view::npos;
}

}  // namespace tune
