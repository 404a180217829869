#include "core/listen_address.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

constexpr int kLastPort = 65535;
constexpr std::string_view kAll = "0.0.0.0";

[[noreturn]] void refuse_address(const std::string& why) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("listen: {}: write ADDRESS[:PORT], as in eth0, eth0:7000, 10.0.0.1:7000, "
                          "[fd00::1]:7000 or 0.0.0.0",
                          why));
}

int port_of(std::string_view digits) {
  int port = -1;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_port = read.ec == std::errc() && read.ptr == digits.data() + digits.size() &&
                       port >= 0 && port <= kLastPort;
  if (!is_port) refuse_address(fmt::format("'{}' is not a port from 0 to {}", digits, kLastPort));
  return port;
}

}  // namespace

ListenAddress listen_address(std::string_view text) {
  ListenAddress listen;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) refuse_address(fmt::format("'{}' lacks a ']'", text));
    listen.host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = text.find(':');
    if (colon != text.rfind(':')) {
      refuse_address(fmt::format("'{}' has several ':' and no brackets", text));
    }
    listen.host = text.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  }
  if (listen.host.empty()) refuse_address(fmt::format("'{}' has no address", text));
  if (rest.empty()) return listen;
  if (!rest.starts_with(':')) refuse_address(fmt::format("'{}' has something after its ']'", text));
  listen.port = port_of(rest.substr(1));
  return listen;
}

std::vector<std::string> reachable(const ListenAddress& listen,
                                   const std::vector<Interface>& interfaces) {
  std::vector<std::string> found;
  std::vector<std::string> names;
  for (const Interface& one : interfaces) {
    const bool is_meant = listen.host == kAll
                              ? !one.is_loopback
                              : listen.host == one.name || listen.host == one.address;
    if (is_meant) found.push_back(one.address);
    names.push_back(fmt::format("{} ({})", one.name, one.address));
  }
  // One interface may have addresses of both families: those that are easier to reach come first.
  std::ranges::stable_partition(
      found, [](const std::string& address) { return address.find(':') == std::string::npos; });
  if (!found.empty()) return found;
  if (listen.host == kAll) refuse_address("this machine has no address but that of itself");
  throw Error(ErrorCode::kBadInput,
              fmt::format("listen: this machine has no interface or address {}; it has {}",
                          listen.host, join(names, ", ")));
}

std::string with_port(const std::string& address, int port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

}  // namespace tune
