// Machines that have joined by a pasted token and see no file with the new one, when the join key
// is replaced.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/join_keys.h"
#include "core/refusal.h"
#include "process/far_machines.h"
#include "process/gated.h"
#include "tune/drive/door.h"

namespace tune {
namespace {

using std::chrono::seconds;

struct Rotated : FarMachines {
  using FarMachines::FarMachines;
  void rotate() {
    const Finished rotated = box.tune({"token", "results/s", "--rotate"});
    INFO(rotated.err);
    CHECK(rotated.code == 0);
  }
  void lose_driver() {
    run->signal(SIGKILL);
    run->wait();
  }
  void resume() { run.reset(new Running(box.start_tune({"resume", "results/s"}))); }
  // Replaced keys that still open.
  std::size_t former() const { return read_keys(box.path() / "results/s")->former.size(); }
  bool have_returned(std::size_t times) const {
    return Sandbox::eventually([&] { return count_events(box, "node_returned") == times; });
  }
};

TEST_CASE("a replaced key opens until each machine has the new one, whoever drives meanwhile") {
  if (!has_mounts()) return;
  Rotated sweep(gated_sweep(2));
  auto agent = sweep.far("a");
  CHECK(Sandbox::eventually([&] { return has_results(sweep.box, "results/s", 28); }));
  agent->signal(SIGSTOP);
  sweep.rotate();
  CHECK(sweep.former() == 1);
  std::this_thread::sleep_for(Door::kRotation + seconds(1));
  CHECK(sweep.former() == 1);
  sweep.lose_driver();
  sweep.rotate();
  CHECK(sweep.former() == 2);
  sweep.resume();
  agent->signal(SIGCONT);
  CHECK(sweep.have_returned(2));
  CHECK(Sandbox::eventually([&] { return sweep.former() == 0; }));
  sweep.lose_driver();
  sweep.resume();
  CHECK(sweep.have_returned(4));  // by the new key
  open_gate(sweep.box);
  const Finished finished = sweep.finish();
  CHECK_FALSE(testing::has(finished.err, "lost"));
  CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(sweep.box, "results/s", 2, kGatedSteps);
}

}  // namespace
}  // namespace tune
