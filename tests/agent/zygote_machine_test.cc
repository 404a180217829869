// Attempts whose zygote fails.
#include <csignal>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("a zygote that dies costs no running trial and is asked again for the others") {
  MachineScript script;
  script.set_up();
  script.run(0);
  script.launch(1);
  CHECK(script.said() == Lines{"spawn 2"});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"start zygote"});
  script.machine.on_zygote(script.now, ZygoteReady{});
  CHECK(script.said() == Lines{"spawn 2"});
  script.spawned(2, 102);
  CHECK(script.said() == Lines{"driver: started 102", "worker 2: start"});
  CHECK(script.machine.live().size() == 2);
}

TEST_CASE("a zygote that stands still is ended, and its workers are asked of the next") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.launch(1);
  CHECK(script.said() == Lines{"spawn 1", "spawn 2"});
  script.watch_for(15s);
  script.spawned(1, 101);
  script.said();
  script.watch_for(19s);  // of the next one's time
  CHECK(script.said().empty());
  script.watch_for(2s);
  CHECK(
      script.said() ==
      Lines{
          "driver: warning the process that starts workers has not answered for 20 s: it is ended",
          "end zygote"});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"start zygote"});
  script.machine.on_zygote(script.now, ZygoteReady{});
  CHECK(script.said() == Lines{"spawn 2"});
  script.spawned(2, 102);
  script.said();
  script.watch_for(60s);  // it owes nothing
  CHECK(script.said().empty());
}

TEST_CASE("a trial whose worker is owed by a zygote that stands still can be ended") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.said();
  script.machine.on_command(script.now, KillAttempt{{0}, {1}});
  script.watch_for(20s);
  const auto said = script.said();
  CHECK(std::ranges::count(said, "end zygote") == 1);
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  CHECK(std::ranges::any_of(script.said(),
                            [](const auto& line) { return line.starts_with("conclude 0: "); }));
}

TEST_CASE("a node that can start no more workers says so, and what runs there goes on") {
  MachineScript script;
  script.set_up();
  script.run(0);
  script.launch(1);
  script.said();
  std::string why =
      "the process that starts workers failed 8 times in a row; at last it died: "
      "killed by signal 11";
  Lines last;
  for (int death = 0; death < ZygoteSupervisor::kMaxFailures; ++death) {
    script.watch_for(ZygoteSupervisor::kLongestPause);  // by then there is another
    script.said();
    script.machine.on_zygote_died(script.now, "killed by signal 11");
    last = script.said();
  }
  CHECK(last ==
        Lines{"driver: node out: " + why, "forget 2",
              "conclude 1: lost, rank 0, code 0, this node starts no more workers: " + why});
  script.conclude(1);
  script.said();
  CHECK(script.machine.live().size() == 1);  // the one that runs goes on
  script.launch(2);
  CHECK(script.said() ==
        Lines{"forget 3",
              "conclude 2: lost, rank 0, code 0, this node starts no more workers: " + why});
  script.report(1, 1);
  CHECK(script.said() == Lines{"driver: report 1"});
}

TEST_CASE("a plugin that cannot be loaded is told and not tried again") {
  MachineScript script;
  script.machine.on_command(script.now, SetupExperiment{});
  script.machine.on_zygote(script.now, ZygoteReady{"no such file", {}, {}});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"driver: not ready: no such file", "end zygote"});
}

TEST_CASE("a worker that cannot be forked is asked for again, its trial is not to blame") {
  MachineScript script;
  script.set_up();
  script.launch(0, 2);
  script.spawned(1, 101);
  script.said();
  const auto refuse = [&] {
    script.machine.on_zygote(script.now, Spawned{2, 0, "fork: Cannot allocate memory"});
  };
  refuse();
  CHECK(script.said().empty());
  script.pass({});
  CHECK(script.said() == Lines{"spawn 2"});
  refuse();
  CHECK(script.said() == Lines{"driver: warning the process that starts workers could not fork: "
                               "fork: Cannot allocate memory; tried again in 1 s (2 of 8 times)"});
  script.launch(1);  // nothing is asked for meanwhile
  script.pass(999ms);
  CHECK(script.said().empty());
  script.pass(1ms);
  CHECK(script.said() == Lines{"spawn 2", "spawn 3"});
  script.spawned(2, 102);
  CHECK(script.said() == Lines{"driver: started 101", "worker 1: start", "worker 2: start"});
}

TEST_CASE("an attempt whose worker cannot be forked can be ended meanwhile") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.machine.on_zygote(script.now, Spawned{1, 0, "fork: Cannot allocate memory"});
  script.said();
  script.machine.on_command(script.now, KillAttempt{{0}, {1}});
  CHECK(script.said() ==
        Lines{"forget 1", "conclude 0: lost, rank 0, code 0, killed on the driver's order"});
  script.watch_for(60s);
  CHECK(script.said().empty());
}
