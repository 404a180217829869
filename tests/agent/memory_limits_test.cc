#include "core/agent/memory_limits.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

// A made-up hierarchy of version 1. The kernel's files go with a cgroup, here a test removes them.
struct Node {
  TemporaryFolder mounts;
  Node() {
    fs::create_directories(mounts.path() / "memory");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  }
  void put(const std::string& file, const std::string& text) const {
    std::ofstream(mounts.path() / file) << text;
  }
  MemoryCgroups cgroups() const { return MemoryCgroups::find(mounts.path(), "4:memory:/\n"); }
  std::string folder(int attempt) const {
    return "memory/tune-" + std::to_string(::getpid()) + "-" + std::to_string(attempt) + "/";
  }
  void remove_files(int attempt) const {
    for (const auto& entry : fs::directory_iterator(mounts.path() / folder(attempt))) {
      fs::remove(entry.path());
    }
  }
};

TEST_CASE("the ranks of an attempt share a cgroup with its limit, which ends with it") {
  const Node node;
  MemoryLimits memory(8LL << 30, node.cgroups());
  CHECK(memory.why_not().empty());
  CHECK(memory.add(7, 41).empty());
  CHECK(memory.add(8, 51).empty());
  const fs::path folder = node.mounts.path() / node.folder(7);
  CHECK(read_text(folder / "memory.limit_in_bytes") == "8589934592");
  CHECK(read_text(folder / "cgroup.procs") == "41");
  CHECK(memory.add(7, 42).empty());
  CHECK(read_text(folder / "cgroup.procs") == "42");
  CHECK_FALSE(memory.excess(7));
  node.put(node.folder(7) + "memory.oom_control", "oom_kill 1\n");
  CHECK(memory.excess(7) == "needed more than its memory of 8 GiB");
  CHECK_FALSE(memory.excess(8));
  memory.end(7);  // not empty yet: a process of it is still ending
  CHECK(fs::exists(folder));
  node.remove_files(7);
  node.remove_files(8);
  memory.end(8);  // and what was left before
  CHECK_FALSE(fs::exists(folder));
  CHECK_FALSE(fs::exists(node.mounts.path() / node.folder(8)));
}

TEST_CASE("a limit that cannot be set is told, one that is not wanted needs nothing") {
  const TemporaryFolder empty;
  MemoryLimits unlimited(512LL << 20, MemoryCgroups::find(empty.path(), ""));
  CHECK_HAS(unlimited.why_not(), "a trial's memory of 512 MiB is counted but not limited");
  CHECK_HAS(unlimited.why_not(), "there is no cgroup with a memory controller");
  CHECK(unlimited.add(1, 41).empty());
  CHECK_FALSE(unlimited.excess(1));
  unlimited.end(1);
  MemoryLimits unwanted(0);
  CHECK(unwanted.why_not().empty());
  CHECK(unwanted.add(1, 41).empty());
}

}  // namespace
}  // namespace tune::testing
