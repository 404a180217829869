#include "tune/results/tail.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "core/refusal.h"
#include "view/folder.h"

namespace tune {
namespace {

using testing::append_text;
using testing::write_text;

struct Followed {
  testing::TemporaryFolder folder;
  std::filesystem::path file = folder.path() / "lines";
  TailSeen seen;
  std::vector<std::string> lines;

  TailNews read(std::size_t budget = SIZE_MAX) {
    return read_tail(file, seen,
                     {.begun_anew = [this] { lines.clear(); },
                      .line = [this](std::string_view line) { lines.emplace_back(line); }},
                     budget);
  }
};

using Lines = std::vector<std::string>;

TEST_CASE("a file that is not there has no lines, and those that come later are read") {
  Followed tail;
  CHECK(tail.read() == TailNews::kNone);
  write_text(tail.file, "a\nb\n");
  CHECK(tail.read() == TailNews::kLines);
  CHECK(tail.lines == Lines{"a", "b"});
  CHECK(tail.read() == TailNews::kNone);
}

TEST_CASE("a line without its end waits for it") {
  Followed tail;
  write_text(tail.file, "a\nhal");
  tail.read();
  CHECK(tail.lines == Lines{"a"});
  append_text(tail.file, "f\nx");
  tail.read();
  CHECK(tail.lines == Lines{"a", "half"});
}

TEST_CASE("a file that was cut is read anew") {
  Followed tail;
  write_text(tail.file, "a\nb\nc\n");
  tail.read();
  std::filesystem::resize_file(tail.file, 2);
  CHECK(tail.read() == TailNews::kBegunAnew);
  CHECK(tail.lines == Lines{"a"});
}

TEST_CASE("a file that was cut and has grown beyond its former size is read anew") {
  Followed tail;
  write_text(tail.file, "a\nb\nc\n");
  tail.read();
  write_text(tail.file, "a\nB\nC\nD\nE\n");
  CHECK(tail.read() == TailNews::kBegunAnew);
  CHECK(tail.lines == Lines{"a", "B", "C", "D", "E"});
}

TEST_CASE("a file that goes away takes its lines along") {
  Followed tail;
  write_text(tail.file, "a\n");
  tail.read();
  std::filesystem::remove(tail.file);
  CHECK(tail.read() == TailNews::kBegunAnew);
  CHECK(tail.lines.empty());
  CHECK(tail.read() == TailNews::kNone);
}

TEST_CASE("a budget leaves lines for the next read, and none is lost") {
  Followed tail;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  write_text(tail.file, text);
  int reads = 0;
  do {
    tail.read(1000);
    ++reads;
  } while (tail.seen.more);
  CHECK(reads > 1);
  REQUIRE(tail.lines.size() == 100'000);
  for (int i = 0; i < 100'000; ++i)
    REQUIRE(tail.lines[static_cast<std::size_t>(i)] == std::to_string(i));
}

TEST_CASE("lines longer than a chunk are whole, and one beyond the limit is refused") {
  Followed tail;
  const std::string long_line(1'000'000, 'x');
  write_text(tail.file, long_line + "\nshort\n");
  tail.read();
  REQUIRE(tail.lines.size() == 2);
  CHECK(tail.lines[0] == long_line);
  write_text(tail.file, std::string(kMaxLineBytes + (1u << 20), 'x'));
  CHECK_HAS(testing::refusal([&] { tail.read(); }), "has more than");
}

}  // namespace
}  // namespace tune
