#include "tune/search/shared_blocks.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace tune {
namespace {

using List = SharedBlocks<std::string>;

List counted(std::size_t size) {
  List list;
  for (std::size_t i = 0; i < size; ++i) list.push_back(std::to_string(i));
  return list;
}

std::vector<std::string> values(const List& list) {
  return {list.begin(), list.end()};
}

TEST_CASE("values stand in the order in which they were added, over the edges of blocks") {
  for (const std::size_t size : {0u, 1u, 127u, 128u, 129u, 300u}) {
    const List list = counted(size);
    CHECK(list.size() == size);
    CHECK(list.empty() == (size == 0));
    const std::vector<std::string> all = values(list);
    REQUIRE(all.size() == size);
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(all[i] == std::to_string(i));
      CHECK(list[i] == all[i]);
    }
  }
}

TEST_CASE("neither a copy nor its original sees what is changed or added in the other") {
  List list = counted(130);
  List copy = list;
  CHECK(copy == list);
  list.change(5) = "five";
  list.push_back("more");
  copy.change(129) = "last";
  CHECK(copy[5] == "5");
  CHECK(copy.size() == 130);
  CHECK(list[129] == "129");
  list.change(5) += "!";  // its own block by now
  CHECK(list[5] == "five!");
  copy = list;
  CHECK(copy == list);
  copy.push_back("x");
  CHECK_FALSE(copy == list);
  const List moved = std::move(copy);
  CHECK(moved.size() == 132);
  CHECK(copy.empty());  // NOLINT
}

TEST_CASE("a copy is read in another thread while the original is changed") {
  List list = counted(1000);
  std::size_t letters = 0;
  std::thread reader([copy = list, &letters] {
    for (int round = 0; round < 20; ++round) {
      for (const std::string& one : copy) letters += one.size();
    }
  });
  for (std::size_t i = 0; i < 1000; ++i) list.change(i) = "changed";
  for (int i = 0; i < 300; ++i) list.push_back("more");
  reader.join();
  CHECK(letters == 20 * (10 + 90 * 2 + 900 * 3));
}

}  // namespace
}  // namespace tune
