#include "core/platform/memory_cgroups.h"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "platform/surroundings.h"
#include "skip.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

// A made-up /sys/fs/cgroup: what is written there stays as it was written.
struct Tree {
  TemporaryFolder mounts;
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((mounts.path() / file).parent_path());
    std::ofstream(mounts.path() / file) << text;
  }
  std::string get(const std::string& file) const { return read_text(mounts.path() / file); }
  MemoryCgroups find(const std::string& own) const {
    return MemoryCgroups::find(mounts.path(), own);
  }
};

std::string own_group(const std::string& name) {
  return "tune-" + std::to_string(::getpid()) + "-" + name;
}

TEST_CASE("with version 1 a limit is set below the process's own cgroup") {
  Tree tree;
  tree.put("memory/job/step/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryCgroups groups = tree.find("4:memory:/job/step\n3:cpuset:/\n0::/\n");
  CHECK(groups.why_not().empty());
  CHECK(groups.make("t", 5000).empty());
  CHECK(groups.add("t", 42).empty());
  const std::string folder = "memory/job/step/" + own_group("t") + "/";
  CHECK(tree.get(folder + "memory.limit_in_bytes") == "5000");
  CHECK(tree.get(folder + "memory.memsw.limit_in_bytes") == "5000");
  CHECK(tree.get(folder + "cgroup.procs") == "42");
  CHECK_FALSE(groups.was_exceeded("t"));
  tree.put(folder + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  CHECK_FALSE(groups.was_exceeded("t"));
  tree.put(folder + "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  CHECK(groups.was_exceeded("t"));
}

TEST_CASE("in a container whose path is not there its root is meant") {
  Tree tree;
  tree.put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryCgroups groups = tree.find("4:memory:/docker/0123\n");
  CHECK(groups.why_not().empty());
  CHECK(groups.make("t", 5000).empty());
  CHECK(tree.get("memory/" + own_group("t") + "/memory.limit_in_bytes") == "5000");
}

TEST_CASE("with version 2 a limit is set where memory is handed on: below, else beside") {
  for (const bool below : {true, false}) {
    CAPTURE(below);
    Tree tree;
    tree.put("user/scope/cgroup.controllers", "memory pids\n");
    tree.put("user/scope/cgroup.subtree_control", below ? "pids memory\n" : "\n");
    tree.put("user/scope/memory.max", "max\n");
    tree.put("user/cgroup.subtree_control", "cpu memory\n");
    const MemoryCgroups groups = tree.find("0::/user/scope\n");
    CHECK(groups.why_not().empty());
    CHECK(groups.make("t", 5000).empty());
    const std::string folder = (below ? "user/scope/" : "user/") + own_group("t") + "/";
    CHECK(tree.get(folder + "memory.max") == "5000");
    CHECK(tree.get(folder + "memory.swap.max") == "0");
    CHECK(tree.get(folder + "memory.oom.group") == "1");
    tree.put(folder + "memory.events", "low 0\noom 3\noom_kill 0\noom_group_kill 0\n");
    CHECK_FALSE(groups.was_exceeded("t"));
    tree.put(folder + "memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 1\n");
    CHECK(groups.was_exceeded("t"));
  }
}

TEST_CASE("a process never leaves a limit that somebody has set") {
  Tree tree;
  tree.put("job/step/cgroup.controllers", "memory\n");
  tree.put("job/step/memory.max", "1000000\n");
  tree.put("job/cgroup.subtree_control", "memory\n");
  const MemoryCgroups groups = tree.find("0::/job/step\n");
  CHECK_FALSE(groups.why_not().empty());
  CHECK_FALSE(fs::exists(tree.mounts.path() / "job" / own_group("probe")));
}

TEST_CASE("where there is no memory controller the reason is told") {
  const Tree tree;
  CHECK(tree.find("").why_not() == "there is no cgroup with a memory controller");
  CHECK_FALSE(tree.find("0::/gone\n4:memory:/gone\n").why_not().empty());
}

TEST_CASE("cgroups of processes that are gone are removed, those of living ones stay") {
  Tree tree;
  tree.put("memory/memory.limit_in_bytes", "1\n");
  Child gone([] {});
  const pid_t pid = gone.pid();
  const fs::path stale = tree.mounts.path() / "memory" / ("tune-" + std::to_string(pid) + "-t");
  const fs::path live =
      tree.mounts.path() / "memory" / ("tune-" + std::to_string(::getppid()) + "-t");
  const fs::path foreign = tree.mounts.path() / "memory" / "system";
  for (const fs::path& one : {stale, live, foreign}) fs::create_directories(one);
  tree.find("4:memory:/\n");
  CHECK(fs::exists(stale));
  gone.end();
  tree.find("4:memory:/\n");
  CHECK_FALSE(fs::exists(stale));
  CHECK(fs::exists(live));
  CHECK(fs::exists(foreign));
}

TEST_CASE("a process that needs more than its limit is ended, and that is known") {
  const MemoryCgroups groups = MemoryCgroups::find();
  if (!groups.why_not().empty()) return skip("no limit can be set here: " + groups.why_not());
  const std::string name = "limit_test";
  REQUIRE(groups.make(name, 64 << 20).empty());
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::raise(SIGSTOP);
    constexpr std::size_t kBytes = 256u << 20;
    auto* memory = static_cast<char*>(std::malloc(kBytes));
    std::memset(memory, 1, kBytes);
    ::_exit(memory[kBytes / 2]);
  }
  int status = 0;
  ::waitpid(pid, &status, WUNTRACED);
  REQUIRE(groups.add(name, pid).empty());
  CHECK_FALSE(groups.was_exceeded(name));
  CHECK_FALSE(groups.remove(name));  // a process is in it
  ::kill(pid, SIGCONT);
  ::waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(groups.was_exceeded(name));
  CHECK(eventually([&] { return groups.remove(name); }));
}

}  // namespace
}  // namespace tune::testing
