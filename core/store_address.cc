#include "core/store_address.h"

#include <charconv>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

constexpr std::string_view kRedis = "redis://";
constexpr std::string_view kUnix = "unix://";
constexpr int kMaxDatabase = 1'000'000;

[[noreturn]] void refuse_store(const std::string& why) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("{}: write redis://[:password@]host:6379/0 or "
                          "unix://[:password@]/path/to/socket",
                          why));
}

int number_in(std::string_view digits, int low, int high, const char* what) {
  int value = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value < low || value > high) {
    refuse_store(fmt::format("'{}' is not a {} from {} to {}", digits, what, low, high));
  }
  return value;
}

// Takes "user:password@" off the front.
void take_secret(std::string_view& rest, StoreAddress& address) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return;
  const std::string_view secret = rest.substr(0, at);
  const std::size_t colon = secret.find(':');
  if (colon == std::string_view::npos) refuse_store("what stands before '@' is not a password");
  address.user = secret.substr(0, colon);
  address.password = secret.substr(colon + 1);
  rest.remove_prefix(at + 1);
}

void parse_socket(std::string_view rest, StoreAddress& address) {
  const std::size_t query = rest.find("?db=");
  if (query != std::string_view::npos) {
    address.database = number_in(rest.substr(query + 4), 0, kMaxDatabase, "number of a database");
  }
  address.path = rest.substr(0, query);
  if (!address.path.starts_with('/') || address.path.size() < 2) {
    refuse_store(fmt::format("'{}' is not an absolute path", address.path));
  }
}

void parse_host(std::string_view rest, StoreAddress& address) {
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const std::string_view database = rest.substr(slash + 1);
    if (!database.empty()) {
      address.database = number_in(database, 0, kMaxDatabase, "number of a database");
    }
    rest = rest.substr(0, slash);
  }
  const std::size_t bracket = rest.find(']');  // [::1]:6379
  const std::size_t colon = rest.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    address.port = number_in(rest.substr(colon + 1), 1, 65535, "port");
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  if (rest.empty()) refuse_store("it names no host");
  address.host = rest;
}

}  // namespace

StoreAddress parse_store_address(std::string_view text) {
  if (text.find_first_of(" \t\r\n") != std::string_view::npos)
    refuse_store("the address holds a blank");
  const bool is_socket = text.starts_with(kUnix);
  if (!is_socket && !text.starts_with(kRedis)) refuse_store("this is not an address of a store");
  std::string_view rest = text.substr(is_socket ? kUnix.size() : kRedis.size());
  StoreAddress address;
  take_secret(rest, address);
  is_socket ? parse_socket(rest, address) : parse_host(rest, address);
  return address;
}

std::string shown(const StoreAddress& address) {
  if (address.host.empty()) return address.path;
  return fmt::format("{}:{}", address.host, address.port);
}

}  // namespace tune
