// When the agent tells the driver what, and when it may end.
#include <csignal>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("without a driver everything ends soon") {
  MachineScript script;
  script.set_up();
  script.run(0);
  script.launch(1);
  script.said();
  script.machine.on_driver_gone(script.now);
  CHECK(script.said() == Lines{"end zygote", "signal 15 to 101"});
  script.pass(AgentMachine::kAbandonedGrace);
  CHECK(script.said() == Lines{"signal 9 to 101"});
  script.dies(101, SIGKILL);
  CHECK_FALSE(script.machine.is_over());
  script.machine.on_zygote_died(script.now, "exited with code 0");
  for (const std::uint32_t trial : {0u, 1u}) script.conclude(trial);
  script.pass({});
  CHECK(script.machine.is_over());
}

TEST_CASE("shutdown ends the zygote and then the agent") {
  MachineScript script;
  script.set_up();
  script.machine.on_backlog(script.now, 1000);
  script.machine.on_command(script.now, Shutdown{});
  CHECK(script.said() == Lines{"end zygote"});
  CHECK_FALSE(script.machine.is_over());
  script.machine.on_zygote_died(script.now, "exited with code 0");
  CHECK(script.said().empty());
  script.pass(1s);
  CHECK_FALSE(script.machine.is_over());  // the driver may not know all yet
  SUBCASE("when the driver knows all") {
    script.machine.on_backlog(script.now, 0);
  }
  SUBCASE("when the driver is gone") {
    script.machine.on_driver_gone(script.now);
  }
  SUBCASE("or has had its time to say so") {
    CHECK(script.machine.next_deadline() == script.now + AgentMachine::kFarewell);
    script.pass(AgentMachine::kFarewell);
  }
  CHECK(script.machine.is_over());
}

TEST_CASE("the agent does not end before an attempt that is over was told of") {
  MachineScript script;
  script.set_up();
  script.run();
  script.machine.on_command(script.now, Shutdown{});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  script.dies(101, SIGTERM);
  CHECK(script.said().back().starts_with("conclude 0: lost"));
  script.pass(1h);
  script.machine.on_backlog(script.now, 0);
  CHECK_FALSE(script.machine.is_over());
  script.conclude(0);
  script.pass(1s);
  CHECK_FALSE(script.machine.is_over());  // it is not on its way
  CHECK(script.said() == Lines{"driver: ended: "});
  script.machine.on_backlog(script.now, 100);
  CHECK_FALSE(script.machine.is_over());  // nor there
  script.machine.on_backlog(script.now, 0);
  CHECK(script.machine.is_over());
}

TEST_CASE("an attempt is not over while its checkpoint is being given its name") {
  MachineScript script;
  script.set_up();
  script.run();
  script.machine.on_worker(script.now, 1, RankSaved{3, 1s, {}});
  script.end(1, Outcome::kPaused);
  script.exits(101);
  CHECK(script.said() == Lines{"promote 3", "forget 1"});
  SUBCASE("which is done") {
    script.machine.on_promoted(script.now, {{0}, {1}, 3, 1s, {}}, {});
    CHECK(script.said() == Lines{"driver: saved 3", "conclude 0: paused, rank 0, code 0, "});
  }
  SUBCASE("which fails") {
    script.machine.on_promoted(script.now, {{0}, {1}, 3, 1s, {}}, "renaming: no space left");
    CHECK(script.said() ==
          Lines{"conclude 0: exception, rank 0, code 0, save: renaming: no space left"});
  }
}

TEST_CASE("what nobody waits for goes to the driver with what somebody waits for") {
  MachineScript script;
  script.set_up();
  script.run();
  CHECK(script.machine.is_due_to_send(script.now));  // heartbeats
  script.report(1, 1);
  CHECK_FALSE(script.machine.is_due_to_send(script.now));
  CHECK(script.machine.next_deadline() == script.now + AgentActions::kLinger);
  SUBCASE("or a moment later") {
    script.pass(AgentActions::kLinger);
  }
  SUBCASE("at once") {
    script.report(1, 2, true);
  }
  CHECK(script.machine.is_due_to_send(script.now));
}
