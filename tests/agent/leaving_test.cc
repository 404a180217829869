// An agent that is told to end by a signal: by itself, or together with its driver.
#include <csignal>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

// One trial that runs as process 101, and what it takes to end all in order.
struct LeavingScript : MachineScript {
  LeavingScript() {
    set_up();
    run();
    machine.on_signal(now, "SIGTERM");
  }
  void save_and_end() {
    saved(1, 3);
    machine.on_promoted(now, {{0}, {1}, 3, std::chrono::seconds(1), {}}, {});
    end(1, Outcome::kPaused);
    exits(101);
  }
};

}  // namespace

TEST_CASE("an agent that alone is told to end lets its trials save, tells the driver, and ends") {
  LeavingScript script;
  CHECK(script.said().empty());  // the driver may have been told as well
  CHECK(script.machine.next_deadline() == script.now + AgentMachine::kDriverFirst);
  script.pass(AgentMachine::kDriverFirst);
  CHECK(script.said() ==
        Lines{"driver: node out: its agent was told to end (SIGTERM)", "worker 1: stop"});
  script.launch(7);
  CHECK(script.said() == Lines{"forget 2",
                               "conclude 7: lost, rank 0, code 0, this node starts no more "
                               "workers: its agent was told to end (SIGTERM)"});
  script.machine.on_concluded(script.now, {});
  script.save_and_end();
  CHECK(script.said() == Lines{"driver: ended: ", "promote 3", "driver: saved 3", "forget 1",
                               "conclude 0: paused, rank 0, code 0, "});
  script.machine.on_concluded(script.now, {});
  script.pass(1s);
  CHECK(script.said() == Lines{"driver: ended: ", "end zygote"});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  script.machine.on_backlog(script.now, 100);
  script.pass(1s);
  CHECK_FALSE(script.machine.is_over());
  script.machine.on_backlog(script.now, 0);
  CHECK(script.machine.is_over());
}

TEST_CASE("an agent whose driver was told to end as well leaves the trials to it") {
  LeavingScript script;
  script.pass(100ms);
  script.machine.on_command(script.now, StopAttempt{{0}, {1}, StopKind::kPause, 30s});
  CHECK(script.said() == Lines{"worker 1: stop"});
  SUBCASE("and ends when it is told to, as if there had been no signal") {
    script.save_and_end();
    script.said();
    script.machine.on_command(script.now, Shutdown{});
    CHECK(script.said() == Lines{"end zygote"});
    script.watch_for(10s);
    CHECK(script.said().empty());
  }
  SUBCASE("and says nothing to a trial that knows how to end") {
    script.pass(AgentMachine::kDriverFirst);
    CHECK(script.said() == Lines{"driver: node out: its agent was told to end (SIGTERM)"});
  }
}

TEST_CASE("a trial that does not save in time is ended by an agent that leaves") {
  LeavingScript script;
  script.pass(AgentMachine::kDriverFirst);
  script.said();
  script.pass(AgentMachine::kSaveGrace);
  CHECK(script.said() == Lines{"signal 15 to 101"});
  script.dies(101, SIGTERM);
  CHECK(script.said().back() ==
        "conclude 0: lost, rank 0, code 0, did not end within 30 s of being told to pause, killed");
}

TEST_CASE("a trial whose worker does not exist yet is lost when the agent leaves") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.machine.on_signal(script.now, "SIGTERM");
  script.said();
  script.pass(AgentMachine::kDriverFirst);
  CHECK(script.said() == Lines{"driver: node out: its agent was told to end (SIGTERM)"});
  script.spawned(1, 101);  // the zygote had been asked
  CHECK(script.said() == Lines{"signal 9 to 101"});
  script.dies(101, SIGKILL);
  CHECK(script.said().back() ==
        "conclude 0: lost, rank 0, code 0, its agent was told to end (SIGTERM)");
}

TEST_CASE("more signals change nothing for an agent that is told to end") {
  LeavingScript script;
  script.pass(AgentMachine::kDriverFirst - 1ms);
  script.machine.on_signal(script.now, "SIGHUP");
  script.pass(1ms);
  CHECK(script.said() ==
        Lines{"driver: node out: its agent was told to end (SIGTERM)", "worker 1: stop"});
  script.machine.on_signal(script.now, "SIGTERM");
  script.pass(AgentMachine::kDriverFirst);
  CHECK(script.said().empty());
}
