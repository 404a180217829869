#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "trainables/access.h"
#include "trainables/once_per_node.h"
#include "trainables/temporary_folder.h"

using namespace tune;
using namespace tune::testing;

namespace {

pid_t in_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  return pid;
}

int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void append(const std::filesystem::path& path, const char* text) {
  std::ofstream(path, std::ios::app) << text;
}

}  // namespace

TEST_CASE("one of many processes runs it, all find it done") {
  TemporaryFolder folder;
  const auto trace = folder.path() / "trace";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(in_child([&] {
      run_once(folder.path() / "once", "data/../set", [&] { append(trace, "x"); });
      return read_text(trace) == "x" ? 0 : 1;
    }));
  }
  for (const pid_t child : children) CHECK(status_of(child) == 0);
  CHECK(read_text(trace) == "x");
  run_once(folder.path() / "once", "another", [&] { append(trace, "y"); });
  CHECK(read_text(trace) == "xy");
}

TEST_CASE("what it throws reaches the others with its message") {
  TemporaryFolder folder;
  const auto fail = [] { throw std::invalid_argument("no such host"); };
  CHECK_THROWS_AS(run_once(folder.path(), "get", fail), std::invalid_argument);
  bool ran = false;
  CHECK_THROWS_WITH_AS(run_once(folder.path(), "get", [&] { ran = true; }), "no such host",
                       std::runtime_error);
  CHECK_FALSE(ran);
}

TEST_CASE("when the process that runs it dies the next one runs it") {
  TemporaryFolder folder;
  const auto trace = folder.path() / "trace";
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t dying = in_child([&] {
    run_once(folder.path(), "get", [&] {
      append(trace, "half");
      if (::write(ready[1], "x", 1) == 1) ::pause();
    });
    return 0;
  });
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);  // it holds the lock
  const pid_t waiting = in_child([&] {
    run_once(folder.path(), "get", [&] { append(trace, " whole"); });
    return 0;
  });
  ::kill(dying, SIGKILL);
  CHECK(WIFSIGNALED(status_of(dying)));
  CHECK(status_of(waiting) == 0);
  CHECK(read_text(trace) == "half whole");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("outside a worker the function just runs") {
  const Context context = ContextBuilder::for_restore("id", "folder", 5, 12);
  int runs = 0;
  context.once_per_node("x", [&] { ++runs; });
  context.once_per_node("x", [&] { ++runs; });
  CHECK(runs == 2);
  CHECK(context.iteration() == 12);
  CHECK(context.world_size() == 1);
}

TEST_CASE("a folder that cannot be made is an error") {
  TemporaryFolder folder;
  append(folder.path() / "file", "x");
  CHECK_THROWS_AS(run_once(folder.path() / "file" / "below", "x", [] {}), Error);
}
