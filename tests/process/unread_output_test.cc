// A terminal or a pipe that nobody reads: the sweep goes on and ends.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "core/platform/process.h"
#include "core/refusal.h"
#include "process/joinable.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

struct Terminal {
  Terminal() : reader(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(reader.is_open());
    REQUIRE(grantpt(reader.get()) == 0);
    REQUIRE(unlockpt(reader.get()) == 0);
    name = ptsname(reader.get());
    writer.reset(open(name.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(writer.is_open());
  }
  void fill() const {
    const std::string piece(1024, '.');
    while (write(writer.get(), piece.data(), piece.size()) > 0) {
    }
    while (write(writer.get(), ".", 1) > 0) {
    }
  }
  FileDescriptor reader;
  FileDescriptor writer;
  std::string name;
};

const std::string kTuneProgram = std::string(TUNE_BINARY_DIR) + "/bin/tune";

// Trials of one step that fail, so that there are many notices.
std::string failing_sweep() {
  return yaml({.trainable = "Faulty",
               .config = "{fail_in: step, fail_how: throw, fail_at: 2, fail_attempts: 9}",
               .num_samples = 12,
               .rest = "stop: {training_iteration: 3}\nmax_failures: 1\n",
               .metric = "count"});
}

void check_ended(const Sandbox& box, const Finished& run) {
  CHECK(run.code == 1);
  CHECK(lines_of(box.read("results/s/results.csv")).size() == 12 + 1);
  CHECK(testing::has(box.read("results/s/run.json"), "finished"));
  check_nothing_left(box, "results/s");
}

TEST_CASE("a sweep on a terminal that nobody reads ends") {
  for (const char* option : {"", " --quiet"}) {
    for (const bool is_stopped : {false, true}) {
      CAPTURE(option);
      CAPTURE(is_stopped);
      const Terminal terminal;
      if (is_stopped) {
        REQUIRE(tcflow(terminal.writer.get(), TCOOFF) == 0);  // Ctrl-S
      } else {
        terminal.fill();
      }
      Sandbox box;
      box.set("TERM", "xterm");
      box.write("sweep.yaml", failing_sweep());
      const std::string command = "exec " + kTuneProgram + " run sweep.yaml --name s --cpus 2" +
                                  option + " > " + terminal.name + " 2>&1";
      check_ended(box, box.start({"sh", "-c", command}).wait());
    }
  }
}

// Whoever reads late finds what there was room for, in whole lines.
TEST_CASE("a sweep into a pipe that is nearly full and that nobody reads ends") {
  Sandbox box;
  box.write("sweep.yaml", failing_sweep());
  int ends[2];
  REQUIRE(pipe2(ends, 0) == 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  const std::string full((60u << 10) - 1, '.');
  REQUIRE(write(writer.get(), (full + "\n").data(), full.size() + 1) ==
          static_cast<ssize_t>(full.size() + 1));
  const std::string pipe = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]);
  check_ended(box, box.start({"sh", "-c",
                              "exec " + kTuneProgram + " run sweep.yaml --name s --cpus 2 > " +
                                  pipe + " 2>&1"})
                       .wait());

  writer.reset();
  std::string read(1u << 20, '\0');
  std::size_t size = 0;
  for (ssize_t count = 1; count > 0; size += static_cast<std::size_t>(count)) {
    count = ::read(reader.get(), read.data() + size, read.size() - size);
    REQUIRE(count >= 0);
  }
  read.resize(size);
  CHECK(size > full.size() + 1);
  CHECK(read.starts_with(full + "\n"));
  CHECK(read.ends_with("\n"));
}

TEST_CASE("a machine that has joined, and whose messages nobody reads, takes part to the end") {
  Joinable sweep(joinable_sweep(6, 60, "lease_s: 3\n"));
  int ends[2];
  REQUIRE(pipe2(ends, 0) == 0);
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  const std::string full(64u << 10, '.');
  REQUIRE(write(writer.get(), full.data(), full.size()) == static_cast<ssize_t>(full.size()));
  const std::string pipe = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends[1]);
  Running agent =
      sweep.box.start({"sh", "-c", "exec " + kTuneProgram + " agent --cpus 1 2> " + pipe});
  CHECK(Sandbox::eventually([&] { return sweep.runs_a_trial(agent); }));
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "lost"));
  CHECK(agent.wait(std::chrono::seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 6, 8);
  check_nothing_left(sweep.box, "results/s");
}

TEST_CASE("a reader that comes back is told what was not shown, and sees the end") {
  Sandbox box;
  box.write("sweep.yaml",
            yaml({.trainable = "Faulty",
                  .config = "{fail_in: step, fail_how: throw, fail_at: 2, fail_attempts: 9}",
                  .num_samples = 300,
                  .rest = "stop: {training_iteration: 3}\nmax_failures: 5\n",
                  .metric = "count"}));
  // It reads nothing before results.csv is there: by then messages fill the pipe and their bound.
  const Finished run =
      box.run({"sh", "-c",
               "{ " + kTuneProgram +
                   " run sweep.yaml --name s --cpus 2 2>&1; echo code=$?; } | "
                   "{ while [ ! -e resume ]; do sleep 0.1; [ ! -s results/s/results.csv ] || "
                   "touch resume; done; cat; }"});
  CHECK(run.code == 0);
  CHECK(lines_of(box.read("results/s/results.csv")).size() == 300 + 1);
  CHECK_HAS(run.out, "code=1");
  CHECK_HAS(run.out, " not shown: nobody read this output\n");
  const std::string last = run.out.substr(run.out.rfind("== Status =="));
  CHECK_HAS(last, "300 ERROR");
}

}  // namespace
}  // namespace tune
