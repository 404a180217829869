#include "core/join_greeting.h"

#include <charconv>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr std::string_view kJoinMark = "join/";
constexpr std::string_view kRefusal = "tune: refused: ";
constexpr std::size_t kMaxRefusal = 1000;

std::optional<Greeting> greeting_of(std::string_view identity) {
  if (!is_greeting(identity)) return std::nullopt;
  identity.remove_prefix(kJoinMark.size());
  const std::size_t first = identity.find('/');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = identity.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  Greeting greeting;
  const std::string_view number = identity.substr(0, first);
  const char* end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, greeting.contract);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  greeting.build = identity.substr(first + 1, second - first - 1);
  greeting.name = identity.substr(second + 1);
  return greeting;
}

}  // namespace

std::string to_text(const Greeting& greeting) {
  return fmt::format("{}{}/{}/{}", kJoinMark, greeting.contract, greeting.build, greeting.name);
}

bool is_greeting(std::string_view identity) {
  return identity.starts_with(kJoinMark);
}

std::optional<std::string> why_refused(std::string_view identity, std::uint32_t contract,
                                       std::string_view build) {
  const std::optional<Greeting> greeting = greeting_of(identity);
  if (!greeting) return "a connection that does not greet as an agent does";
  if (greeting->contract == contract && greeting->build == build) return std::nullopt;
  return fmt::format(
      "{} is tune {} and speaks version {} of the agent contract, this driver is tune {} and "
      "speaks version {}: install the same version of tune on both",
      greeting->name, greeting->build, greeting->contract, build, contract);
}

std::string refusal_frame(std::string_view why) {
  return std::string(kRefusal) + std::string(why.substr(0, kMaxRefusal));
}

std::optional<std::string> refusal_in(std::string_view frame) {
  if (!frame.starts_with(kRefusal)) return std::nullopt;
  return std::string(frame.substr(kRefusal.size(), kMaxRefusal));
}

}  // namespace tune
