#include "core/platform/other_process.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

TEST_CASE("a process of another parent is known by a file that it has open, and seen to end") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "held";
  const FileDescriptor held(::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  CHECK_FALSE(OtherProcess::find(pid, folder.path()).has_value());  // it holds another file
  const auto found = OtherProcess::find(pid, file);
  REQUIRE(found.has_value());
  CHECK(found->pid() == pid);
  CHECK_FALSE(found->has_ended());
  found->signal(SIGKILL);
  CHECK(found->has_ended(std::chrono::minutes(1)));
  ::waitpid(pid, nullptr, 0);
  CHECK(found->has_ended());
  found->signal(SIGTERM);  // to nobody
  CHECK_FALSE(OtherProcess::find(pid, file).has_value());
}

}  // namespace
}  // namespace tune::testing
