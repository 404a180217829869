// JoinToken: the text by which a machine joins a running experiment. Pure.
//
// It says where the driver listens and has both keys of the connection: the driver's public one,
// by which the machine knows that it speaks with this driver, and the secret join key, by which the
// driver admits it. Whoever has it may run this experiment's programs and write its results: it is
// to be treated as a password, and belongs into an environment or a file that nobody else can read,
// never on a command line, which all users of a machine can see.
//
//   tune1.<base64url of: version, experiment, driver's public key, join key, addresses, checksum>
//
// It has no '+', '/' or '=', so that it can be pasted into any shell unquoted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

inline constexpr std::size_t kCurveKeyBytes = 32;
inline constexpr std::size_t kMostTokenAddresses = 64;

struct JoinToken {
  std::string experiment;              // its id
  std::string driver_key;              // public, kCurveKeyBytes
  std::string join_key;                // secret, kCurveKeyBytes
  std::vector<std::string> addresses;  // "10.0.0.1:7000", "[fd00::1]:7000"; tried in order
  friend bool operator==(const JoinToken&, const JoinToken&) = default;
};

// Of more than kMostTokenAddresses, as a host of many containers has, those that come first.
std::string to_text(const JoinToken& token);
// White space around it does not matter. Throws Error (kBadInput) that says what is wrong with the
// text; the message holds nothing of it.
JoinToken token_of_text(std::string_view text);

std::string base64url(std::string_view bytes);
std::string bytes_of_base64url(std::string_view text);  // Error (kBadInput)

}  // namespace tune
