// A node's zygote: what is tried again, when, and when the node is out.
#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

struct SupervisorScript {
  WatchedTime watch;
  AgentActions actions;
  ZygoteSupervisor zygote;
  AgentTime now{};

  explicit SupervisorScript(bool can_restart = true)
      : zygote({.can_restart = can_restart, .loads = "libcurve.so"}, watch, actions) {
    zygote.start(now);
    zygote.on_started(now, 77);
    said();
  }
  std::vector<std::string> said() {
    std::vector<AgentAction> taken;
    actions.take(taken);
    std::vector<std::string> lines;
    for (const AgentAction& action : taken) lines.push_back(show(action));
    return lines;
  }
  void pass(AgentTime time) {
    now += time;
    watch.turn(now);
    zygote.on_time(now);
  }
  // Awake at every deadline, until then.
  void watch_for(AgentTime time) {
    const AgentTime end = now + time;
    while (now < end) {
      const auto deadline = zygote.deadline();
      pass(deadline && *deadline < end ? *deadline - now : end - now);
    }
  }
  void load() {
    zygote.on_ready(now, ZygoteReady{});
    said();
  }
  void request(WorkerId worker) { zygote.request(now, {worker, "Curve", false, std::nullopt}); }
};

}  // namespace

TEST_CASE("pauses between tries double up to the longest") {
  // At once, then 1, 2, 4, 8, 16 and 30 s: a node is given up after a minute without a worker.
  const AgentTime pauses[] = {0s, 1s, 2s, 4s, 8s, 16s, 30s, 30s};
  for (int i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(ZygoteSupervisor::pause_before(i + 2) == pauses[i]);
  }
}

TEST_CASE("a zygote that cannot be started again is tried until it can") {
  SupervisorScript script;
  script.load();
  script.request(1);
  CHECK(script.said() == Lines{"spawn 1"});
  script.zygote.on_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"start zygote"});  // at once
  script.zygote.on_not_started(script.now, "fork: no memory");
  CHECK(script.said() == Lines{"driver: warning the process that starts workers could not be "
                               "started: fork: no memory; tried again in 1 s (2 of 8 times)"});
  CHECK(script.zygote.deadline() == script.now + 1s);
  script.pass(999ms);
  CHECK(script.said().empty());
  script.pass(1ms);
  CHECK(script.said() == Lines{"start zygote"});
  // The library is on a file system that is away.
  script.zygote.on_ready(script.now, ZygoteReady{"loading the plugin: stale file handle", {}, {}});
  CHECK(script.said() == Lines{"end zygote"});
  script.zygote.on_died(script.now, "killed by signal 9");
  CHECK(script.said() ==
        Lines{"driver: warning the process that starts workers failed: loading the plugin: stale "
              "file handle; tried again in 2 s (3 of 8 times)"});
  script.pass(2s);
  CHECK(script.said() == Lines{"start zygote"});
  script.zygote.on_ready(script.now, ZygoteReady{});
  CHECK(script.said() == Lines{"spawn 1"});
  CHECK(script.zygote.given_up().empty());
  SUBCASE("and a worker makes all of it forgotten") {
    CHECK(script.zygote.on_spawned(script.now, Spawned{1, 101, {}}));
    script.zygote.on_died(script.now, "killed by signal 9");
    CHECK(script.said() == Lines{"start zygote"});
  }
  SUBCASE("but not that it could load") {
    script.zygote.on_died(script.now, "killed by signal 9");
    script.said();
    CHECK(script.zygote.deadline() == script.now + 4s);
  }
}

TEST_CASE("a node whose zygote fails again and again is out") {
  SupervisorScript script;
  script.load();
  AgentTime first = script.now;
  for (int i = 1; i < ZygoteSupervisor::kMaxFailures; ++i) {
    script.zygote.on_died(script.now, "killed by signal 11");
    script.watch_for(ZygoteSupervisor::pause_before(i + 1));
    CHECK(script.said().back() == "start zygote");
  }
  CHECK(script.now - first == 61s);
  script.zygote.on_died(script.now, "killed by signal 11");
  CHECK(script.said() == Lines{"driver: node out: the process that starts workers failed 8 times "
                               "in a row; at last it died: killed by signal 11"});
  CHECK(script.zygote.is_gone());
  CHECK_FALSE(script.zygote.deadline());
}

