// The driver is killed at random moments of an experiment's life, and each time resumed: nothing is
// lost, nothing is counted twice, and one slot gives what it would have given undisturbed.
#include <doctest/doctest.h>

#include <signal.h>

#include <chrono>

#include "core/random.h"
#include "process/outcome.h"
#include "process/random.h"
#include "process/sweep.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using Moment = std::chrono::microseconds;

constexpr int kKillsInOneLife = 5;

struct Sweep {
  std::string name;
  std::string text;
  std::string cpus;
  std::size_t trials;
  bool agent_stays = false;
};

// On one slot the order of all decisions is fixed.
Sweep asha_on(const std::string& cpus) {
  const SweepText text{.config = "{lr: {loguniform: [1e-3, 1.0]}, noise: 0.02, step_ms: 4}",
                       .num_samples = 10,
                       .rest =
                           "checkpoint: {frequency: 2}\nscheduler: {asha: {max_t: 9, "
                           "grace_period: 1, reduction_factor: 3}}\n"};
  return {.name = "asha", .text = yaml(text), .cpus = cpus, .trials = 10};
}

// Trials whose first attempt fails, each in its way.
Sweep failing() {
  const SweepText text{.trainable = "Faulty",
                       .config =
                           "{fail_in: step, fail_at: 3, step_ms: 4, "
                           "fail_how: {grid_search: [kill, throw, exit, segv]}}",
                       .num_samples = 1,
                       .rest =
                           "stop: {training_iteration: 6}\ncheckpoint: {frequency: 2}\n"
                           "max_failures: 3\n",
                       .metric = "count"};
  return {.name = "failing", .text = yaml(text), .cpus = "1", .trials = 4};
}

// Its agent outlives the driver, unless it is killed as well.
Sweep with_agent_that_stays(Sweep sweep) {
  sweep.name += "-stays";
  sweep.text += "patience_s: 600\nlease_s: 600\n";
  sweep.agent_stays = true;
  return sweep;
}

// More bytes than the journal keeps without a snapshot.
Sweep many_reports() {
  const SweepText text{.trainable = "empty_steps",
                       .config = "{steps: 2500, text_bytes: 600, lr: {uniform: [0, 1]}}",
                       .num_samples = 8,
                       .rest = "stop: {training_iteration: 2500}\n",
                       .metric = "x"};
  return {.name = "reports", .text = yaml(text), .cpus = "4", .trials = 8};
}

std::vector<std::string> run_command(const Sweep& sweep) {
  return {"run", "sweep.yaml", "--name", "s", "--cpus", sweep.cpus, "--quiet"};
}

// One experiment from its start to its end.
class Life {
 public:
  Life(const Sweep& sweep, Moment usual_length, std::uint64_t number)
      : sweep_(sweep), usual_(usual_length), random_(test_seed(), sweep.name + sweep.cpus, number) {
    box_.write("sweep.yaml", sweep.text);
  }

  // Returns how many kills met a living driver.
  int run(int kills) {
    int done = 0;
    while (done < kills && is_killed_before_its_end()) ++done;
    finish();
    check_complete(box_, "results/s", sweep_.trials);
    check_nothing_left(box_, "results/s");
    return done;
  }
  std::string table() const { return lasting_table(box_, "results/s"); }

 private:
  // A driver that was killed before it had written anything is begun again, as anyone would.
  Running start() const {
    const bool begun = fs::exists(box_.path() / "results/s/experiment.json");
    return box_.start_tune(begun ? std::vector<std::string>{"resume", "results/s", "--quiet"}
                                 : run_command(sweep_));
  }

  bool is_killed_before_its_end() {
    Running driver = start();
    driver.ends_within(Moment(random_.integer(0, usual_.count())));
    driver.signal(SIGKILL);  // or it has ended: as it should
    const Finished finished = driver.wait();
    INFO(finished.err);
    CHECK((finished.code == 0 || finished.code == 128 + SIGKILL));
    if (sweep_.agent_stays && random_.integer(0, 4) == 0) {
      for (const pid_t pid : box_.processes()) kill(pid, SIGKILL);
    }
    return finished.code != 0;
  }

  void finish() const {
    const Finished finished = start().wait();
    INFO(finished.err);
    REQUIRE(finished.code == 0);
  }

  const Sweep& sweep_;
  Moment usual_;
  RandomStream random_;
  Sandbox box_;
};

struct Undisturbed {
  std::string table;
  Moment length;
};

Undisturbed undisturbed(const Sweep& sweep) {
  Sandbox box;
  box.write("sweep.yaml", sweep.text);
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished = box.tune(run_command(sweep));
  const auto end = std::chrono::steady_clock::now();
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  check_complete(box, "results/s", sweep.trials);
  return {lasting_table(box, "results/s"), std::chrono::duration_cast<Moment>(end - begin)};
}

void kill_again_and_again(const Sweep& sweep, int usual_kills, bool is_deterministic) {
  const int kills = share_of_kills(usual_kills);
  const Undisturbed expected = undisturbed(sweep);
  int done = 0;
  for (std::uint64_t number = 0; done < kills; ++number) {
    CAPTURE(number);
    REQUIRE(number < 10 * static_cast<std::uint64_t>(kills));  // or it always ends before
    Life life(sweep, expected.length, number);
    done += life.run(std::min(kKillsInOneLife, kills - done));
    if (is_deterministic) CHECK(life.table() == expected.table);
  }
}

TEST_CASE("a driver killed at any moment: one slot ends with the table of an undisturbed run") {
  kill_again_and_again(asha_on("1"), 20, true);
}

TEST_CASE("a driver killed at any moment: its agent goes on, and counts once") {
  kill_again_and_again(with_agent_that_stays(asha_on("1")), 20, true);
  kill_again_and_again(with_agent_that_stays(failing()), 10, true);
  kill_again_and_again(with_agent_that_stays(asha_on("4")), 10, false);
}

TEST_CASE("a driver killed at any moment: trials that fail are started again as often as allowed") {
  kill_again_and_again(failing(), 10, true);
}

TEST_CASE("a driver killed at any moment: many slots lose no result and double none") {
  kill_again_and_again(asha_on("4"), 10, false);
}

TEST_CASE("a driver killed at any moment: reports beyond a snapshot are all there") {
  kill_again_and_again(many_reports(), 10, true);
}

}  // namespace
}  // namespace tune
