#include "tune/store_address.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr std::string_view kRedis = "redis://";
constexpr std::string_view kUnix = "unix://";

bool is_number(std::string_view text, unsigned low, unsigned high) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
}

std::string why_bad_redis(std::string_view rest) {
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (rest.substr(0, at).find(':') == std::string_view::npos) {
      return "what stands before '@' is no password: write redis://:password@host:port";
    }
    rest.remove_prefix(at + 1);
  }
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    if (!database.empty() && !is_number(database, 0, 1'000'000)) {
      return fmt::format("'{}' is no number of a database: write redis://host:port/0", database);
    }
    rest = rest.substr(0, slash);
  }
  const std::size_t bracket = rest.find(']');  // [::1]:6379
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const std::string_view port = rest.substr(colon + 1);
    if (!is_number(port, 1, 65535)) {
      return fmt::format("'{}' is no port from 1 to 65535: write redis://host:6379", port);
    }
    rest = rest.substr(0, colon);
  }
  if (rest.empty()) return "names no host: write redis://host:6379";
  return {};
}

}  // namespace

std::string why_bad_store_address(const std::string& address) {
  const std::string_view text = address;
  if (text.find_first_of(" \t\r\n") != std::string_view::npos) return "holds a blank";
  if (text.starts_with(kRedis)) return why_bad_redis(text.substr(kRedis.size()));
  if (text.starts_with(kUnix)) {
    const std::string_view path = text.substr(kUnix.size());
    if (path.starts_with('/') && path.size() > 1) return {};
    return fmt::format("'{}' is no absolute path: write unix:///run/redis.sock", path);
  }
  return "is no address of a store: write redis://host:6379 or unix:///run/redis.sock";
}

}  // namespace tune
