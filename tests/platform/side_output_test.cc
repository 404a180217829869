#include "core/platform/side_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include "core/platform/process.h"

namespace tune {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    reader.reset(ends[0]);
    writer.reset(ends[1]);
  }
  // Until so many bytes have come.
  std::string read(std::size_t bytes) const {
    std::string text;
    char buffer[4096];
    while (text.size() < bytes) {
      const ssize_t count = ::read(reader.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }
  FileDescriptor reader;
  FileDescriptor writer;
};

constexpr std::size_t kPipeHolds = 64u << 10;

TEST_CASE("what is written is read in its order") {
  const Pipe pipe;
  const int threads = thread_count();
  SideOutput output(pipe.writer.get());
  CHECK(output.is_idle());
  CHECK(thread_count() == threads);  // a process may be forked before the first text
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    REQUIRE(output.write(line));
    all += line;
  }
  CHECK(pipe.read(all.size()) == all);
  CHECK(output.finish() == SideOutput::Written::kAll);
}

TEST_CASE("a reader who does not read keeps nobody, and finds what waited up to a bound") {
  const Pipe pipe;
  SideOutput output(pipe.writer.get());
  const std::string piece(32u << 10, 'x');
  std::size_t taken = 0;
  while (output.write(piece)) taken += piece.size();
  CHECK_FALSE(output.is_idle());
  CHECK_FALSE(output.wait(std::chrono::milliseconds(0)));
  CHECK(taken <= SideOutput::kMaxWaitingBytes + kPipeHolds);
  CHECK(taken >= SideOutput::kMaxWaitingBytes);
  CHECK(pipe.read(taken).size() == taken);
  CHECK(output.write("again"));
  CHECK(pipe.read(5) == "again");
  CHECK(output.finish() == SideOutput::Written::kAll);
}

TEST_CASE("at the end a reader who does not read is given up") {
  const Pipe pipe;
  const std::string much(4 * kPipeHolds, 'x');
  // Text that the thread has not taken by then is dropped: on a machine that lets it wait so long.
  const auto has_text = [&pipe](int milliseconds) {
    pollfd watched{pipe.reader.get(), POLLIN, 0};
    return poll(&watched, 1, milliseconds) == 1;
  };
  CHECK(write_or_give_up(pipe.writer.get(), much) == SideOutput::Written::kNotRead);
  if (has_text(100)) CHECK(pipe.read(much.size()) == much);
  SideOutput output(pipe.writer.get());
  REQUIRE(output.write(much));
  REQUIRE(has_text(60'000));
  CHECK(output.finish() == SideOutput::Written::kNotRead);
  CHECK(pipe.read(much.size()) == much);  // the thread was left behind with its text
  CHECK(write_or_give_up(pipe.writer.get(), "last") == SideOutput::Written::kAll);
}

TEST_CASE("output that is refused is told from output that nobody reads") {
  const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (full.is_open()) CHECK(write_or_give_up(full.get(), "x") == SideOutput::Written::kRefused);
  Pipe pipe;
  pipe.reader.reset();  // SIGPIPE goes to the thread, which hears none
  CHECK(write_or_give_up(pipe.writer.get(), "x") == SideOutput::Written::kRefused);
}

TEST_CASE("a line is left out when it does not fit") {
  const Pipe pipe;
  CHECK(write_if_it_fits(pipe.writer.get(), "fits\n"));
  CHECK(pipe.read(5) == "fits\n");
  const std::string full(kPipeHolds, 'x');
  REQUIRE(write(pipe.writer.get(), full.data(), full.size()) == static_cast<ssize_t>(full.size()));
  CHECK_FALSE(write_if_it_fits(pipe.writer.get(), "does not\n"));
}

}  // namespace
}  // namespace tune
