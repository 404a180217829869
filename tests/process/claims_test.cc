// Two sweeps of one user on one machine.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "core/platform/lock_sign.h"
#include "core/refusal.h"
#include "process/outcome.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Each trial uses a GPU, of which the machine has two.
void give_gpus(Sandbox& box, const char* steps) {
  box.set("LD_LIBRARY_PATH", std::string(TUNE_BINARY_DIR) + "/tests/fake_nvml");
  box.set("FAKE_GPUS", "2");
  box.write("sweep.yaml", yaml({.config = "{lr: {loguniform: [1e-3, 1.0]}, step_ms: 20}",
                                .num_samples = 2,
                                .rest = "stop: {training_iteration: " + std::string(steps) +
                                        "}\nresources_per_trial: {gpu: 1}\n"}));
}

// A sweep that holds both GPUs until it is stopped; those after it are short.
std::unique_ptr<Running> hold_gpus(Sandbox& box) {
  give_gpus(box, "100000");
  std::unique_ptr<Running> holder(new Running(
      box.start_tune({"run", "sweep.yaml", "--name", "first", "--cpus", "2", "--quiet"})));
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/first", 2); }));
  give_gpus(box, "3");
  return holder;
}

TEST_CASE("two sweeps do not hand out the same GPU: one is refused, or waits") {
  Sandbox box;
  const auto first = hold_gpus(box);
  const Finished refused =
      box.tune({"run", "sweep.yaml", "--name", "second", "--cpus", "2", "--quiet"});
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "2 GPUs of 2 are wanted, but GPU 0 (");
  CHECK_HAS(refused.err, "is used by process " + std::to_string(first->pid()) + " (");
  CHECK_HAS(refused.err, "results/first)");
  CHECK_HAS(refused.err, "--wait-gpus");
  CHECK_FALSE(fs::exists(box.path() / "results/second"));

  Running waits = box.start_tune(
      {"run", "sweep.yaml", "--name", "third", "--cpus", "2", "--quiet", "--wait-gpus"});
  REQUIRE(Sandbox::eventually([&] { return fs::exists(box.path() / "results/third/lock"); }));
  CHECK(box.read("results/third/results.csv").empty());
  const Finished asked = box.tune({"status", "results/third"});
  CHECK(asked.code == 2);
  CHECK_HAS(asked.err, "results/third holds no experiment yet: process " +
                           std::to_string(waits.pid()) + " (tune) is about to begin it");
  CHECK(Sandbox::eventually(  // for other hosts
      [&] { return sign_of_text(box.read("results/third/lock")).beats > 1; }));
  first->signal(SIGINT);
  CHECK(first->wait().code == 128 + SIGINT);
  const Finished done = waits.wait();
  INFO(done.err);
  CHECK(done.code == 0);
  CHECK_HAS(done.err, ": waiting for them");
  CHECK_HAS(box.read("results/third/events.jsonl"), ": waiting for them\"}");
  check_nothing_left(box, "results/third");
}

TEST_CASE("two sweeps that take one GPU each get different ones") {
  Sandbox box;
  give_gpus(box, "100000");
  Running first = box.start_tune(
      {"run", "sweep.yaml", "--name", "first", "--cpus", "2", "--gpus", "1", "--quiet"});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/first", 1); }));
  give_gpus(box, "3");
  const Finished second =
      box.tune({"run", "sweep.yaml", "--name", "second", "--cpus", "2", "--gpus", "1", "--quiet"});
  INFO(second.err);
  CHECK(second.code == 0);
  const Finished third =
      box.tune({"run", "sweep.yaml", "--name", "third", "--cpus", "2", "--gpus", "2", "--quiet"});
  CHECK(third.code == 2);
  first.signal(SIGKILL);  // its claim ends with its processes
  first.wait();
  REQUIRE(box.is_quiet());
  CHECK(box.tune({"run", "sweep.yaml", "--name", "fourth", "--cpus", "2", "--gpus", "2", "--quiet"})
            .code == 0);
}

TEST_CASE("an agent that joins does not hand out another sweep's GPU: it is refused, or waits") {
  Sandbox box;
  const auto first = hold_gpus(box);
  Running second = box.start_tune({"run", "sweep.yaml", "--name", "second", "--cpus", "1", "--gpus",
                                   "0", "--quiet", "--listen", "lo"});
  const std::string token = "results/second/nodes/join";
  REQUIRE(Sandbox::eventually([&] { return fs::exists(box.path() / token); }));
  const Finished refused = box.tune({"agent", "--join-file", token, "--cpus", "2"});
  INFO(refused.err);
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, "is used by process " + std::to_string(first->pid()) + " (");
  CHECK_HAS(refused.err, "--wait-gpus");

  const Running agent =
      box.start_tune({"agent", "--join-file", token, "--cpus", "2", "--wait-gpus"});
  CHECK_FALSE(agent.ends_within(std::chrono::seconds(1)));
  first->signal(SIGINT);
  CHECK(first->wait().code == 128 + SIGINT);
  const Finished done = second.wait();
  INFO(done.err);
  CHECK(done.code == 0);
  check_complete(box, "results/second", 2, 3);
}

}  // namespace
}  // namespace tune
