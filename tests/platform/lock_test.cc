#include "core/platform/lock.h"

#include <doctest/doctest.h>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/refusal.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

TEST_CASE("a lock that somebody holds is refused, with the folder and the holder's number") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  const Child holder([&] { new ExperimentLock(file, milliseconds(0)); });
  const std::string message = refusal([&] { ExperimentLock lock(file, milliseconds(30)); });
  CHECK_HAS(message, folder.path().string() + " is in use by process " +
                         std::to_string(holder.pid()) + " (platform");
}

TEST_CASE("who waits for a lock is told at once, and once, for whom") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  std::vector<std::string> told;
  const auto tell = [&](const std::string& holders) { told.push_back(holders); };
  { const ExperimentLock free(file, milliseconds(30), tell); }
  CHECK(told.empty());
  const Child holder([&] { new ExperimentLock(file, milliseconds(0)); });
  refusal([&] { ExperimentLock lock(file, milliseconds(100), tell); });
  REQUIRE(told.size() == 1);
  CHECK(told[0] == "process " + std::to_string(holder.pid()) + " (platform_tests)");
}

TEST_CASE("of many who hold a lock a few are named") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  const ExperimentLock lock(file, milliseconds(0));
  std::list<Child> heirs;
  std::string four = "process ";
  for (int i = 0; i < 7; ++i) heirs.emplace_back([] {});
  std::vector<int> others = holders_of(file);
  std::erase(others, ::getpid());
  REQUIRE(others.size() == 7);
  for (int i = 0; i < 4; ++i) {
    four += (i > 0 ? ", " : "") + std::to_string(others[i]) + " (platform_tests)";
  }
  CHECK(describe_holders(file) == four + " and 3 more");
  while (heirs.size() > 4) heirs.pop_back();
  CHECK(testing::has(describe_holders(file), "platform_tests"));
  CHECK_FALSE(testing::has(describe_holders(file), "more"));
}

TEST_CASE("a lock is held until every process that inherited it is gone") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  CHECK_FALSE(ExperimentLock::is_held(file));
  std::optional<ExperimentLock> lock(std::in_place, file, milliseconds(0));
  Child heir([] {});
  CHECK(holders_of(file) == std::vector<int>{::getpid(), heir.pid()});
  lock.reset();
  CHECK(ExperimentLock::is_held(file));
  CHECK_HAS(refusal([&] { ExperimentLock second(file, milliseconds(0)); }),
            std::to_string(heir.pid()));
  heir.end();
  CHECK_FALSE(ExperimentLock::is_held(file));
  CHECK_NOTHROW(ExperimentLock(file, milliseconds(0)));
}

TEST_CASE("heirs that are stopped are let go on when the one they inherited it from is gone") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  Child owner([&] {
    new ExperimentLock(file, milliseconds(0));
    if (::fork() == 0) {
      ::raise(SIGSTOP);
      ::_exit(0);
    }
  });
  const std::string number = std::to_string(owner.pid());
  CHECK(read_text(file) == number);
  CHECK_HAS(refusal([&] { ExperimentLock lock(file, milliseconds(0)); }), number);
  owner.end();
  CHECK(ExperimentLock::is_held(file));  // the heir still stands
  const ExperimentLock lock(file, milliseconds(30000));
  CHECK(read_text(file) == std::to_string(::getpid()));
}

TEST_CASE("looking whether a lock is held does not take it") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  CHECK_FALSE(ExperimentLock::is_held(file));
  CHECK_FALSE(fs::exists(file));
  { const ExperimentLock lock(file, milliseconds(0)); }
  CHECK(fs::exists(file));
  CHECK_FALSE(ExperimentLock::is_held(file));
  const ExperimentLock again(file, milliseconds(0));
  CHECK(ExperimentLock::is_held(file));
}

TEST_CASE("who waits gets the lock when it is freed") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  std::optional<ExperimentLock> lock(std::in_place, file, milliseconds(0));
  std::thread waits([&] { const ExperimentLock second(file, milliseconds(30000)); });
  lock.reset();
  waits.join();  // an error in it would end the program
  CHECK_FALSE(ExperimentLock::is_held(file));
}

TEST_CASE("who waited while the folder was renamed and made anew holds the new one's lock") {
  const TemporaryFolder folder;
  const fs::path experiment = folder.path() / "e";
  const fs::path file = experiment / "lock";
  fs::create_directory(experiment);
  Child holder([&] { new ExperimentLock(file, milliseconds(0)); });
  const fs::path gate = folder.path() / "gate";
  const Child waiter(
      [&] {
        new ExperimentLock(file, milliseconds(30000));
        fs::create_directory(gate);
      },
      Child::kAtOnce);
  REQUIRE(eventually([&] { return holders_of(file).size() == 2; }));
  fs::rename(experiment, folder.path() / "e.old-1");
  fs::create_directory(experiment);
  holder.end();
  CHECK(eventually([&] { return fs::exists(gate); }));
  CHECK(ExperimentLock::is_held(file));
  CHECK_FALSE(ExperimentLock::is_held(folder.path() / "e.old-1/lock"));
}

TEST_CASE("a lock in a folder that is not there is an error that names it") {
  CHECK_HAS(refusal([] { ExperimentLock lock("/nowhere/lock", milliseconds(0)); }, ErrorCode::kIo),
            "/nowhere/lock");
}

}  // namespace
}  // namespace tune::testing
