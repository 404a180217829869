#include "trainables/shared_memory/copying.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace tune::shared_memory {
namespace {

TEST_CASE("both ways copy every byte and no more, of any size, from any place") {
  constexpr std::size_t kMost = 1000;
  std::string from(kMost + kLine, '\0');
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>('a' + i % 26);
  struct alignas(kLine) Place {
    char bytes[kMost + kLine];
  };
  const auto to = std::make_unique<Place>();
  for (const Copying way : {Copying::kThroughCaches, Copying::kPastCaches}) {
    for (const std::size_t start : {0, 1, 8, 63}) {
      for (std::size_t size = 0; size <= kMost; ++size) {
        std::fill(std::begin(to->bytes), std::end(to->bytes), '-');
        copy(to->bytes, from.data() + start, size, way);
        const std::string expected =
            from.substr(start, size) + std::string(sizeof to->bytes - size, '-');
        REQUIRE(std::string(to->bytes, sizeof to->bytes) == expected);
      }
    }
  }
}

TEST_CASE("both ways are tried at first and again later") {
  CopyingChoice choice;
  int past = 0, through = 0;
  constexpr int kStretches = 200;
  for (int i = 0; i < kStretches; ++i) {
    choice.begin_stretch();
    choice.way() == Copying::kPastCaches ? ++past : ++through;
    if (i == 1) CHECK(past == through);
    choice.all_are_here();
    choice.end_stretch(1 << 20);
  }
  CHECK(past >= 2);
  CHECK(through >= 2);
}

}  // namespace
}  // namespace tune::shared_memory
