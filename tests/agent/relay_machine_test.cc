// The machine of an agent that does not see the experiment's folder.
#include <algorithm>

#include <doctest/doctest.h>

#include "agent/joined_script.h"

namespace tune::testing {
namespace {

using namespace std::chrono_literals;
using RelayLines = std::vector<std::string>;

struct RelayScript : JoinedScript {
  explicit RelayScript(std::uint64_t restored = 0) : JoinedScript({}, false) {
    SetupExperiment setup;
    setup.experiment_id = "0a1b2";
    setup.experiment_directory = "/results/x";
    setup.joined.patience = std::chrono::minutes(30);
    one().on_command(now, setup);
    one().on_own_folder("/own");
    Launch launch;
    launch.attempt = {2};
    launch.restore_iteration = restored;
    launch.restore_attempt = {1};
    one().on_command(now, launch);
    launched = said_by();
    one().on_zygote(now, Spawned{1, 101, {}});
  }
  void save(std::uint64_t iteration) {
    one().on_worker(now, 1, RankSaved{iteration, 1s, {}});
    one().on_promoted(now, saved(iteration), {});
  }
  static CheckpointSaved saved(std::uint64_t iteration) { return {{0}, {2}, iteration, 1s, {}}; }
  void pause() {
    one().on_worker(now, 1, WorkerEnded{Outcome::kPaused, {}});
    one().on_exit(now, 101, {false, 0, "exited with code 0"});
  }
  void report(std::uint64_t iteration) {
    Reported report;
    report.attempt = {2};
    report.iteration = iteration;
    one().on_worker(now, 1, report);
  }
  bool says(const std::string& line) {
    const RelayLines lines = said_by();
    INFO(::doctest::toString(lines.size()));
    return std::ranges::find(lines, line) != lines.end();
  }
  RelayLines launched;
};

TEST_CASE("an attempt begins when the checkpoint that it begins with is there") {
  RelayScript script(4);
  CHECK(script.launched == RelayLines{"fetch 4 of trial 0", "spawn 1"});
  CHECK(script.said_by().empty());
  script.one().on_fetched(script.now, {0}, {2}, {}, false);
  std::vector<AgentAction> actions;
  script.one().take_actions(actions);
  REQUIRE(actions.size() == 2);
  const auto& start = std::get<StartWorker>(std::get<TellWorker>(actions[1]).command);
  CHECK(start.restore_folder == "/own/0a1b2_00000/.restored-2");
  CHECK(start.trial_directory == "/own/0a1b2_00000");
}

TEST_CASE("reports go on while a checkpoint is on its way; the end waits for it, the place not") {
  RelayScript script;
  script.said_by();
  script.report(3);
  script.said_by();
  script.save(3);
  CHECK(script.said_by() == RelayLines{"promote 3", "driver: saved here 3", "store 3"});
  script.report(4);
  CHECK(script.said_by().size() == 1);
  script.pause();
  CHECK(script.said_by() == RelayLines{"forget 1", "driver: place free"});
  CHECK(script.one().live().size() == 1);
  script.one().on_stored(script.now, RelayScript::saved(3), true, {});
  CHECK(script.said_by() == RelayLines{"driver: saved 3", "conclude 0: paused, rank 0, code 0, "});
}

TEST_CASE("a checkpoint that has its name only when the ranks are gone keeps no place either") {
  RelayScript script;
  script.one().on_worker(script.now, 1, RankSaved{3, 1s, {}});
  script.pause();
  script.said_by();
  script.one().on_promoted(script.now, RelayScript::saved(3), {});
  CHECK(script.said_by() == RelayLines{"driver: saved here 3", "store 3", "driver: place free"});
}

TEST_CASE("an attempt that has nothing on its way ends at once") {
  RelayScript script;
  script.save(3);
  script.one().on_stored(script.now, RelayScript::saved(3), true, {});
  script.said_by();
  script.pause();
  CHECK(script.said_by() == RelayLines{"forget 1", "conclude 0: paused, rank 0, code 0, "});
}

TEST_CASE("an attempt whose last checkpoint is not stored has failed to save") {
  RelayScript script;
  script.save(3);
  script.pause();
  script.said_by();
  script.one().on_stored(script.now, RelayScript::saved(3), false, "no space left");
  CHECK(script.said_by() ==
        RelayLines{"driver: given up 3",
                   "conclude 0: exception, rank 0, code 1, save: not stored: no space left"});
}

TEST_CASE("one that a newer one has replaced is given up, and costs nothing") {
  RelayScript script;
  script.save(3);
  script.save(4);
  script.pause();
  script.said_by();
  script.one().on_stored(script.now, RelayScript::saved(3), false, {});
  CHECK(script.said_by() == RelayLines{"driver: given up 3"});
  script.one().on_stored(script.now, RelayScript::saved(4), true, {});
  CHECK(script.says("conclude 0: paused, rank 0, code 0, "));
}

TEST_CASE("a checkpoint that the driver cannot give is the attempt's failure") {
  RelayScript script(4);
  script.one().on_fetched(script.now, {0}, {2}, "there is no checkpoint_000004", false);
  script.one().on_exit(script.now, 101, {true, 15, "killed by signal 15 (SIGTERM)"});
  CHECK(
      script.says("conclude 0: exception, rank 0, code 0, restore: there is no "
                  "checkpoint_000004"));
}

TEST_CASE("a node that cannot hold a checkpoint leaves, and the trial goes on elsewhere") {
  RelayScript script(4);
  script.said_by();
  script.one().on_fetched(script.now, {0}, {2}, "no space left", true);
  script.one().on_exit(script.now, 101, {true, 15, "killed by signal 15 (SIGTERM)"});
  CHECK(
      script.says("conclude 0: lost, rank 0, code 0, this node cannot hold its checkpoint: no "
                  "space left"));
  const RelayLines lines = script.live(1ms);
  CHECK(std::ranges::count(lines, "driver: node out: it cannot hold a checkpoint: no space left") ==
        1);
}

TEST_CASE("what is on its way is given up with its attempt, and when no driver is to come") {
  RelayScript script;
  script.save(3);
  script.said_by();
  script.one().on_command(script.now, KillAttempt{{0}, {2}});
  CHECK(script.says("give up checkpoints"));
  RelayScript over;
  over.save(3);
  over.said_by();
  over.one().on_experiment_over(over.now);
  CHECK(over.says("give up the relay"));
}

TEST_CASE("a later driver's setup leaves the agent in its own folder") {
  RelayScript script;
  script.pause();
  SetupExperiment setup;
  setup.experiment_id = "0a1b2";
  setup.experiment_directory = "/results/x";
  script.one().on_command(script.now, setup);
  Launch launch;
  launch.trial = {5};
  launch.attempt = {1};
  script.one().on_command(script.now, launch);
  script.one().on_zygote(script.now, Spawned{2, 102, {}});
  std::vector<AgentAction> actions;
  script.one().take_actions(actions);
  REQUIRE_FALSE(actions.empty());
  const auto& start = std::get<StartWorker>(std::get<TellWorker>(actions.back()).command);
  CHECK(start.trial_directory == "/own/0a1b2_00005");
}

}  // namespace
}  // namespace tune::testing
