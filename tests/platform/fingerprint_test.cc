#include "core/platform/fingerprint.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

#include "trainables/temporary_folder.h"

namespace tune {
namespace {

TEST_CASE("the fingerprint of a file changes with each byte and with its length") {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  std::set<std::string> seen;
  const auto is_new = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return seen.insert(fingerprint(file)).second;
  };
  for (const std::string& text : {std::string("a"), std::string("b"), std::string("b\0", 2),
                                  std::string("12345678"), std::string("123456789")})
    CHECK(is_new(text));
  CHECK(seen.begin()->size() == 16);
  std::string large(200'000, 'x');  // more than is read at once
  CHECK(is_new(large));
  CHECK_FALSE(is_new(large));
  for (const std::size_t at : {0u, 9u, 65'535u, 65'536u, 131'079u, 199'999u}) {
    large[at] = 'y';
    CHECK(is_new(large));
  }
  CHECK(fingerprint(folder.path() / "nowhere").empty());
}

}  // namespace
}  // namespace tune
