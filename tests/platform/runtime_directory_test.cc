#include "core/platform/runtime_directory.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

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

}  // namespace
}  // namespace tune::testing
