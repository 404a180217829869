// Sweeps whose trials have a limit on their memory, where the kernel cannot be told of it: a
// machine whose cgroups are hidden in a mount namespace, or one that lets nobody make any.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/platform/memory_cgroups.h"
#include "process/far_machines.h"

namespace tune {
namespace {

const std::string kLimit = "resources_per_trial: {cpu: 1, memory: 64MiB}\n";
const std::string kNoCgroups = "mount -t tmpfs none /sys/fs/cgroup";

bool has_cgroups() {
  return MemoryCgroups::find().why_not().empty();
}

// By nodes whose names end with `node`.
std::size_t times_said(const Sandbox& box, const std::string& node = "") {
  const std::string said = node + ": a trial's memory of 64 MiB is counted but not limited, ";
  std::size_t times = 0;
  for (const std::string& line : lines_of(box.read("results/s/events.jsonl"))) {
    times += testing::has(line, said);
  }
  return times;
}

TEST_CASE("a limit on memory that cannot be set is said once") {
  if (has_cgroups() && !has_mounts()) return;
  Sandbox box;
  box.write("sweep.yaml", yaml({.rest = "stop: {training_iteration: 3}\n" + kLimit}));
  const std::string hide = has_cgroups() ? kNoCgroups : "true";
  const std::string run = hide + " && exec \"$0\" run sweep.yaml --name s --cpus 1";
  const std::string tune = TUNE_BINARY_DIR "/bin/tune";
  const Finished finished = has_cgroups() ? box.run({"unshare", "-rm", "sh", "-c", run, tune})
                                          : box.run({"sh", "-c", run, tune});
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 4, 3);
  CHECK(times_said(box) == 1);
}

TEST_CASE("a machine that joins says as well that it can set no limit on memory") {
  if (!has_mounts()) return;
  Joinable sweep(joinable_sweep(16, 60, kLimit));
  const std::string hide = has_cgroups() ? kNoCgroups : "true";
  const auto agent = far_agent(sweep.box, "other", 1, "hostname far-host && " + hide);
  REQUIRE(Sandbox::eventually([&] { return times_said(sweep.box, "far-host") == 1; }));
  sweep.finish();
  CHECK(times_said(sweep.box, "far-host") == 1);
}

}  // namespace
}  // namespace tune
