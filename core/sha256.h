// SHA-256 (FIPS 180-4) and the keyed sum made of it (RFC 2104), for requests to object stores and
// the names of what they hold. Pure. It needs no library: the programs that would load one for it
// start in milliseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tune {

class Sha256 {
 public:
  void add(std::string_view bytes);
  std::string end();  // 32 bytes; nothing is added after it

 private:
  void take_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  std::size_t filled_ = 0;
  std::uint64_t size_ = 0;
};

std::string sha256(std::string_view bytes);                               // 32 bytes
std::string hmac_sha256(std::string_view key, std::string_view message);  // 32 bytes
std::string to_hex(std::string_view bytes);                               // lower case

}  // namespace tune
