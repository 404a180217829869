// An agent that is told to end by a signal: by itself, or together with its driver.
#include <csignal>

#include <doctest/doctest.h>

#include "agent/joined_script.h"

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
  script.conclude(7);
  script.save_and_end();
  CHECK(script.said() == Lines{"driver: ended: ", "promote 3", "driver: saved 3", "forget 1",
                               "conclude 0: paused, rank 0, code 0, "});
  script.conclude(0);
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
  script.pass(30s);
  CHECK(script.said() == Lines{"signal 15 to 101"});
  script.dies(101, SIGTERM);
  CHECK(script.said().back() ==
        "conclude 0: lost, rank 0, code 0, did not end within 30 s of being told to pause, killed");
}

TEST_CASE("trials have save_grace_s, or the time until a known end, when their node leaves") {
  struct Row {
    const char* name;
    Duration save_grace;
    Stay stay;
    AgentTime leaves_at;
    Duration grace;  // 0: any
  };
  const Stay long_stay{.until = 1h, .drain = 10min};
  const Row rows[] = {
      {"no end is known", 10min, {}, 1s, 10min},
      {"nor a limit", 0s, {}, 1s, 0s},
      {"its end is near: 600 s less 10", 30s, long_stay, 50min, 590s},
      {"its end is far, and it is drained", 30s, long_stay, 1s, 10min},
      {"the limit is longer than drain", 20min, long_stay, 1s, 20min},
      {"the limit is longer than what is left", 2h, long_stay, 50min, 590s},
      {"any time, but an end: 3599 s less 10", 0s, long_stay, 1s, 3589s},
      {"a short stay: half of what is left", 30s, {.until = 4s, .drain = 2s}, 2s, 1s},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    JoinedScript script(row.stay, true, false, row.save_grace);
    script.live(row.leaves_at);
    script.one().on_command(script.now, Drain{"alice drains it"});
    script.live(0s);
    const bool is_limited = row.grace > Duration::zero();
    CHECK(script.live(is_limited ? row.grace - 1ms : 24h).empty());
    if (is_limited) CHECK(script.live(1ms) == Lines{"signal 15 to 101"});
  }
}

