// Sweeps over a real sshd of this host, by two names of it.
#include <doctest/doctest.h>

#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cluster/cluster.h"
#include "core/refusal.h"
#include "process/sweep.h"
#include "skip.h"

namespace tune {
namespace {

using std::chrono::seconds;
using testing::has;

class Ssh {
 public:
  // RESULTS in further settings is the folder of results.
  static std::unique_ptr<Ssh> start(const std::string& settings = "") {
    if (is_not_asked_for(Takes::kMoments)) return nullptr;
    const Sandbox probe;
    if (probe.run({"sh", "-c", "[ -x /usr/sbin/sshd ] && command -v ssh && [ $(id -u) = 0 ]"})
            .code != 0) {
      testing::skip("no sshd, or not root: tests/cluster/setup.sh installs it");
      return nullptr;
    }
    return std::unique_ptr<Ssh>(new Ssh(settings));
  }
  // A server writes its title over its environment, by which the sandbox finds processes.
  ~Ssh() { box.run({"sh", "-c", "kill $(cat " + (box.path() / "ssh/pid").string() + ")"}); }
  Finished sweep(const std::string& pool, int trials = 6) {
    box.write("sweep.yaml", pooled_sweep(trials, 300, "  engine: ssh\n" + pool));
    return box.start_tune({"run", "sweep.yaml", "--name", "s"}).wait(seconds(120));
  }

  Sandbox box;

 private:
  // A server with keys of its own; a first program `ssh` gives its settings to the real one.
  explicit Ssh(std::string settings) {
    const std::string folder = box.path() / "ssh";
    const std::string results = box.path() / "results";
    std::filesystem::create_directories(results);
    if (const auto at = settings.find("RESULTS"); at != settings.npos) {
      settings.replace(at, 7, results);
    }
    box.write("settings", settings);
    // Below the ports that connections take by themselves; another may have the first.
    const std::string setup =
        "mkdir -p " + folder + " /run/sshd && cd " + folder +
        " && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f user"
        " && cp user.pub authorized && chmod 600 authorized && mkdir bin"
        " && printf '#!/bin/sh\\nexec /usr/bin/ssh -F %s/client \"$@\"\\n' $PWD >bin/ssh"
        " && chmod +x bin/ssh && for try in 1 2 3 4 5; do"
        " port=$((20000 + ($$ + 997 * try) % 12000))"
        " && printf 'Port %s\\nListenAddress 127.0.0.1\\nHostKey %s/host\\nPidFile %s/pid\\n"
        "AuthorizedKeysFile %s/authorized\\nStrictModes no\\nUsePAM no\\nPermitUserEnvironment "
        "no\\n"
        "AcceptEnv TUNE_TEST_SANDBOX TMPDIR XDG_RUNTIME_DIR\\n'"
        " $port $PWD $PWD $PWD >config"
        " && printf 'Host alpha beta\\nHostName 127.0.0.1\\nPort %s\\nHost *\\nIdentityFile "
        "%s/user\\n"
        "StrictHostKeyChecking no\\nUserKnownHostsFile /dev/null\\nLogLevel ERROR\\n"
        "SendEnv TUNE_TEST_SANDBOX TMPDIR XDG_RUNTIME_DIR\\n' $port $PWD >client"
        " && cat ../settings >>config && /usr/sbin/sshd -f config && exit 0; done; exit 1";
    const Finished made = box.run({"sh", "-c", setup});
    INFO(made.err);
    REQUIRE(made.code == 0);
    box.set("PATH", folder + "/bin:" + std::getenv("PATH"));
  }
};

TEST_CASE("a sweep runs on hosts of ssh, and no agent stays") {
  const auto ssh = Ssh::start();
  if (!ssh) return;
  const Finished finished = ssh->sweep("  hosts: [alpha, beta: {cpu: 1}]\n");
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(ssh->box) == 3);  // with the driver's own, which runs no trials
  check_complete(ssh->box, "results/s", 6, 8);
  CHECK(Sandbox::eventually([&] { return ssh->box.processes("--join-file").empty(); }));
}

TEST_CASE("through a tunnel agents find a driver that listens on its own machine alone") {
  const auto ssh = Ssh::start();
  if (!ssh) return;
  const Finished finished = ssh->sweep("  hosts: [alpha]\n  tunnel: true\n");
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(ssh->box) == 2);
  check_complete(ssh->box, "results/s", 6, 8);
  CHECK(Sandbox::eventually([&] { return ssh->box.processes("--join-file").empty(); }));
}

// A login begins where another file system stands on the folder of results.
TEST_CASE("through a tunnel come checkpoints and output of a host that does not see the folder") {
  const auto ssh = Ssh::start(
      "ForceCommand unshare -m sh -c 'mount -t tmpfs none RESULTS && eval "
      "\"$SSH_ORIGINAL_COMMAND\"'\n");
  if (!ssh) return;
  const Finished finished = ssh->sweep("  hosts: [alpha]\n  tunnel: true\n");
  INFO(finished.err);
  CHECK(finished.code == 0);
  CHECK(joined(ssh->box) == 2);
  check_complete(ssh->box, "results/s", 6, 8);
  CHECK_FALSE(has(finished.err, "ERROR"));
  CHECK(ssh->box.of_trials("results/s", "stdout").size() == 6);
  std::size_t checkpoints = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(ssh->box.path() / "results/s")) {
    checkpoints += entry.path().filename().string().starts_with("checkpoint_000008");
  }
  CHECK(checkpoints == 6);
  CHECK(Sandbox::eventually([&] { return ssh->box.processes("--join-file").empty(); }));
}

TEST_CASE("hosts that refuse get no agents, and a pool of none is refused before a trial starts") {
  const auto ssh = Ssh::start();
  if (!ssh) return;
  const Finished some = ssh->sweep("  hosts: [alpha, nowhere.invalid]\n", 2);
  INFO(some.err);
  CHECK(some.code == 0);
  CHECK_HAS(some.err, "hosts without agents: nowhere.invalid");
  const Finished none = ssh->sweep("  hosts: [nowhere.invalid]\nif_exists: fresh\n", 2);
  CHECK(none.code == 2);
  CHECK_HAS(none.err, "no host can be reached");
}

}  // namespace
}  // namespace tune
