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

// Until the process waits for a lock.
void wait_until_blocked(pid_t pid) {
  for (std::string state; state.find(":") == std::string::npos;) {
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);) {
      if (line.find("-> FLOCK") == std::string::npos) continue;
      if (line.find(" " + std::to_string(pid) + " ") != std::string::npos) state = line;
    }
  }
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

TEST_CASE("what it throws reaches those who wait, with its message") {
  TemporaryFolder folder;
  const auto trace = folder.path() / "trace";
  int begun[2], go[2];
  REQUIRE(::pipe(begun) == 0);
  REQUIRE(::pipe(go) == 0);
  const pid_t failing = in_child([&] {
    try {
      run_once(folder.path(), "get", [&] {
        char byte = 'x';
        if (::write(begun[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(98);
        throw std::invalid_argument("no such host");
      });
    } catch (const std::invalid_argument& error) {
      return error.what() == std::string("no such host") ? 0 : 1;
    }
    return 2;
  });
  char byte;
  REQUIRE(::read(begun[0], &byte, 1) == 1);
  const pid_t waiting = in_child([&] {
    try {
      run_once(folder.path(), "get", [&] { append(trace, "ran"); });
    } catch (const std::runtime_error& error) {
      return error.what() == std::string("no such host") ? 0 : 1;
    }
    return 2;
  });
  wait_until_blocked(waiting);
  REQUIRE(::write(go[1], "x", 1) == 1);
  CHECK(status_of(failing) == 0);
  CHECK(status_of(waiting) == 0);
  CHECK_FALSE(std::filesystem::exists(trace));
  for (const int end : {begun[0], begun[1], go[0], go[1]}) ::close(end);
}

TEST_CASE("one that comes after a failure tries again, and its success stands") {
  TemporaryFolder folder;
  const auto fail = [] { throw std::invalid_argument("no such host"); };
  CHECK_THROWS_AS(run_once(folder.path(), "get", fail), std::invalid_argument);
  CHECK_THROWS_AS(run_once(folder.path(), "get", fail), std::invalid_argument);
  int runs = 0;
  run_once(folder.path(), "get", [&] { ++runs; });
  run_once(folder.path(), "get", [&] { ++runs; });
  run_once(folder.path(), "get", fail);
  CHECK(runs == 1);
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
