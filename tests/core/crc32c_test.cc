#include "core/crc32c.h"

#include <doctest/doctest.h>

#include <string>

namespace tune {
namespace {

TEST_CASE("the sum is CRC-32C, whole or in parts") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);  // RFC 3720, B.4
  CHECK(crc32c("6789", crc32c("12345")) == 0xe3069283u);
}

}  // namespace
}  // namespace tune
