#include "trainables/named_results.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

std::size_t files_below(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) ++count;
  }
  return count;
}

TEST_CASE("a result is the file of its name, with exactly these bytes") {
  const TemporaryFolder folder;
  std::vector<std::string> told;
  const NamedResults results(folder.path() / "made",
                             [&](const std::string& name) { told.push_back(name); });
  const std::string bytes("a\0b\xff\n", 5);
  results.submit("worker/0/data.json", bytes);
  results.submit("plain", "");
  results.submit("...", "three dots");
  CHECK(read_text(folder.path() / "made/worker/0/data.json") == bytes);
  CHECK(read_text(folder.path() / "made/plain").empty());
  CHECK(files_below(folder.path()) == 3);
  results.submit("plain", "again");
  CHECK(read_text(folder.path() / "made/plain") == "again");
  CHECK(files_below(folder.path()) == 3);
  CHECK(told == std::vector<std::string>{"worker/0/data.json", "plain", "...", "plain"});
}

TEST_CASE("names that could lead out of the folder, or are none, are refused") {
  const TemporaryFolder folder;
  const NamedResults results(folder.path() / "made");
  struct Row {
    std::string name;
    const char* message;
  };
  const std::vector<Row> rows = {
      {"", "it is empty"},
      {"/etc/x", "it begins with '/'"},
      {"..", "are not parts of a name"},
      {"../x", "are not parts of a name"},
      {"a/../../x", "are not parts of a name"},
      {"a/..", "are not parts of a name"},
      {"./x", "are not parts of a name"},
      {"a//b", "a part of it is empty"},
      {"a/", "a part of it is empty"},
      {std::string("a\0b", 3), "a control character"},
      {std::string(201, 'x'), "longer than 200 bytes"},
      {std::string(1025, 'x'), "longer than 1024 bytes"},
  };
  for (const Row& row : rows) {
    const std::string message = refusal([&] { results.submit(row.name, "x"); });
    CHECK_HAS(message, row.message);
    CHECK_HAS(message, "worker/0/data.json");
  }
  CHECK(!fs::exists(folder.path() / "made"));
}

TEST_CASE("what cannot be written is an error that names the path, and leaves nothing") {
  const TemporaryFolder folder;
  const NamedResults results(folder.path());
  results.submit("a/b", "x");
  CHECK_HAS(refusal([&] { results.submit("a", "x"); }, ErrorCode::kIo),
            (folder.path() / "a").string());
  CHECK_HAS(refusal([&] { results.submit("a/b/c", "x"); }, ErrorCode::kIo),
            (folder.path() / "a/b").string());
  CHECK(files_below(folder.path()) == 1);
  CHECK_HAS(refusal([&] { NamedResults({}).submit("a", "x"); }), "there is no folder for results");
}

}  // namespace
}  // namespace tune::testing
