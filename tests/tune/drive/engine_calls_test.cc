#include "tune/drive/engine_calls.h"

#include <doctest/doctest.h>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "skip.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/engine_words.h"
#include "tune/drive/ticking_clock.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a command reads its input as a file, and says how it failed") {
  CHECK(output_of({"sh", "-c", "cat $1 && cat $1", "sh", kInputFile}, 20s, "a\n") == "a\na\n");
  CHECK(testing::refusal([] {
          output_of({"sh", "-c", "echo no >&2; echo room >&2; exit 3"}, 20s);
        }) == "sh exited with code 3: no; room");
}

TEST_CASE("a command that prints without end is ended, and an answer is never cut short") {
  CHECK(testing::refusal([] { output_of({"yes"}, 50s); }) == "yes printed more than 16 MiB");
  CHECK(testing::refusal([] { output_of({"sh", "-c", "yes >&2"}, 50s); }) ==
        "sh printed more than 16 MiB");
  const auto zeros = [](std::size_t count) {
    return output_of({"head", "-c", std::to_string(count), "/dev/zero"}, 50s);
  };
  CHECK(zeros(EngineCalls::kMostOutput).size() == EngineCalls::kMostOutput);
  CHECK(testing::refusal([&] { zeros(EngineCalls::kMostOutput + 1); }) ==
        "head printed more than 16 MiB");
}

TEST_CASE(
    "commands that are given up end with all that they have started, and do not hold the end") {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "pid").string();
  EngineCalls calls;
  calls.add({.words = {"sh", "-c", "sleep 100 & echo $! >$1.new; mv $1.new $1; wait", "sh", file}});
  while (read_if_there(file).empty()) std::this_thread::sleep_for(1ms);
  CHECK(calls.finish(1ms).empty());
  CHECK(calls.is_idle());
  const pid_t child = std::stoi(read_file(file));
  const auto has_ended = [&] {
    const std::string state = read_if_there("/proc/" + std::to_string(child) + "/stat");
    return state.empty() || state.find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 5000 && !has_ended(); ++i) std::this_thread::sleep_for(1ms);
  CHECK(has_ended());
}

// Commands that even SIGKILL does not end for their parent: what traces them does not let them go.
class Stuck {
 public:
  explicit Stuck(EngineCalls& calls, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string file = (folder_.path() / std::to_string(i)).string();
      calls.add(
          {.words = {"sh", "-c", "echo $$ >$1.new; mv $1.new $1; exec sleep 1000", "sh", file}});
      while (read_if_there(file).empty()) std::this_thread::sleep_for(1ms);
      commands_.push_back(std::stoi(read_file(file)));
    }
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    tracer_ = ::fork();
    if (tracer_ == 0) {
      char done = 'y';
      for (const pid_t command : commands_) {
        if (::ptrace(PTRACE_SEIZE, command, nullptr, nullptr) != 0) done = 'n';
      }
      if (::write(ends[1], &done, 1) == 1) ::pause();
      ::_exit(0);
    }
    char done = 'n';
    are_stuck_ = ::read(ends[0], &done, 1) == 1 && done == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Stuck() {
    ::kill(tracer_, SIGKILL);
    ::waitpid(tracer_, nullptr, 0);
    for (const pid_t command : commands_) ::waitpid(command, nullptr, 0);
  }
  bool are_stuck() const { return are_stuck_; }
  bool all_are_there() const {
    return std::ranges::all_of(commands_, [](pid_t command) { return ::kill(command, 0) == 0; });
  }

 private:
  testing::TemporaryFolder folder_;
  std::vector<pid_t> commands_;
  pid_t tracer_ = -1;
  bool are_stuck_ = false;
};

TEST_CASE(
    "commands that SIGKILL does not end hold up neither their answers nor, together, the end") {
  const testing::TickingClock clock(100ms);
  std::optional<EngineCalls> calls(std::in_place, clock);
  const Stuck stuck(*calls, EngineCalls::kAtOnce);
  if (!stuck.are_stuck()) return testing::skip("no process may trace another here");
  clock.pass(EngineCalls::kLimit);
  const auto answers = calls->take();
  REQUIRE(answers.size() == EngineCalls::kAtOnce);
  CHECK(answers.front().why_not == "sh did not end within 60 s");
  CHECK(stuck.all_are_there());
  // Others have their places meanwhile.
  calls->add({.words = {"echo", "here"}});
  CHECK(calls->finish(1h).at(0).output == "here\n");
  const auto begin = clock.now();
  calls.reset();
  // 1 s for all of them, and the looks at the clock before and after it.
  CHECK(clock.now() - begin <= EngineCalls::kKillWait + 200ms);
  CHECK(stuck.all_are_there());
}

}  // namespace
}  // namespace tune
