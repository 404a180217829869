#include "core/strings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace tune {

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, diagonal + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxLength = 200;  // beyond it nobody mistyped a key
  if (wrong.size() > kMaxLength) return {};
  std::size_t best_distance = wrong.size() / 3 + 2;
  std::string best;
  for (const std::string& word : known) {
    if (word.size() > kMaxLength) continue;
    const std::size_t distance = edit_distance(wrong, word);
    if (distance >= best_distance || distance >= std::max(wrong.size(), word.size())) continue;
    best_distance = distance;
    best = word;
  }
  return best;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  out += text;
  if (std::isfinite(value) && text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

std::string format_number(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

}  // namespace tune