TEST_CASE("a zygote that loads without end is ended and tried again, as one that dies") {
  SupervisorScript script;
  script.load();
  script.zygote.on_died(script.now, "killed by signal 9");
  script.said();
  for (int i = 2; i <= ZygoteSupervisor::kMaxFailures; ++i) {  // the death was the first
    CAPTURE(i);
    script.watch_for(ZygoteSupervisor::kLoadLimit - 1s);
    CHECK(script.said().back() ==
          "driver: warning loading libcurve.so for 590 s "
          "(its process waits for the file of its output)");
    script.zygote.on_started(script.now, 78);
    script.watch_for(1s);
    CHECK(script.said() ==
          Lines{"driver: warning loading libcurve.so for 600 s (pid 78)", "end zygote"});
    script.zygote.on_died(script.now, "killed by signal 9");
    if (i == ZygoteSupervisor::kMaxFailures) break;
    script.watch_for(ZygoteSupervisor::pause_before(i + 1));
    CHECK(script.said().back() == "start zygote");
  }
  CHECK(script.said() == Lines{"driver: node out: the process that starts workers failed 8 times "
                               "in a row; at last it loads libcurve.so for longer than 600 s"});
  CHECK(script.zygote.is_gone());
}

TEST_CASE("a load is not ended because the machine slept") {
  SupervisorScript script;
  script.pass(1h);
  CHECK(script.said() == Lines{"driver: warning loading libcurve.so for 3600 s (pid 77)"});
  script.watch_for(ZygoteSupervisor::kLoadLimit - 11s);
  script.said();
  script.load();
  script.watch_for(1h);
  CHECK(script.said().empty());
}

TEST_CASE("a zygote that does not die when it is killed puts the node out") {
  SupervisorScript script;
  script.load();
  script.zygote.on_died(script.now, "killed by signal 9");
  script.watch_for(ZygoteSupervisor::kLoadLimit);
  CHECK(script.said().back() == "end zygote");
  SUBCASE("for good") {
    script.pass(1h);  // asleep, for all but a second
    script.watch_for(ZygoteSupervisor::kDeathLimit - 2s);
    CHECK(script.said().empty());
    script.watch_for(1s);
    CHECK(
        script.said() ==
        Lines{"driver: node out: the process that starts workers failed 2 times in a row; at last "
              "it loads libcurve.so for longer than 600 s, and did not die when it was killed"});
    CHECK_FALSE(script.zygote.is_gone());
    CHECK_FALSE(script.zygote.deadline());
    script.zygote.on_died(script.now, "killed by signal 9");
    CHECK(script.zygote.is_gone());
  }
  SUBCASE("but not one that is wanted no more") {
    script.zygote.end();
    script.said();
    CHECK_FALSE(script.zygote.deadline());
  }
  script.watch_for(1h);
  CHECK(script.said().empty());
}

TEST_CASE("trainables that could never be loaded are a mistake of the input") {
  SupervisorScript script;
  SUBCASE("told by the loader: not tried again") {
    script.zygote.on_ready(script.now, ZygoteReady{"no such file", {}, {}});
    CHECK(script.said() == Lines{"driver: not ready: no such file", "end zygote"});
    script.zygote.on_died(script.now, "killed by signal 9");
    CHECK(script.said().empty());
    CHECK(script.zygote.given_up() == "no such file");
  }
  SUBCASE("by a death: tried three times") {
    script.zygote.on_died(script.now, "killed by signal 11");
    CHECK(script.said() == Lines{"start zygote"});
    script.zygote.on_died(script.now, "killed by signal 11");
    script.watch_for(1s);
    CHECK(script.said().back() == "start zygote");
    script.zygote.on_died(script.now, "killed by signal 11");
    CHECK(script.said() == Lines{"driver: not ready: the process that loads the trainables failed "
                                 "3 times in a row; at last it died: killed by signal 11"});
  }
}

TEST_CASE("a zygote that can be started only once is not tried again") {
  SupervisorScript script(false);
  script.load();
  script.zygote.on_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"driver: node out: the process that starts workers died: killed by "
                               "signal 9"});
}

TEST_CASE("a library that takes long to load is named to those that wait") {
  SupervisorScript script;
  script.watch_for(9s);
  CHECK(script.said().empty());
  script.watch_for(1s);
  CHECK(script.said() == Lines{"driver: warning loading libcurve.so for 10 s (pid 77)"});
  script.watch_for(10s);
  CHECK(script.said() == Lines{"driver: warning loading libcurve.so for 20 s (pid 77)"});
  script.load();
  script.watch_for(1h);
  CHECK(script.said().empty());
}

TEST_CASE("a zygote that is told to end while there is none is gone") {
  SupervisorScript script;
  script.load();
  SUBCASE("it lives") {
    script.zygote.end();
    CHECK(script.said() == Lines{"end zygote"});
    CHECK_FALSE(script.zygote.is_gone());
    script.zygote.on_died(script.now, "killed by signal 9");
  }
  SUBCASE("it is to be tried again later") {
    script.zygote.on_died(script.now, "killed by signal 9");
    script.zygote.on_not_started(script.now, "fork: no memory");
    script.said();
    script.zygote.end();
  }
  CHECK(script.said().empty());
  CHECK(script.zygote.is_gone());
  script.watch_for(1h);
  CHECK(script.said().empty());
}
