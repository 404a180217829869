#include "core/platform/files.h"

#include <doctest/doctest.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/platform/lock.h"
#include "core/platform/runtime_directory.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

fs::path temporary_folder() {
  std::string pattern = fs::temp_directory_path() / "tune-files-XXXXXX";
  return mkdtemp(pattern.data());
}

TEST_CASE("a file is written whole or stays as it was") {
  const fs::path folder = temporary_folder();
  write_file_atomically(folder / "a", "one");
  write_file_atomically(folder / "a", "two");
  CHECK(read_file(folder / "a") == "two");
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 1);  // no temporary file is left
  CHECK_THROWS_AS(write_file_atomically(folder / "none/a", "x"), Error);
  CHECK_THROWS_AS(read_file(folder / "none"), Error);
  fs::remove_all(folder);
}

TEST_CASE("the tail of a file is its last lines") {
  const fs::path folder = temporary_folder();
  std::ofstream(folder / "a") << "1\n2\n3\n4\n";
  CHECK(tail_lines(folder / "a", 2, 100) == "3\n4\n");
  CHECK(tail_lines(folder / "a", 9, 100) == "1\n2\n3\n4\n");
  CHECK(tail_lines(folder / "a", 9, 3) == "\n4\n");
  std::ofstream(folder / "b") << "1\n2";
  CHECK(tail_lines(folder / "b", 1, 100) == "2");
  CHECK(tail_lines(folder / "none", 1, 100).empty());
  fs::remove_all(folder);
}

TEST_CASE("a lock is held until every process that inherited it is gone") {
  const fs::path folder = temporary_folder();
  const fs::path file = folder / "lock";
  CHECK_FALSE(ExperimentLock::is_held(file));
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = 0;
  {
    const ExperimentLock lock(file, std::chrono::milliseconds(0));
    CHECK(ExperimentLock::is_held(file));
    child = fork();
    if (child == 0) {  // holds the descriptor until the pipe ends
      close(ends[1]);
      char byte = 0;
      [[maybe_unused]] const auto count = read(ends[0], &byte, 1);
      _exit(0);
    }
  }
  CHECK(ExperimentLock::is_held(file));
  try {
    const ExperimentLock second(file, std::chrono::milliseconds(30));
    FAIL("two locks");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(std::to_string(child)) != std::string::npos);
  }
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  CHECK_FALSE(ExperimentLock::is_held(file));
  const ExperimentLock third(file, std::chrono::milliseconds(0));
  fs::remove_all(folder);
}

TEST_CASE("a runtime folder is private, short, and goes with its owner only") {
  fs::path path;
  {
    const RuntimeDirectory directory;
    path = directory.path();
    CHECK(path.string().size() < 100);
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    const pid_t child = fork();
    if (child == 0) {
      directory.~RuntimeDirectory();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    CHECK(fs::exists(path));
  }
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace tune
