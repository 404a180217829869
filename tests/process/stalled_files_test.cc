// A file system that does not answer for a while.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Longer than an agent may be silent.
constexpr std::chrono::seconds kStall{24};

TEST_CASE("a file system that stalls for longer than an agent may be silent costs nothing") {
  Sandbox box;
  const fs::path stall = box.path() / "stall";
  box.set("LD_PRELOAD", TUNE_STALLING_FILES);
  box.set("STALL_FILE", stall);
  box.write("stall", "");
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 10}",
                                .num_samples = 4,
                                .rest = "stop: {training_iteration: 6}\n"
                                        "checkpoint: {frequency: 2}\n"}));
  Running run = box.start_tune({"run", "sweep.yaml", "--name", "s", "--cpus", "2", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return fs::exists(stall.string() + ".met"); }));
  CHECK_FALSE(run.ends_within(kStall));
  fs::remove(stall);
  const Finished done = run.wait();
  INFO(done.err);
  CHECK(done.code == 0);
  CHECK(done.err.find("gone") == std::string::npos);
  check_complete(box, "results/s", 4, 6);
  fs::remove(stall.string() + ".met");
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
