#include "core/join_token.h"

#include <doctest/doctest.h>

#include <set>

#include "core/random.h"
#include "core/refusal.h"

namespace tune {
namespace {

std::string key(char first) {
  std::string bytes(kCurveKeyBytes, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(first + 7 * i);
  return bytes;
}

const JoinToken kToken{"0a1b2", key('\x01'), key('\xf0'), {"10.0.0.1:7000", "[fd00::1]:7001"}};

TEST_CASE("base64url is that of RFC 4648, without padding") {
  CHECK(base64url("") == "");
  CHECK(base64url("f") == "Zg");
  CHECK(base64url("fo") == "Zm8");
  CHECK(base64url("foo") == "Zm9v");
  CHECK(base64url("foob") == "Zm9vYg");
  CHECK(base64url("\xfb\xff") == "-_8");
  RandomStream random(3, "bytes", 0);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(static_cast<std::size_t>(i), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next());
    CHECK(bytes_of_base64url(base64url(bytes)) == bytes);
  }
}

TEST_CASE("a token comes back as it was, with white space around it") {
  const std::string text = to_text(kToken);
  CHECK(text.starts_with("tune1."));
  CHECK(text.size() < 200);
  CHECK(text.find_first_of("+/= $&") == std::string::npos);
  CHECK(token_of_text(text) == kToken);
  CHECK(token_of_text(" \t" + text + "\r\n") == kToken);
}

TEST_CASE("a token with any character lost or changed is refused, and nothing of it is repeated") {
  const std::string text = to_text(kToken);
  std::set<std::string> complaints;
  const auto refused = [&](const std::string& wrong) {
    const std::string told = testing::refusal([&] { token_of_text(wrong); });
    CHECK_HAS(told, "reading the token: ");
    CHECK_HAS(told, "tune token");
    CHECK(told.find(text.substr(20, 12)) == std::string::npos);
    complaints.insert(told);
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'x' ? 'y' : 'x';
    // The last character may hold bits that mean nothing.
    if (at + 1 < text.size()) refused(changed);
    changed[at] = '%';
    refused(changed);
    refused(text.substr(0, at));
    if (at + 1 < text.size()) refused(text.substr(0, at) + text.substr(at + 1));
  }
  CHECK(complaints.size() >= 4);  // each kind in words of its own
}

TEST_CASE("a token without addresses, or with too many, is refused") {
  JoinToken none = kToken;
  none.addresses.clear();
  CHECK_HAS(testing::refusal([&] { token_of_text(to_text(none)); }), "missing");
  // Keys as those above, and 65 addresses "a".
  constexpr const char* kTooMany =
      "tune1.lKdzZXZlcmFsxCABAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAcQg8PDw8PDw8PDw8PDw8PDw8P"
      "Dw8PDw8PDw8PDw8PDw8PDcAEGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoW"
      "GhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoWGhYaFhoW"
      "GhYaFhoWGhYaFhoWGhYaFh1YZImQ";
  CHECK_HAS(testing::refusal([&] { token_of_text(kTooMany); }), "missing");
}

TEST_CASE("of more addresses than a token may have the first are written") {
  JoinToken many = kToken;
  for (std::size_t i = 2; i < kMostTokenAddresses + 6; ++i) {
    many.addresses.push_back("172.17.0.1:" + std::to_string(i));
  }
  const JoinToken read = token_of_text(to_text(many));
  many.addresses.resize(kMostTokenAddresses);
  CHECK(read == many);
}

}  // namespace
}  // namespace tune
