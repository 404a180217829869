#include "core/platform/lock.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/node.h"
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

TEST_CASE("a process that waits for a lock is told at once, and once, which one holds it") {
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

TEST_CASE("of many processes that hold a lock a few are named") {
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
  const auto [low, high] = std::minmax({::getpid(), heir.pid()});  // numbers of processes wrap
  CHECK(holders_of(file) == std::vector<int>{low, high});
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
  CHECK(sign_of_text(read_text(file)).pid == owner.pid());
  CHECK_HAS(refusal([&] { ExperimentLock lock(file, milliseconds(0)); }), number);
  owner.end();
  CHECK(ExperimentLock::is_held(file));  // the heir still stands
  const ExperimentLock lock(file, milliseconds(30000));
  CHECK(sign_of_text(read_text(file)).pid == ::getpid());
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

TEST_CASE("a process that waits gets the lock when it is freed") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  std::optional<ExperimentLock> lock(std::in_place, file, milliseconds(0));
  std::thread waits([&] { const ExperimentLock second(file, milliseconds(30000)); });
  lock.reset();
  waits.join();  // an error in it would end the program
  CHECK_FALSE(ExperimentLock::is_held(file));
}

TEST_CASE("a process that waited while the folder was made anew holds the new one's lock") {
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

// ---- Where flock does not reach other hosts -----------------------------------------------------

const LockSign kElsewhere{.pid = 12, .host = "node7", .boot = "another-kernel", .beats = 5};
constexpr LockPace kNeverSilent{milliseconds(1), std::chrono::hours(1)};
constexpr LockPace kSoonSilent{milliseconds(1), milliseconds(5)};

// A holder that looks meanwhile sees no empty file.
void put_sign(const fs::path& file, const LockSign& sign) {
  const FileDescriptor open(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  const std::string text = to_text(sign);
  const auto size = static_cast<ssize_t>(text.size());
  REQUIRE(::pwrite(open.get(), text.data(), text.size(), 0) == size);
  REQUIRE(::ftruncate(open.get(), size) == 0);
}

TEST_CASE("a lock whose holder on another host counts on is refused, and the host named") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  put_sign(file, kElsewhere);
  std::atomic<bool> ends = false;
  std::thread holder([&] {
    for (LockSign sign = kElsewhere; !ends; ++sign.beats) {
      const FileDescriptor open(::open(file.c_str(), O_WRONLY));
      const std::string text = to_text(sign);
      [[maybe_unused]] const auto count = ::pwrite(open.get(), text.data(), text.size(), 0);
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  std::vector<std::string> told;
  const std::string message = refusal([&] {
    ExperimentLock lock(
        file, milliseconds(0), [&](const std::string& holders) { told.push_back(holders); },
        kNeverSilent);
  });
  ends = true;
  holder.join();
  CHECK_HAS(message, folder.path().string() + " is in use by process 12 of host node7");
  CHECK(told.size() <= 1);
  CHECK(sign_of_text(read_text(file)).host == "node7");  // it is as it was
  CHECK_FALSE(ExperimentLock::is_held(file));
}

TEST_CASE("a lock whose holder on another host counts no more is taken, and that is said") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  put_sign(file, kElsewhere);
  const ExperimentLock lock(file, milliseconds(0), {}, kSoonSilent);
  CHECK(lock.taken_from() == "process 12 of host node7");
  CHECK(sign_of_text(read_text(file)).pid == ::getpid());
}

TEST_CASE("a lock that this kernel's flock shows to be free is taken at once") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  LockSign sign;
  {
    const ExperimentLock lock(file, milliseconds(0));
    sign = sign_of_text(read_text(file));
    CHECK(sign.host == hostname());
  }
  CHECK(read_text(file).empty());  // given back: no other host watches for its end
  sign.host = "a-container";
  sign.pid = 1;
  put_sign(file, sign);
  const ExperimentLock lock(file, milliseconds(0), {}, kNeverSilent);
  CHECK(lock.taken_from().empty());
}

TEST_CASE("of two hosts that take a silent one's lock at once, one has it") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  put_sign(file, kElsewhere);
  const LockSign third{.pid = 13, .host = "node8", .boot = "a-third-kernel", .beats = 0};
  std::thread other([&] {
    eventually([&] { return sign_of_text(read_text(file)).pid == ::getpid(); });
    put_sign(file, third);
  });
  const std::string message = refusal([&] {
    ExperimentLock lock(file, milliseconds(0), {}, {std::chrono::seconds(1), milliseconds(5)});
  });
  other.join();
  CHECK_HAS(message, "in use by process 13 of host node8");
  CHECK(sign_of_text(read_text(file)) == third);
}

TEST_CASE("a holder counts, and sees that another host has taken its lock meanwhile") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  {
    ExperimentLock lock(file, milliseconds(0), {}, kSoonSilent);
    std::atomic<int> lost = 0;
    lock.keep_alive([&](const LockSign& by) {
      if (by == kElsewhere) ++lost;
    });
    CHECK(eventually([&] { return sign_of_text(read_text(file)).beats > 2; }));
    CHECK(lock.taken_by().empty());
    // As often as it takes: it may count on at the same moment.
    CHECK(eventually([&] {
      if (lost == 0) put_sign(file, kElsewhere);
      return lost == 1;
    }));
    CHECK(lock.taken_by() == "process 12 of host node7");
  }
  CHECK(sign_of_text(read_text(file)) == kElsewhere);  // not given back: it is another's
}

TEST_CASE("a lock that another host has taken and given back is lost as well") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  ExperimentLock lock(file, milliseconds(0), {}, kSoonSilent);
  lock.keep_alive();
  CHECK(eventually([&] {
    if (lock.taken_by().empty()) fs::resize_file(file, 0);
    return !lock.taken_by().empty();
  }));
  CHECK_HAS(lock.taken_by(), "another host, which has ended");
}

