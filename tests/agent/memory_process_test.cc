// A limit on a trial's memory, with the real agent and the kernel's cgroups.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "agent/test_node.h"
#include "core/platform/memory_cgroups.h"
#include "skip.h"

using namespace tune;
using namespace tune::testing;

namespace {

bool has_cgroups_of(pid_t agent) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entry("/sys/fs/cgroup", error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.starts_with("tune-" + std::to_string(agent) + "-")) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a trial that needs more than its memory ends alone, and its cause says so") {
  if (const auto found = MemoryCgroups::find(); !found.why_not().empty()) {
    return skip("no limit on memory can be set here: " + found.why_not());
  }
  const auto fill = [](const Config& config, Session& session) {
    std::vector<std::string> filled;
    for (int i = 0; i < config.get<int>("mib"); ++i) filled.emplace_back(1 << 20, 'x');
    session.report({{"mib", static_cast<std::int64_t>(filled.size())}});
  };
  TestNode node({function_entry("f", fill)}, {}, -1, 128 << 20);
  node.expect<ZygoteReady>();
  SetupExperiment setup;
  setup.stop = {{"training_iteration", 1, false}};
  setup.checkpoint.at_end = false;
  node.set_up("f", setup);
  node.launch(0, {{"mib", 512}});
  const auto failed = node.expect_end(0);
  CHECK(failed.outcome == Outcome::kSignal);
  CHECK(failed.cause == "needed more than its memory of 128 MiB (killed by signal 9 (SIGKILL))");
  node.launch(1, {{"mib", 8}});
  CHECK(node.expect_end(1).outcome == Outcome::kCompleted);
  const pid_t agent = node.agent();
  CHECK(node.shut_down() == 0);
  CHECK_FALSE(has_cgroups_of(agent));
}
