#include "tune/csv.h"

namespace tune {

bool next_csv_row(std::string_view& text, std::vector<std::string>& row) {
  row.clear();
  if (text.empty()) return false;
  row.emplace_back();
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < text.size() && text[i + 1] == '"';
      if (doubled) row.back() += text[i++];
      if (!doubled) quoted = !quoted;
    } else if (quoted) {
      row.back() += c;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  text.remove_prefix(i < text.size() ? i + 1 : i);
  return true;
}

}  // namespace tune
