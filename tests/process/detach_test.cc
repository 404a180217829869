// Runs that go on without their terminal.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "core/refusal.h"
#include "process/joinable.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

std::size_t left_beside(const Sandbox& box) {
  std::size_t count = 0;
  if (!fs::exists(box.path() / "results")) return 0;
  for (const auto& entry : fs::directory_iterator(box.path() / "results")) {
    count += entry.path().filename().string().starts_with(".detached");
  }
  return count;
}

TEST_CASE("a detached run goes on in a session of its own when its command has returned") {
  const Sandbox box;
  box.write("sweep.yaml", joinable_sweep(2, 500));
  const Finished begun =
      box.start_tune({"run", "sweep.yaml", "--name", "s", "--detach"}).wait(seconds(60));
  INFO(begun.err);
  CHECK(begun.code == 0);
  CHECK_HAS(begun.err, "tune status results/s");
  CHECK(begun.out.empty());
  CHECK_FALSE(fs::exists(box.path() / "results/s/results.csv"));
  const auto drivers = box.processes("--detach");
  REQUIRE_FALSE(drivers.empty());
  const Finished session = box.run({"ps", "-o", "sid=", "-p", std::to_string(drivers.front())});
  CHECK(session.out.find(std::to_string(drivers.front())) != session.out.npos);
  CHECK(Sandbox::eventually([&] {
    return testing::has(box.tune({"status", "results/s"}).err, "RUNNING");
  }));
  CHECK(Sandbox::eventually([&] { return box.processes("--detach").empty(); }, seconds(60)));
  check_complete(box, "results/s", 2, 8);
  CHECK_HAS(box.read("results/s/detached.log"), "{\"lr\":");  // the best configuration
  CHECK(left_beside(box) == 0);
}

TEST_CASE("a resume goes on detached, and one that is refused says so to its terminal") {
  const Sandbox box;
  box.write("sweep.yaml", joinable_sweep(2, 100));
  {
    Running run = box.start_tune({"run", "sweep.yaml", "--name", "s"});
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 2); }));
    run.signal(SIGKILL);
    run.wait();
  }
  const Finished refused = box.tune({"resume", "results/s", "--listen", "gone9", "--detach"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "gone9");
  const Finished begun = box.start_tune({"resume", "results/s", "--detach"}).wait(seconds(60));
  INFO(begun.err);
  CHECK(begun.code == 0);
  CHECK_HAS(begun.err, "tune status results/s");
  CHECK(begun.out.empty());
  CHECK(Sandbox::eventually([&] { return box.processes("--detach").empty(); }, seconds(60)));
  check_complete(box, "results/s", 2, 8);
  CHECK_HAS(box.read("results/s/detached.log"), "{\"lr\":");
  CHECK(left_beside(box) == 0);
}

TEST_CASE("a detached run that is refused says so to its terminal, and leaves nothing") {
  const Sandbox box;
  box.write("sweep.yaml", yaml({.trainable = "nobody", .config = "{lr: 1}", .num_samples = 1}));
  const Finished refused =
      box.start_tune({"run", "sweep.yaml", "--name", "s", "--detach"}).wait(seconds(60));
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "nobody");
  CHECK_FALSE(fs::exists(box.path() / "results/s"));
  CHECK(left_beside(box) == 0);
}

}  // namespace
}  // namespace tune
