#include "core/platform/runtime_directory.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST_CASE("a runtime folder is private, under the user's own, and goes with its content") {
  const TemporaryFolder base;
  const ScopedVariable variable("XDG_RUNTIME_DIR", base.path().string());
  {
    const RuntimeDirectory directory;
    CHECK(directory.path().parent_path() == base.path());
    CHECK(fs::status(directory.path()).permissions() == fs::perms::owner_all);
    std::ofstream(directory.path() / "socket") << "x";
    const RuntimeDirectory second;
    CHECK(second.path() != directory.path());
    CHECK(entries(base.path()) == 2);
  }
  CHECK(entries(base.path()) == 0);
}

TEST_CASE("sockets below fit their limit, so a base that is long or not there is passed over") {
  const TemporaryFolder base;
  const fs::path longer = base.path() / std::string(60, 'x');
  fs::create_directory(longer);
  for (const std::optional<std::string>& useless :
       {std::optional<std::string>(), std::optional<std::string>("/nowhere/at/all"),
        std::optional<std::string>("relative"), std::optional<std::string>(longer.string())}) {
    const ScopedVariable runtime("XDG_RUNTIME_DIR", useless);
    const ScopedVariable temporary("TMPDIR", base.path().string());
    const RuntimeDirectory directory;
    CHECK(directory.path().parent_path() == base.path());
    const ScopedVariable both("TMPDIR", longer.string());
    const RuntimeDirectory last;
    CHECK(last.path().parent_path() == "/tmp");
    CHECK(last.path().string().size() + std::string("/redis.socket").size() <= 107);
  }
}

TEST_CASE("a forked child does not remove the folder") {
  const TemporaryFolder base;
  const ScopedVariable variable("XDG_RUNTIME_DIR", base.path().string());
  const RuntimeDirectory directory;
  {
    const Child child([&] { directory.~RuntimeDirectory(); });
    CHECK(fs::exists(directory.path()));
  }
  CHECK(fs::exists(directory.path()));
}

TEST_CASE("folders of dead owners are removed, those in use and foreign ones stay") {
  const TemporaryFolder base;
  const ScopedVariable variable("XDG_RUNTIME_DIR", base.path().string());
  Child owner([] { std::ofstream((new RuntimeDirectory)->path() / "socket") << "x"; });
  REQUIRE(entries(base.path()) == 1);
  const fs::path left = fs::directory_iterator(base.path())->path();
  const std::string pid = std::to_string(owner.pid());
  fs::create_directory(base.path() / ("other-" + pid + "-abcdef"));
  std::ofstream(base.path() / ("tune-" + pid + "-file")) << "x";
  { const RuntimeDirectory next; }
  CHECK(fs::exists(left));  // its owner lives
  owner.end();

  FileDescriptor user(::open(left.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(user.get(), LOCK_EX | LOCK_NB) == 0);
  { const RuntimeDirectory next; }
  CHECK(fs::exists(left));  // somebody of another container holds it
  user.reset();
  { const RuntimeDirectory next; }
  CHECK_FALSE(fs::exists(left));
  CHECK(entries(base.path()) == 2);
}

// Runs `body` as process `pid` of a process namespace of its own, as in a container. Exit status of
// the process returned: 0 when body gave true, 2 when the machine refuses such a namespace.
pid_t start_in_namespace(int pid, const std::function<bool()>& body) {
  const pid_t outer = ::fork();
  if (outer != 0) return outer;
  if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(2);
  const auto status_of = [](pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  };
  const pid_t init = ::fork();
  if (init != 0) ::_exit(status_of(init));
  while (true) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::getpid() == pid && !body() ? 1 : 0);
    const int status = status_of(child);
    if (child >= pid || child < 0) ::_exit(status);
  }
}

TEST_CASE("processes of several containers do not remove each other's new folders") {
  const TemporaryFolder base;
  const ScopedVariable variable("XDG_RUNTIME_DIR", base.path().string());
  const auto every_folder_stays = [] {
    for (int i = 0; i < 300; ++i) {
      const RuntimeDirectory directory;
      std::ofstream(directory.path() / "socket") << "x";
      if (!fs::exists(directory.path() / "socket")) return false;
    }
    return true;
  };
  std::vector<pid_t> containers;
  for (int pid : {2, 3, 4}) containers.push_back(start_in_namespace(pid, every_folder_stays));
  for (pid_t container : containers) {
    int status = 0;
    REQUIRE(::waitpid(container, &status, 0) == container);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
      MESSAGE("not tested: this machine refuses process namespaces");
      continue;
    }
    CHECK(WEXITSTATUS(status) == 0);
  }
  CHECK(entries(base.path()) == 0);
}

}  // namespace
}  // namespace tune::testing
