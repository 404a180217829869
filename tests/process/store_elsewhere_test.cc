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
  explicit Elsewhere(const std::string& patience) : Elsewhere(loss_sweep(), patience) {}
  Elsewhere(std::string text, const std::string& patience, const std::string& program = {}) {
    text.replace(text.find("store_patience_s: 10"), 20, "store_patience_s: " + patience);
    box.write("sweep.yaml", text);
    box.write("train.sh", program);
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

// Each step is a line of a file in the trial's folder, and a report that is answered.
TEST_CASE("trials train on while the store is silent, and nothing of it is lost") {
  const std::string program = R"(
    echo hello 1 >&$TUNE_FD
    text=$(printf %10000s | tr " " x)
    n=0
    until test -e enough; do
      n=$((n + 1))
      echo $n >> "$TUNE_TRIAL_DIR/steps"
      echo "{\"loss\": $n, \"text\": \"$text\"}" >&$TUNE_FD
      read word <&$TUNE_FD
      sleep 0.02
    done)";
  // A worker that nobody reads has room for about 20 of these reports, an agent for 400.
  constexpr std::size_t kMore = 60;
  const std::string text =
      "command: [sh, train.sh]\nconfig: {x: {grid_search: [1, 2]}}\nmetric: loss\n"
      "mode: min\nseed: 5\nstore_patience_s: 10\n";
  Elsewhere elsewhere(text, "60", program);
  const Sandbox& box = elsewhere.box;
  const auto steps = [&](std::size_t trial) {
    return lines_of(box.read(trial_folders(box, "results/s").at(trial) / "steps")).size();
  };
  const auto results = [&](std::size_t trial) {
    return lines_of(box.read(trial_folders(box, "results/s").at(trial) / "result.json")).size();
  };
  const auto all_reach = [&](const std::vector<std::size_t>& goals) {
    return Sandbox::eventually([&] { return steps(0) >= goals[0] && steps(1) >= goals[1]; });
  };
  REQUIRE(Sandbox::eventually([&] { return trial_folders(box, "results/s").size() == 2; }));
  REQUIRE(all_reach({1, 1}));
  elsewhere.server->signal(SIGSTOP);
  // What was stored before the store fell silent may still become results.
  REQUIRE(all_reach({steps(0) + kMore, steps(1) + kMore}));
  const std::size_t known[] = {results(0), results(1)};
  CHECK(all_reach({steps(0) + kMore, steps(1) + kMore}));
  for (const std::size_t trial : {0, 1}) CHECK(results(trial) == known[trial]);
  elsewhere.server->signal(SIGCONT);
  box.write("enough", "");
  const Finished finished = elsewhere.driver->wait();
  INFO(finished.err);
  CHECK(finished.code == 0);
  check_complete(box, "results/s", 2);
  for (const std::size_t trial : {0, 1}) CHECK(results(trial) == steps(trial));
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
