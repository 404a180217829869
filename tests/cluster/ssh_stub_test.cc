// Sweeps over ssh with a stub, all of whose hosts are this one: where it is asked, without a real
// sshd.
#include <doctest/doctest.h>

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "cluster/cluster.h"
#include "core/refusal.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::has;

constexpr const char* kSsh = R"sh(#!/bin/sh
case "$*" in *" -R "*) [ -e "$0.closed" ] && { echo "remote port forwarding failed" >&2; exit 255; } ;; esac
while [ $# -gt 2 ]; do shift; done
case "$1" in refuses*) echo "connect to host $1 port 22: Connection refused" >&2; exit 255 ;; esac
cd / && STUB_HOST=$1 exec sh -c "$2"
)sh";

struct StubOfSsh {
  StubOfSsh() {
    fs::create_directories(box.path() / "bin");
    box.write("bin/ssh", kSsh);
    ::chmod((box.path() / "bin/ssh").c_str(), 0755);
    box.set("PATH", (box.path() / "bin").string() + ":" + std::getenv("PATH"));
  }
  Finished run(const std::string& pool, const std::string& storage) const {
    box.write("sweep.yaml", pooled_sweep(4, 20, "  engine: ssh\n" + pool + "listen: lo\n"));
    return box.start_tune({"run", "sweep.yaml", "--name", "s", "--storage", storage})
        .wait(seconds(60));
  }
  Sandbox box;
};

TEST_CASE("hosts that refuse are left out, and the folder's name may hold quotes and blanks") {
  const StubOfSsh ssh;
  const std::string storage = "it's a \"folder\"";
  const Finished finished = ssh.run("  hosts: [alpha, refuses]\n", storage);
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_HAS(finished.err,
            "hosts without agents: refuses: ssh exited with code 255: connect to host");
  check_complete(ssh.box, storage + "/s", 4, 8);
  check_nothing_left(ssh.box, storage + "/s");
}

TEST_CASE("hosts all of which refuse end the run before a trial starts") {
  const StubOfSsh ssh;
  const Finished finished = ssh.run("  hosts: [refuses, refuses-too]\n", "results");
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "pool: the engine ssh: no host can be reached");
  CHECK_FALSE(fs::exists(ssh.box.path() / "results/s"));
}

TEST_CASE("the lines before an agent may take longer than several lists") {
  const StubOfSsh ssh;
  const Finished finished = ssh.run("  hosts: [alpha]\n  setup: [sleep 5]\n", "results");
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK_FALSE(has(finished.err, "has ended"));
  check_complete(ssh.box, "results/s", 4, 8);
  check_nothing_left(ssh.box, "results/s");
}

TEST_CASE("a host that refuses the way back is told by what ssh said of it") {
  const StubOfSsh ssh;
  ssh.box.write("bin/ssh.closed", "");
  ssh.box.write("sweep.yaml",
                pooled_sweep(2, 20, "  engine: ssh\n  hosts: [alpha]\n  tunnel: true\n"));
  const Finished finished =
      ssh.box.start_tune({"run", "sweep.yaml", "--name", "s"}).wait(seconds(60));
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "| remote port forwarding failed");
}

TEST_CASE("a host without tune ends the run after three starts, by what its shell said") {
  const StubOfSsh ssh;
  const Finished finished = ssh.run("  hosts: [alpha]\n  program: /nowhere/tune\n", "results");
  INFO(finished.err);
  CHECK(finished.code == 2);
  CHECK_HAS(finished.err, "/nowhere/tune: not found");
  CHECK(count_of(finished.err, "has ended before its agent took part") == 3);
  CHECK_HAS(finished.err, "no host is left where an agent could be started");
}

TEST_CASE("a host without tune beside a good one gets no more agents, and the sweep completes") {
  const StubOfSsh ssh;
  const fs::path program = ssh.box.path() / "program";
  ssh.box.write("program",
                "#!/bin/sh\n[ \"$STUB_HOST\" != bare ] || exec /nowhere/tune\n"
                "exec " TUNE_BINARY_DIR "/bin/tune \"$@\"\n");
  ::chmod(program.c_str(), 0755);
  const Finished finished =
      ssh.run("  hosts: [bare, alpha]\n  program: " + program.string() + "\n", "results");
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(ssh.box, "results/s", 4, 8);
  check_nothing_left(ssh.box, "results/s");
}

}  // namespace
}  // namespace tune
