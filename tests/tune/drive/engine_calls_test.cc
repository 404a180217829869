#include "tune/drive/engine_calls.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "core/platform/files.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/engine_words.h"

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

}  // namespace
}  // namespace tune
