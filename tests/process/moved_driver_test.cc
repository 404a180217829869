// Drivers that go on where the host has other addresses than the one before: the experiment's
// description is changed instead, as the tests have one host.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "process/gated.h"
#include "process/joinable.h"

namespace tune {
namespace {

using std::chrono::seconds;

constexpr const char* kSpec = "results/s/experiment.json";
constexpr const char* kNoSuch = "no interface or address gone9; it has ";
constexpr const char* kRemedy = "results/s --listen ADDRESS[:PORT]";

std::string listens_at(const Sandbox& box) {
  return parse_json(box.read(kSpec), kSpec).get<std::string>("listen");
}

void take_address_away(const Sandbox& box) {
  Value spec = parse_json(box.read(kSpec), kSpec);
  spec.set("listen", "gone9");
  box.write(kSpec, to_json(spec, 2));
}

void kill_driver(Running& run) {
  run.signal(SIGKILL);
  run.wait();
}

TEST_CASE("a driver that moves is refused before anybody ends, and listens where it is told") {
  Joinable sweep(gated_sweep(2));
  Sandbox& box = sweep.box;
  auto agent = sweep.agent();
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 28); }));
  kill_driver(*sweep.run);
  take_address_away(box);
  const std::vector<pid_t> before = box.processes();
  const Finished refused = box.tune({"resume", "results/s"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, kNoSuch);
  CHECK_HAS(refused.err, kRemedy);
  CHECK_FALSE(testing::has(refused.err, "meanwhile"));
  CHECK_HAS(box.tune({"resume", "results/s", "--listen", "gone8"}).err, "address gone8");
  CHECK(box.processes() == before);

  const auto resume = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"resume", "results/s"});
    sweep.run.reset(new Running(box.start_tune(more)));
  };
  resume({"--listen", "127.0.0.1"});
  CHECK(Sandbox::eventually([&] { return count_events(box, "node_returned") == 2; }));
  CHECK_HAS(sweep.nodes(), "joined");
  kill_driver(*sweep.run);
  CHECK(listens_at(box) == "127.0.0.1");
  resume({});  // there again
  CHECK(Sandbox::eventually([&] { return count_events(box, "node_returned") == 4; }));
  open_gate(box);
  sweep.finish();
  CHECK(agent->wait(seconds(20)).code == 0);
  check_complete(box, "results/s", 2, kGatedSteps);
  for (const auto& [trial, pids] : processes_of_trials(box)) CHECK(pids.size() == 1);
  check_nothing_left(box, "results/s");
}

TEST_CASE("machines may join a sweep that begins to listen when it is resumed") {
  Sandbox box;
  box.write("sweep.yaml", gated_sweep(2));
  const auto start = [&](std::vector<std::string> words) {
    std::unique_ptr<Running> run(new Running(box.start_tune(std::move(words))));
    CHECK(Sandbox::eventually([&] { return has_results(box, "results/s", 14); }));
    return run;
  };
  kill_driver(*start({"run", "sweep.yaml", "--name", "s", "--cpus", "1"}));
  auto run = start({"resume", "results/s", "--listen", "lo"});
  REQUIRE(Sandbox::eventually([&] { return !box.read("results/s/nodes/join").empty(); }));
  box.set("TUNE_JOIN", lines_of(box.read("results/s/nodes/join")).at(0));
  Running agent = box.start_tune({"agent", "--cpus", "1"});
  CHECK(Sandbox::eventually([&] { return has_results(box, "results/s", 28); }));
  open_gate(box);
  CHECK(run->wait().code == 0);
  CHECK(agent.wait().code == 0);
  check_complete(box, "results/s", 2, kGatedSteps);
  check_nothing_left(box, "results/s");
}

TEST_CASE("the sweep of a program moves by its command and by the program's own options") {
  Sandbox box;
  box.set("PAUSE_MS", "300");
  const std::string program = std::string(TUNE_BINARY_DIR) + "/tests/own_parts";
  const auto start = [&](const std::string& listen, const std::string& more) {
    return box.start({program, "--cpus", "2", "--quiet", "--set", "listen=" + listen, "--name",
                      "s", more});
  };
  {
    Running run = start("lo", "--fresh");
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 1); }));
    kill_driver(run);
  }
  take_address_away(box);
  const Finished refused = box.tune({"resume", "results/s", "--quiet"});
  CHECK(refused.code == 2);
  CHECK_HAS(refused.err, kRemedy);
  {
    Running run = start("127.0.0.1", "--resume");
    CHECK(Sandbox::eventually([&] { return count_events(box, "node_returned") == 1; }));
    kill_driver(run);
  }
  CHECK(listens_at(box) == "127.0.0.1");
  box.write("results/s/callbacks/1.told.tmp-12", "");  // as it may be killed while writing this
  take_address_away(box);
  const Finished resumed =
      box.tune({"resume", "results/s", "--quiet", "--listen", "127.0.0.1"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(listens_at(box) == "127.0.0.1");  // not lo, as the program's words are
  check_nothing_left(box, "results/s");
}

}  // namespace
}  // namespace tune
