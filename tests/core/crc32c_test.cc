#include "core/crc32c.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace tune {
namespace {

TEST_CASE("the sum is CRC-32C, whole or in parts, by tables or not") {
  for (auto* sum : {&crc32c, &crc32c_by_tables}) {
    CHECK(sum("", 0) == 0);
    CHECK(sum("123456789", 0) == 0xe3069283u);
    CHECK(sum(std::string(32, '\0'), 0) == 0x8a9136aau);  // RFC 3720, B.4
    CHECK(sum("6789", sum("12345", 0)) == 0xe3069283u);
  }
}

TEST_CASE("both ways have the same sum for any length and place in memory") {
  std::string text;
  for (unsigned i = 0; i < 300; ++i) text += static_cast<char>(i * i * 167 + i);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t bytes = 0; bytes < 64; ++bytes) {
      const std::string_view part = std::string_view(text).substr(from, bytes);
      CHECK(crc32c(part, 7) == crc32c_by_tables(part, 7));
    }
  }
}

}  // namespace
}  // namespace tune
