#include "core/platform/line_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "core/platform/process.h"

namespace tune {
namespace {

std::string prefixed(const std::vector<std::string_view>& pieces) {
  LinePrefixer lines("[rank 3] ");
  std::string out;
  for (const std::string_view piece : pieces) lines.add(piece, out);
  lines.finish(out);
  return out;
}

TEST_CASE("lines get their prefix wherever the pieces they come in are cut") {
  struct Row {
    std::vector<std::string_view> pieces;
    std::string_view out;
  };
  const std::vector<Row> rows = {
      {{}, ""},
      {{""}, ""},
      {{"a\nb\n"}, "[rank 3] a\n[rank 3] b\n"},
      {{"a", "b", "\n", "c\nd"}, "[rank 3] ab\n[rank 3] c\n[rank 3] d\n"},
      {{"\n\n"}, "[rank 3] \n[rank 3] \n"},
      {{"a\r\nb\r", "\nc"}, "[rank 3] a\n[rank 3] b\n[rank 3] c\n"},
      {{"10%\r20%\r", "30%\n"}, "[rank 3] 10%\n[rank 3] 20%\n[rank 3] 30%\n"},
      {{std::string_view("a\0b\n", 4)}, std::string_view("[rank 3] a\0b\n", 13)},
  };
  for (const Row& row : rows) {
    CAPTURE(row.out);
    CHECK(prefixed(row.pieces) == row.out);
  }
}

TEST_CASE("a line without end takes bounded memory: it becomes several") {
  const std::string whole(kMaxLineBytes, 'x');
  CHECK(prefixed({whole, "\n"}) == "[rank 3] " + whole + "\n");
  CHECK(prefixed({whole, "y\n"}) == "[rank 3] " + whole + "\n[rank 3] y\n");
}

TEST_CASE("output is written as its reader takes it, and thrown away once there is none") {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  LineOutput output(writer.get());
  CHECK(output.is_empty());
  const std::string text((1u << 20) + 1, 'z');
  output.pending() = text;
  CHECK(output.is_full());
  std::string taken;
  while (!output.is_empty()) {
    const std::size_t before = output.pending().size();
    output.write_some();
    if (output.pending().size() < before) continue;
    char bytes[4096];  // the pipe is full
    const ssize_t count = read(reader.get(), bytes, sizeof bytes);
    REQUIRE(count > 0);
    taken.append(bytes, static_cast<std::size_t>(count));
  }
  CHECK(output.error() == 0);
  CHECK(taken.size() + (64u << 10) >= text.size());
  reader.reset();
  output.pending() = "nobody reads";
  output.write_some();
  CHECK(output.error() == EPIPE);
  CHECK(output.is_empty());
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace tune