TEST_CASE("a holder that waits before it has a thread counts, and sees that its lock was taken") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  ExperimentLock lock(file, milliseconds(0), {}, {milliseconds(1), std::chrono::hours(1)});
  CHECK(eventually([&] {
    lock.show_life();
    return sign_of_text(read_text(file)).beats > 2;
  }));
  put_sign(file, kElsewhere);
  CHECK(eventually([&] {
    lock.show_life();
    return !lock.taken_by().empty();
  }));
  CHECK(sign_of_text(read_text(file)) == kElsewhere);
  ExperimentLock slow(folder.path() / "slow", milliseconds(0), {}, {std::chrono::hours(1), {}});
  for (int i = 0; i < 3; ++i) slow.show_life();
  CHECK(sign_of_text(read_text(folder.path() / "slow")).beats == 0);  // none is due
}

TEST_CASE("a holder that has not looked for long is not sure of its lock, and looks first") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  constexpr milliseconds kStandstill{5};
  const ExperimentLock lock(file, milliseconds(0), {}, {std::chrono::hours(1), kStandstill});
  CHECK(eventually([&] { return !lock.is_surely_held(); }));
  lock.look_again();
  CHECK(lock.taken_by().empty());  // nobody came
  put_sign(file, kElsewhere);
  CHECK(eventually([&] { return !lock.is_surely_held(); }));
  CHECK(lock.taken_by().empty());
  lock.look_again();
  CHECK(lock.taken_by() == "process 12 of host node7");
  CHECK_FALSE(lock.is_surely_held());
}

TEST_CASE("a holder that has looked a moment ago is sure of its lock without another look") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  const ExperimentLock lock(file, milliseconds(0), {}, kNeverSilent);
  put_sign(file, kElsewhere);
  CHECK(lock.is_surely_held());
  lock.look_again();
  CHECK(lock.taken_by().empty());
}

TEST_CASE("the thread of a holder that is not sure of its lock looks at once") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  ExperimentLock lock(file, milliseconds(0), {}, {std::chrono::hours(1), milliseconds(5)});
  lock.keep_alive();
  put_sign(file, kElsewhere);
  CHECK(eventually([&] { return !lock.is_surely_held() && !lock.taken_by().empty(); }));
}

TEST_CASE("the thread of a holder sees whether its file is in place") {
  const TemporaryFolder folder;
  const fs::path experiment = folder.path() / "e";
  const fs::path moved = folder.path() / "moved";
  fs::create_directory(experiment);
  ExperimentLock lock(experiment / "lock", milliseconds(0), {}, kSoonSilent);
  fs::rename(experiment, moved);
  CHECK_FALSE(lock.is_in_place());
  CHECK(lock.was_in_place());  // nothing has looked yet
  lock.keep_alive();
  CHECK(eventually([&] { return !lock.was_in_place(); }));
  fs::rename(moved, experiment);
  CHECK(eventually([&] { return lock.was_in_place(); }));
}

// No descriptor is left to open the file anew with; sanitizers need some for their own checks.
TEST_CASE("a lock whose sign cannot be read is an error, and it stays its holder's") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "lock";
  put_sign(file, kElsewhere);
  rlimit usual{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
  const int next = FileDescriptor(::open("/dev/null", O_RDONLY)).get();
  const rlimit one{static_cast<rlim_t>(next) + 1, usual.rlim_max};
  std::exception_ptr thrown;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &one) == 0);
  try {
    ExperimentLock lock(file, milliseconds(50));
  } catch (...) {
    thrown = std::current_exception();
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
  REQUIRE(thrown);
  const std::string message = refusal([&] { std::rethrow_exception(thrown); }, ErrorCode::kIo);
  CHECK_HAS(message, "reading the lock");
  CHECK_HAS(message, file.string());
  CHECK(sign_of_text(read_text(file)) == kElsewhere);
}

TEST_CASE("a lock in a folder that is not there is an error that names it") {
  CHECK_HAS(refusal([] { ExperimentLock lock("/nowhere/lock", milliseconds(0)); }, ErrorCode::kIo),
            "/nowhere/lock");
}

}  // namespace
}  // namespace tune::testing
