#include "core/strings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

namespace tune {

namespace {

// Two neighbours that change places are one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> former, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j + 1] + 1, next[j] + 1, row[j] + (a[i] != b[j])});
      const bool changed_places = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (changed_places) next[j + 1] = std::min(next[j + 1], former[j - 1] + 1);
    }
    former = row;
    std::swap(row, next);
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxLength = 200;  // no mistyped key is longer
  if (wrong.size() > kMaxLength) return {};
  // Of three letters one may be wrong: nan is not near bad.
  std::size_t best_distance = wrong.size() > 3 ? wrong.size() / 3 + 2 : 2;
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

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-+=:,@%").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
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
  const bool is_whole = std::trunc(value) == value && std::isfinite(value);
  if (is_whole && text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

void append_integer(std::string& out, std::int64_t value) {
  char buffer[24];
  const char* const end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, static_cast<std::size_t>(end - buffer));
}

namespace {

// The length of the UTF-8 sequence that begins there; 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first < 0xf0 || first > 0xf4) return 0;
  const bool overlong = first == 0xf0 && byte(1) < 0x90;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
}

}  // namespace

std::size_t append_utf8(std::string& out, std::string_view text) {
  const std::size_t length = sequence_length(text);
  out.append(length == 0 ? "\xef\xbf\xbd" : text.substr(0, length));
  return std::max<std::size_t>(1, length);
}

}  // namespace tune
