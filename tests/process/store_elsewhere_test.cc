// A store that somebody else runs, which is killed, stands still or stays away.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>
#include <memory>

#include "process/loss.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a store elsewhere that is started again in time costs nothing") {
  Sandbox box;
  const std::string socket = (box.path() / "tmp/r").string();
  const auto start_store = [&] {
    return box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                      "--appendfsync", "always", "--dir", box.path()});
  };
  box.write("sweep.yaml", loss_sweep());
  std::unique_ptr<Running> server(new Running(start_store()));
  REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  Running driver = box.start_tune({"run", "sweep.yaml", "--name", "s", "--quiet", "--cpus", "3",
                                   "--store", "unix://" + socket});
  REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  server.reset();  // killed
  driver.ends_within(std::chrono::milliseconds(300));
  server.reset(new Running(start_store()));
  const Finished finished = driver.wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", kLossTrials, kLossSteps);
}

// A server of its own, and a sweep that uses it.
struct Elsewhere {
  explicit Elsewhere(const std::string& patience) {
    std::string text = loss_sweep();
    text.replace(text.find("store_patience_s: 10"), 20, "store_patience_s: " + patience);
    box.write("sweep.yaml", text);
    start();
    driver.reset(new Running(box.start_tune(
        {"run", "sweep.yaml", "--name", "s", "--cpus", "3", "--store", "unix://" + socket})));
    REQUIRE(Sandbox::eventually([&] { return has_results(box, "results/s", 3); }));
  }
  void start() {
    std::error_code none;
    fs::remove(socket, none);
    server.reset(new Running(
        box.start({"redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                   "--appendfsync", "always", "--dir", box.path()})));
    REQUIRE(Sandbox::eventually([&] { return fs::exists(socket); }));
  }
  Sandbox box;
  std::string socket = (box.path() / "tmp/r").string();
  std::unique_ptr<Running> server;
  std::unique_ptr<Running> driver;
};

TEST_CASE("a store elsewhere that is silent for a while is waited for") {
  for (const bool is_killed : {false, true}) {
    CAPTURE(is_killed);
    Elsewhere elsewhere("60");
    is_killed ? elsewhere.server.reset() : elsewhere.server->signal(SIGSTOP);
    CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::seconds(3)));
    is_killed ? elsewhere.start() : elsewhere.server->signal(SIGCONT);
    const Finished finished = elsewhere.driver->wait();
    INFO(finished.err);
    CHECK(finished.code == 0);
    CHECK_HAS(finished.out + finished.err, "waiting up to 60 s for it");
    CHECK_HAS(finished.out + finished.err, "the store answers again");
    check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
  }
}

TEST_CASE("a store elsewhere that stays away ends the run when its patience is over") {
  Elsewhere elsewhere("2");
  elsewhere.server.reset();
  const Finished finished = elsewhere.driver->wait();
  INFO(finished.err);
  CHECK(finished.code == 3);
  CHECK_HAS(finished.err, elsewhere.socket);
  CHECK_HAS(finished.err, "waited for 2 s");
  CHECK_HAS(finished.err, "tune resume results/s");
  elsewhere.start();
  const Finished resumed = elsewhere.box.tune({"resume", "results/s", "--quiet"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
}

TEST_CASE("a signal is obeyed while the store does not answer") {
  for (const int signals : {1, 2}) {
    CAPTURE(signals);
    Elsewhere elsewhere("600");
    elsewhere.server->signal(SIGSTOP);
    CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::seconds(2)));
    elsewhere.driver->signal(SIGTERM);
    if (signals == 2) {
      CHECK_FALSE(elsewhere.driver->ends_within(std::chrono::milliseconds(500)));
      elsewhere.driver->signal(SIGTERM);
    }
    const Finished finished = elsewhere.driver->wait(std::chrono::seconds(40));
    INFO(finished.err);
    CHECK(finished.code == 128 + SIGTERM);
    elsewhere.server->signal(SIGCONT);
    const Finished resumed = elsewhere.box.tune({"resume", "results/s", "--quiet"});
    INFO(resumed.err);
    CHECK(resumed.code == 0);
    check_complete(elsewhere.box, "results/s", kLossTrials, kLossSteps);
  }
}

}  // namespace
}  // namespace tune