TEST_CASE("what fails when the agent was told to end is not a failure of its trial") {
  for (const char* way : {"it throws", "it dies", "it threw a moment before", "it cannot save"}) {
    for (const bool has_left : {false, true}) {
      CAPTURE(way);
      CAPTURE(has_left);
      const std::string how = way;
      MachineScript script;
      script.set_up();
      script.run();
      if (how == "it threw a moment before") script.end(1, Outcome::kException, "step: no");
      script.machine.on_signal(script.now, "SIGTERM");
      if (has_left) script.pass(AgentMachine::kDriverFirst);
      if (how == "it throws") script.end(1, Outcome::kException, "the program was killed");
      if (how == "it cannot save") script.end(1, Outcome::kLost);
      how == "it dies" ? script.dies(101, SIGTERM) : script.exits(101);
      const auto ends = script.wanted<ConcludeAttempt>();
      REQUIRE(ends.size() == 1);
      CHECK(ends[0].ended.outcome == Outcome::kLost);
      CHECK(ends[0].ended.is_of_node);
    }
  }
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

TEST_CASE("a machine that is drained lets its trials save, says that it is gone, and ends") {
  JoinedScript script;
  script.one().on_command(script.now, Drain{"alice drains it"});
  CHECK(script.live(1ms) == Lines{"driver: node out: alice drains it", "worker 1: stop"});
  CHECK_FALSE(script.one().is_over());
  script.one().on_command(script.now, Drain{"again"});
  CHECK(script.live(1s).empty());
  CHECK(script.save_and_go() == Lines{"driver: node out: alice drains it"});  // gone
  script.one().on_backlog(script.now, 0);
  CHECK(script.one().is_over());
  CHECK(script.one().end_cause() == "alice drains it");
  CHECK_FALSE(script.one().joins_again());
}

TEST_CASE("a machine leaves so long before its allocation ends, and not earlier") {
  JoinedScript script({.until = 1h, .drain = 2min});
  CHECK(script.live(57min).empty());
  CHECK(script.one().next_deadline() == 58min);
  CHECK(script.live(1min) == Lines{"driver: node out: its time ends in 120 s", "worker 1: stop"});
}

TEST_CASE("a machine leaves when it had no trial for its idle time, and not while one runs") {
  JoinedScript script({.idle = 5min}, false);
  CHECK(script.live(1ms).empty());
  CHECK(script.one().next_deadline() == 1ms + 5min);
  CHECK(script.live(4min).empty());
  CHECK(script.live(1min) == Lines{"driver: node out: it had no trial for 300 s", "end zygote"});
  JoinedScript busy({.idle = 5min});
  CHECK(busy.live(1h).empty());
}

TEST_CASE("a machine that hears no driver keeps its trial for its patience, then saves and ends") {
  JoinedScript script;
  CHECK(script.live(29min, false).empty());
  CHECK(script.live(30min).empty());  // heard again
  CHECK(script.live(29min, false).empty());
  CHECK(script.live(1min, false) ==
        Lines{"driver: node out: no driver was heard for 1800 s", "worker 1: stop"});
  script.save_and_go();
  script.one().on_backlog(script.now, 4000);  // nobody acknowledges
  CHECK(script.one().is_over());
}

TEST_CASE("a machine that was given up is told to end what it runs, and joins anew") {
  JoinedScript script;
  script.one().on_command(script.now, Shutdown{"given up", true});
  CHECK(script.said_by() == Lines{"end zygote", "signal 15 to 101"});
  CHECK(script.one().joins_again());
  script.one().on_command(script.now, Shutdown{});  // the first cause counts
  CHECK(script.one().end_cause() == "given up");
}

TEST_CASE("a machine that cannot take part says why, and ends without a zygote") {
  MachineScript unused;
  AgentFacts facts = MachineScript::facts();
  facts.hello.joined = true;
  AgentMachine machine(std::move(facts));
  machine.on_connected({});
  machine.on_time(1s);
  machine.on_command(1s, SetupExperiment{});
  machine.on_unfit(1s, "it does not see the folder");
  machine.on_time(2s);
  std::vector<AgentAction> actions;
  machine.take_actions(actions);
  Lines lines;
  for (const AgentAction& action : actions) lines.push_back(show(action));
  CHECK(lines == Lines{"driver: hello", "driver: node out: it does not see the folder",
                       "driver: node out: it does not see the folder"});
  machine.on_sent();
  machine.on_backlog(2s, 0);
  CHECK(machine.is_over());
}

TEST_CASE("a machine that is told to leave does not join again, whatever ends it") {
  JoinedScript drained;
  drained.one().on_command(drained.now, Drain{"alice drains it"});
  drained.one().on_command(drained.now, Shutdown{"given up", true});
  CHECK_FALSE(drained.one().joins_again());
  CHECK(drained.one().end_cause() == "alice drains it");
  JoinedScript ended;
  ended.one().on_command(ended.now, Shutdown{});
  ended.one().on_other_driver(ended.now, 2);
  CHECK_FALSE(ended.one().joins_again());
}

TEST_CASE("a machine that is to end before it knows what to load starts no zygote") {
  AgentFacts facts = MachineScript::facts();
  facts.hello.joined = true;
  AgentMachine machine(std::move(facts));
  machine.on_connected({});
  machine.on_signal({}, "SIGTERM");
  machine.on_time(1s);
  machine.start(1s);
  std::vector<AgentAction> actions;
  machine.take_actions(actions);
  for (const AgentAction& action : actions) CHECK(show(action) != "start zygote");
  machine.on_time(2s);
  machine.on_sent();
  machine.on_backlog(2s, 0);
  CHECK(machine.is_over());
}
