#include "tune/spec/when.h"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kLongest = 3660 * kDay;

[[noreturn]] void refuse(std::string_view text, const std::string& option, const char* remedy) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: '{}' is not {}", option, text, remedy));
}

std::int64_t seconds_of_unit(std::string_view& rest) {
  if (rest.empty()) return 1;
  const char unit = rest.front();
  rest.remove_prefix(1);
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return kDay;
  }
  return 0;
}

}  // namespace

std::chrono::nanoseconds duration_of(std::string_view text, const std::string& option) {
  constexpr const char* kRemedy = "a time such as 90s, 5m, 4h, 1h30m or 2d";
  std::int64_t sum = 0;
  std::string_view rest = text;
  if (rest.empty()) refuse(text, option, kRemedy);
  while (!rest.empty()) {
    std::int64_t count = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    if (read.ec != std::errc() || count < 0 || count > kLongest) refuse(text, option, kRemedy);
    rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
    const std::int64_t unit = seconds_of_unit(rest);
    if (unit == 0) refuse(text, option, kRemedy);
    sum += count * unit;
    if (sum > kLongest) refuse(text, option, kRemedy);
  }
  return std::chrono::seconds(sum);
}

std::chrono::nanoseconds time_until(const std::string& text, std::time_t now,
                                    const std::string& option) {
  constexpr const char* kRemedy = "a time such as 4h, 18:30 or 2026-11-22T18:30";
  if (text.find(':') == std::string::npos) return duration_of(text, option);
  std::tm local{};
  ::localtime_r(&now, &local);
  local.tm_sec = 0;
  const bool is_date = text.find('T') != std::string::npos;
  const char* end = ::strptime(text.c_str(), is_date ? "%Y-%m-%dT%H:%M" : "%H:%M", &local);
  if (end == nullptr || *end != '\0') refuse(text, option, kRemedy);
  local.tm_isdst = -1;
  std::time_t then = std::mktime(&local);
  if (!is_date && then <= now) {
    ++local.tm_mday;
    local.tm_isdst = -1;
    then = std::mktime(&local);
  }
  if (then <= now) refuse(text, option, "still to come");
  return std::chrono::seconds(then - now);
}

std::optional<std::chrono::nanoseconds> time_of_slurm(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t days = 0;
  std::int64_t sum = 0;
  std::size_t parts = 0;
  while (true) {
    std::int64_t count = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
    if (read.ec != std::errc() || count < 0 || count > kLongest) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    if (text.starts_with('-') && parts == 0 && days == 0) {
      days = count;
      text.remove_prefix(1);
      continue;
    }
    sum = 60 * sum + count;
    ++parts;
    if (text.empty()) break;
    if (!text.starts_with(':') || parts == 3) return std::nullopt;
    text.remove_prefix(1);
  }
  if (parts < 2) return std::nullopt;
  return std::chrono::seconds(days * kDay + sum);
}

std::string in_words(std::chrono::nanoseconds time) {
  const std::int64_t all = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (all < 120) return fmt::format("{} s", all);
  const std::int64_t minutes = all / 60;
  if (minutes < 120) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace tune
