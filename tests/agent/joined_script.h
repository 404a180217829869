// An agent that has joined by a token, driven like MachineScript.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/machine_script.h"

namespace tune::testing {

// An agent that has joined by a token, with a trial that runs as process 101.
struct JoinedScript : MachineScript {
  explicit JoinedScript(Stay stay = {}, bool runs_trial = true, bool is_own = false,
                        Duration save_grace = std::chrono::seconds(30)) {
    AgentFacts joined = facts();
    joined.hello.joined = true;
    joined.hello.own = is_own;
    joined.stay = stay;
    own = std::make_unique<AgentMachine>(std::move(joined));
    one().on_connected(now);
    CHECK(said_by() == std::vector<std::string>{"driver: hello"});  // before there is a zygote
    SetupExperiment setup;
    setup.joined.patience = std::chrono::minutes(30);
    setup.save_grace = save_grace;
    one().on_command(now, setup);
    one().start(now);
    one().on_zygote_started(now, 77);
    one().on_zygote(now, ZygoteReady{{}, {{"Curve", true, false}}, {}});
    if (runs_trial) {
      Launch launch;
      launch.attempt = {1};
      one().on_command(now, launch);
      one().on_zygote(now, Spawned{1, 101, {}});
    }
    said_by();
  }
  AgentMachine& one() { return *own; }
  std::vector<std::string> said_by() {
    std::vector<AgentAction> actions;
    one().take_actions(actions);
    std::vector<std::string> lines;
    for (const AgentAction& action : actions) lines.push_back(show(action));
    one().on_sent();
    return lines;
  }
  // Time passes in which the driver is heard, or is not.
  std::vector<std::string> live(AgentTime time, bool hears_driver = true) {
    now += time;
    if (hears_driver) one().on_driver_heard(now);
    one().on_time(now);
    return said_by();
  }
  // The trial saves and ends, and the zygote goes.
  std::vector<std::string> save_and_go() {
    one().on_worker(now, 1, RankSaved{3, std::chrono::seconds(1), {}});
    one().on_promoted(now, {{0}, {1}, 3, std::chrono::seconds(1), {}}, {});
    one().on_worker(now, 1, WorkerEnded{Outcome::kPaused, {}});
    one().on_exit(now, 101, {false, 0, "exited with code 0"});
    said_by();
    one().on_concluded(now, end_of(0));
    live(std::chrono::milliseconds(1));
    one().on_zygote_died(now, "killed by signal 9");
    return live(std::chrono::milliseconds(1));
  }
  std::unique_ptr<AgentMachine> own;
};

}  // namespace tune::testing
