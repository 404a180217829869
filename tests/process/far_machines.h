// Machines that do not see the experiment's folder, and agents on them.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "process/joinable.h"
#include "skip.h"

namespace tune {

inline constexpr const char* kNoResults = "mount -t tmpfs none results";

// An agent on a machine of its own, as far as files and the name of the host go: `mounts`, such as
// another file system on `results`, stand there alone, and its temporary files are its own.
inline std::unique_ptr<Running> far_agent(Sandbox& box, const std::string& name, int cpus = 1,
                                          const std::string& mounts = kNoResults) {
  std::filesystem::create_directories(box.path() / name);
  box.set("TMPDIR", (box.path() / name).string());
  const std::string script =
      mounts + " && exec \"$0\" agent --name " + name + " --cpus " + std::to_string(cpus);
  std::unique_ptr<Running> agent(
      new Running(box.start({"unshare", "-rmu", "sh", "-c", script, TUNE_BINARY_DIR "/bin/tune"})));
  box.set("TMPDIR", "/tmp");
  return agent;
}

struct FarMachines : Joinable {
  using Joinable::Joinable;
  std::unique_ptr<Running> far(const std::string& name) { return far_agent(box, name); }
  void kill_own_agent() {  // a fork of the driver
    for (const pid_t pid : box.processes(std::string("run\0sweep.yaml", 14))) {
      if (pid != run->pid()) kill(pid, SIGKILL);
    }
    CHECK(Sandbox::eventually([&] { return count("own") == 0; }));
  }
  std::string node_of(const Running& agent) const {
    const std::string pid = ":" + std::to_string(agent.pid());
    for (const std::string& line : lines_of(nodes())) {
      if (testing::has(line, pid)) return line.substr(0, line.find(' '));
    }
    return {};
  }
};

inline bool has_mounts() {
  const Sandbox box;
  if (box.run({"unshare", "-rmu", "sh", "-c", "mount -t tmpfs none ."}).code == 0) return true;
  testing::skip("no mount namespaces here");
  return false;
}

}  // namespace tune
