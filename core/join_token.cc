#include "core/join_token.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr std::string_view kPrefix = "tune1.";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kChecksumBytes = 4;
constexpr std::string_view kRemedy =
    "copy the whole line that `tune run --listen` or `tune token` "
    "printed";

[[noreturn]] void refuse_token(const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("reading the token: {}: {}", why, kRemedy));
}

struct Content {
  std::string experiment;
  Packed driver_key;
  Packed join_key;
  std::vector<std::string> addresses;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.experiment, s.driver_key, s.join_key, s.addresses);
  }
};

// CRC-32: finds a character that was lost or changed; it is not protection against anybody.
std::string checksum(std::string_view bytes) {
  std::uint32_t sum = ~0u;
  for (const char byte : bytes) {
    sum ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0u);
  }
  sum = ~sum;
  std::string text;
  for (std::size_t i = 0; i < kChecksumBytes; ++i) text += static_cast<char>(sum >> 8 * i);
  return text;
}

}  // namespace

std::string base64url(std::string_view bytes) {
  std::string text;
  std::uint32_t waiting = 0;
  int bits = 0;
  for (const char byte : bytes) {
    waiting = waiting << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += kDigits[waiting >> (bits - 6) & 63];
  }
  if (bits > 0) text += kDigits[waiting << (6 - bits) & 63];
  return text;
}

std::string bytes_of_base64url(std::string_view text) {
  std::string bytes;
  std::uint32_t waiting = 0;
  int bits = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) {
      throw Error(ErrorCode::kBadInput,
                  "a character that is neither a letter, a digit, '-' nor '_'");
    }
    waiting = waiting << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(waiting >> bits & 255);
  }
  return bytes;
}

std::string to_text(const JoinToken& token) {
  TUNE_CHECK(token.driver_key.size() == kCurveKeyBytes);
  TUNE_CHECK(token.join_key.size() == kCurveKeyBytes);
  std::vector<std::string> addresses = token.addresses;
  addresses.resize(std::min(addresses.size(), kMostTokenAddresses));
  const std::string content = encoded(
      Content{token.experiment, {token.driver_key}, {token.join_key}, std::move(addresses)});
  return std::string(kPrefix) + base64url(content + checksum(content));
}

JoinToken token_of_text(std::string_view text) try {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) refuse_token("it is empty");
  text = text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
  if (!text.starts_with(kPrefix)) {
    refuse_token(fmt::format("it does not begin with {} as a token of this build does", kPrefix));
  }
  const std::string bytes = bytes_of_base64url(text.substr(kPrefix.size()));
  if (bytes.size() < kChecksumBytes) refuse_token("it is cut short");
  const std::string content = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (bytes.substr(content.size()) != checksum(content)) {
    refuse_token("its checksum is wrong, so some of it is missing or changed");
  }
  auto read = decoded<Content>(content);
  const bool is_whole = read.driver_key.bytes.size() == kCurveKeyBytes &&
                        read.join_key.bytes.size() == kCurveKeyBytes && !read.addresses.empty() &&
                        read.addresses.size() <= kMostTokenAddresses;
  if (!is_whole) refuse_token("a key or an address is missing");
  return {std::move(read.experiment), std::move(read.driver_key.bytes),
          std::move(read.join_key.bytes), std::move(read.addresses)};
} catch (const Error& error) {
  if (error.code() == ErrorCode::kBadInput &&
      std::string_view(error.what()).starts_with("reading the token")) {
    throw;
  }
  refuse_token("it cannot be read");
}

}  // namespace tune
