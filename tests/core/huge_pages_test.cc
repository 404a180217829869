#include "core/huge_pages.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "huge_memory.h"
#include "skip.h"

namespace tune {
namespace {

constexpr std::size_t kMegabyte = 1u << 20;

struct alignas(64) Line {
  std::array<std::uint64_t, 8> words{};
};

template <class T>
using Huge = std::vector<T, HugePages<T>>;

TEST_CASE("a large vector lies in huge pages, and gives them back; a small one does not") {
  if (!testing::has_huge_pages_on_request()) return testing::skip("no huge pages on request here");
  const std::size_t before = testing::huge_bytes();
  for (int again = 0; again < 3; ++again) {
    const Huge<char> small(kMegabyte, 'a');
    CHECK(testing::huge_bytes() == before);
    const Huge<char> large(9 * kMegabyte, 'a');
    CHECK(testing::huge_bytes() >= before + 8 * kMegabyte);
  }
  CHECK(testing::huge_bytes() == before);
}

TEST_CASE("a vector that grows from small to large keeps its items, each at its boundary") {
  Huge<Line> lines;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    lines.push_back({{i}});
    REQUIRE(reinterpret_cast<std::uintptr_t>(&lines.back()) % alignof(Line) == 0);
  }
  Huge<Line> copy = lines;
  const Huge<Line> moved = std::move(lines);
  copy[5].words[0] = 0;
  for (std::uint64_t i = 0; i < moved.size(); ++i) REQUIRE(moved[i].words[0] == i);
}

}  // namespace
}  // namespace tune
