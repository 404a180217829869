#include "tune/results/csv.h"

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

std::size_t offset_after_rows(std::string_view text, std::uint64_t rows, Quotes quotes) {
  std::size_t end = 0;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size() && rows > 0; ++at) {
    if (text[at] == '"' && quotes == Quotes::kQuote) is_quoted = !is_quoted;
    if (text[at] != '\n' || is_quoted) continue;
    --rows;
    end = at + 1;
  }
  return end;
}

}  // namespace tune
