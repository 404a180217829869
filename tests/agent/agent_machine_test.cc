#include <csignal>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("a trial from launch to end") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  CHECK(script.said() == Lines{"spawn 1"});
  script.spawned(1, 101);
  CHECK(script.said() == Lines{"driver: started 101", "worker 1: start"});
  CHECK(script.machine.worker_of(101) == 1);
  script.report(1, 1, true);
  CHECK(script.said() == Lines{"driver: report 1"});
  script.machine.on_command(script.now, Continue{{0}, {1}, {"training_iteration", 2}});
  CHECK(script.said() == Lines{"worker 1: continue"});
  script.report(1, 2);
  script.machine.on_worker(script.now, 1, RankSaved{2, 5s, 20.0});
  CHECK(script.said() == Lines{"driver: report 2", "promote 2"});
  script.machine.on_promoted(script.now, {{0}, {1}, 2, 5s, 20.0}, {});
  script.end(1, Outcome::kCompleted);
  CHECK(script.said() == Lines{"driver: saved 2"});
  script.exits(101);
  CHECK(script.said() == Lines{"forget 1", "conclude 0: completed, rank 0, code 0, "});
  script.conclude(0);
  CHECK(script.machine.live().empty());
}

TEST_CASE("a worker with short steps is left unread for a moment, unless it is of a group") {
  MachineScript script;
  script.set_up();
  script.run();
  script.report(1, 1, false, 1ms);
  CHECK(script.said() == Lines{"rest 1", "driver: report 1"});
  script.report(1, 2, false, 1s);
  CHECK(script.said() == Lines{"driver: report 2"});
  // The verdict's milestone is near: the report that reaches it waits, and is read at once.
  script.machine.on_command(script.now, Continue{{0}, {1}, {"training_iteration", 5}});
  script.said();
  script.report(1, 3, false, 1ms);
  CHECK(script.said() == Lines{"driver: report 3"});

  MachineScript group;
  group.set_up();
  group.run(0, 2);
  group.report(1, 1, false, 1ms);
  CHECK(group.said() == Lines{"driver: report 1"});
}

TEST_CASE("launches wait until the zygote is ready, its readiness is told once") {
  MachineScript script;
  SetupExperiment setup;
  script.machine.on_command(script.now, setup);
  script.launch(0);
  script.launch(1);
  CHECK(script.said().empty());
  script.machine.on_zygote(script.now, ZygoteReady{});
  CHECK(script.said() == Lines{"driver: ready", "spawn 1", "spawn 2"});
  script.machine.on_zygote_died(script.now, "killed by signal 9");
  CHECK(script.said() == Lines{"start zygote"});
  script.machine.on_zygote(script.now, ZygoteReady{});
  CHECK(script.said() == Lines{"spawn 1", "spawn 2"});
}

TEST_CASE("how a rank ends without a last word is its trial's error") {
  MachineScript script;
  script.set_up();
  script.run();
  SUBCASE("by a signal") {
    script.dies(101, SIGSEGV);
    CHECK(script.said() ==
          Lines{"forget 1", "conclude 0: signal, rank 0, code 11, killed by signal 11"});
  }
  SUBCASE("by an exit") {
    script.exits(101, 3);
    CHECK(script.said() == Lines{"forget 1",
                                 "conclude 0: exit, rank 0, code 3, exited with code "
                                 "3 before its trial was over"});
  }
  SUBCASE("even with code 0") {
    script.exits(101, 0);
    CHECK(script.said().back() ==
          "conclude 0: exit, rank 0, code 0, exited with code 0 before its trial was over");
  }
  SUBCASE("killed from outside") {
    script.dies(101, SIGKILL);
    CHECK(script.said().back().find("killed by signal 9, as the kernel does") != std::string::npos);
  }
  SUBCASE("by the kernel, for what it needed") {
    script.dies(101, SIGKILL, "needed more than its memory of 8 GiB");
    CHECK(script.said().back() ==
          "conclude 0: signal, rank 0, code 9, needed more than its memory of 8 GiB (killed by "
          "signal 9)");
  }
}

TEST_CASE("an exception a worker tells of is the cause, whatever its exit code") {
  MachineScript script;
  script.set_up();
  script.run();
  script.end(1, Outcome::kException, "step: no luck");
  CHECK(script.said().empty());
  script.exits(101, 1);
  CHECK(script.said().back() == "conclude 0: exception, rank 0, code 1, step: no luck");
}

TEST_CASE("a failure that a worker tells of is put down to the memory that its trial needed") {
  MachineScript script;
  script.set_up();
  script.run();
  script.end(1, Outcome::kException, "the program was killed by signal 9");
  script.dies(101, SIGTERM, "needed more than its memory of 8 GiB");
  CHECK(script.said().back() ==
        "conclude 0: exception, rank 0, code 1, needed more than its memory of 8 GiB (the program "
        "was killed by signal 9)");
}

TEST_CASE("a worker that throws but does not end is ended") {
  MachineScript script;
  script.set_up();
  script.run();
  script.end(1, Outcome::kException, "step: no luck");
  script.pass(Attempt::kExitGrace);
  CHECK(script.said() == Lines{"signal 15 to 101"});
  script.pass(Attempt::kTermGrace);
  CHECK(script.said() == Lines{"signal 9 to 101"});
  script.dies(101, SIGKILL);
  CHECK(script.said().back() == "conclude 0: exception, rank 0, code 1, step: no luck");
}

TEST_CASE("a group starts when all its ranks exist and is told of as one") {
  MachineScript script;
  script.set_up();
  script.launch(0, 2);
  CHECK(script.said() == Lines{"spawn 2", "spawn 1 with rendezvous"});
  script.spawned(2, 102);
  CHECK(script.said().empty());
  script.spawned(1, 101);
  CHECK(script.said() == Lines{"driver: started 101", "worker 1: start", "worker 2: start"});
  script.word(1, GroupAction::kStep);
  CHECK(script.said() == Lines{"worker 2: group step"});
  script.machine.on_worker(script.now, 2, RankSaved{1, 9s, {}});
  CHECK(script.said().empty());
  script.machine.on_worker(script.now, 1, RankSaved{1, 5s, {}});
  const auto promoted = script.wanted<PromoteCheckpoint>();
  REQUIRE(promoted.size() == 1);
  CHECK(promoted[0].saved.time_total == 5s);  // rank 0's
  script.machine.on_promoted(script.now, promoted[0].saved, {});
  script.word(1, GroupAction::kEnd);
  script.said();
  script.end(2, Outcome::kCompleted);
  script.exits(102);
  script.end(1, Outcome::kStopped);
  CHECK(script.said() == Lines{"forget 2"});
  script.exits(101);
  CHECK(script.said() == Lines{"forget 1", "conclude 0: stopped, rank 0, code 0, "});
}

TEST_CASE("a rank that dies ends the others, by force if need be") {
  MachineScript script;
  script.set_up();
  script.run(0, 3);
  script.dies(102, SIGBUS);
  CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 103", "forget 2"});
  script.dies(103, SIGTERM);
  CHECK(script.said() == Lines{"forget 3"});
  CHECK(script.machine.next_deadline() == Attempt::kGroupGrace);
  script.pass(Attempt::kGroupGrace);
  CHECK(script.said() == Lines{"signal 9 to 101"});
  script.dies(101, SIGKILL);
  CHECK(script.said() ==
        Lines{"forget 1", "conclude 0: signal, rank 1, code 7, killed by signal 7"});
}

TEST_CASE("an exception that only echoes another rank's death is not the cause") {
  MachineScript script;
  script.set_up();
  script.run(0, 2);
  script.end(1, Outcome::kException, "step: connection closed by peer");
  CHECK(script.said().empty());
  SUBCASE("the death is noticed a moment later") {
    script.now += Attempt::kSettle / 2;
    script.dies(102, SIGKILL);
    script.exits(101, 1);
    CHECK(script.said().back().find("conclude 0: signal, rank 1, code 9") == 0);
  }
  SUBCASE("nobody died: the others are ended") {
    script.pass(Attempt::kSettle);
    CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 102"});
    script.dies(102, SIGTERM);
    script.exits(101, 1);
    CHECK(script.said().back() ==
          "conclude 0: exception, rank 0, code 1, step: connection closed by peer");
  }
  SUBCASE("another exception comes second") {
    script.end(2, Outcome::kException, "step: connection reset");
    script.exits(102, 1);
    script.exits(101, 1);
    CHECK(script.said().back() ==
          "conclude 0: exception, rank 0, code 1, step: connection closed by peer");
  }
}

TEST_CASE("a group that is paused before all ranks saved is lost") {
  MachineScript script;
  script.set_up();
  script.run(0, 2);
  script.machine.on_worker(script.now, 1, RankSaved{3, 1s, {}});
  script.word(3, GroupAction::kEnd);
  script.end(1, Outcome::kPaused);
  script.end(2, Outcome::kCompleted);
  script.exits(101);
  script.exits(102);
  CHECK(script.said().back() ==
        "conclude 0: lost, rank 0, code 0, only 1 of 2 ranks saved before they ended");
}

TEST_CASE("a rank that does not end with the others is killed and blamed") {
  for (const Duration limit : {Duration::zero(), Duration(3s)}) {
    MachineScript script;
    script.set_up(limit);
    script.run(0, 3);
    script.report(1, 1);
    script.word(1, GroupAction::kEnd);
    script.end(1, Outcome::kCompleted);
    script.end(3, Outcome::kCompleted);
    script.exits(101);
    script.said();
    const AgentTime patience = limit > Duration::zero() ? 3s : Attempt::kExitGrace;
    script.watch_for(patience - 1ms);
    CHECK(script.said().empty());
    script.watch_for(1ms);
    CHECK(script.said() == Lines{"signal 9 to 102", "signal 9 to 103"});
    script.exits(103);
    script.dies(102, SIGKILL);
    CHECK(script.said().back().starts_with("conclude 0: hung, rank 1, code 0, did not end within"));
  }
}

TEST_CASE("of a group without a sign of life the rank that others are ahead of is blamed") {
  MachineScript script;
  script.set_up(30s);
  script.run(0, 2);
  script.begin(2);
  script.report(1, 1);
  script.word(1, GroupAction::kSave);
  script.saved(1, 1);
  script.watch_for(1s);
  script.report(1, 2);
  script.watch_for(30s);
  script.dies(101, SIGKILL);
  script.dies(102, SIGKILL);
  CHECK(script.said().back().starts_with("conclude 0: hung, rank 1, code 0, no report for 30 s"));
}

TEST_CASE("a trial without a sign of life is killed") {
  MachineScript script;
  script.set_up(30s);
  script.run();
  SUBCASE("in setup") {
    script.watch_for(29s);
    CHECK(script.said().empty());
    script.watch_for(1s);
    CHECK(script.said() == Lines{"signal 9 to 101"});
    script.dies(101, SIGKILL);
    CHECK(script.said().back() ==
          "conclude 0: hung, rank 0, code 0, no report for 30 s (hang_timeout_s), killed");
  }
  SUBCASE("counted from its last report") {
    script.watch_for(29s);
    script.report(1, 1);
    script.said();
    script.watch_for(29s);
    CHECK(script.said().empty());
    script.watch_for(1s);
    CHECK(script.said() == Lines{"signal 9 to 101"});
  }
  SUBCASE("but not while it waits for a verdict") {
    script.report(1, 1, true);
    script.said();
    script.watch_for(1000s);
    CHECK(script.said().empty());
    CHECK_FALSE(script.machine.next_deadline());
    script.machine.on_command(script.now, Continue{{0}, {1}, {}});
    script.said();
    script.watch_for(30s);
    CHECK(script.said() == Lines{"signal 9 to 101"});
  }
  SUBCASE("nor while the agent does not listen") {
    script.machine.on_backlog(script.now, AgentMachine::kCreditBytes + 1);
    script.watch_for(1000s);
    script.machine.on_backlog(script.now, 0);
    script.watch_for(29s);
    CHECK(script.said().empty());
    script.watch_for(1s);
    CHECK(script.said() == Lines{"signal 9 to 101"});
  }
}

// The worker's words are still to be read: by plain time it was killed before that.
TEST_CASE("the time for which the agent itself stood still is not silence of a trial") {
  MachineScript script;
  script.set_up(30s);
  script.run();
  script.pass(1h);
  CHECK(script.said().empty());
  script.report(1, 1);
  script.said();
  script.watch_for(30s - 1ms);
  CHECK(script.said().empty());
  script.watch_for(1ms);
  CHECK(script.said() == Lines{"signal 9 to 101"});
}

TEST_CASE("a rank that hangs while it saves is noticed though rank 0 waits for a verdict") {
  MachineScript script;
  script.set_up(30s);
  script.run(0, 2);
  script.machine.on_worker(script.now, 1, RankSaved{1, 1s, {}});
  script.report(1, 2, true);  // held until rank 1 has saved, too: nobody can judge it
  CHECK(script.said().empty());
  script.watch_for(29s);
  CHECK(script.said().empty());
  script.watch_for(1s);
  CHECK(script.said() == Lines{"signal 9 to 101", "signal 9 to 102"});
}

TEST_CASE("a checkpoint that rank 0 writes beside its training holds up no report") {
  MachineScript script;
  script.set_up(30s, 10s, 10s);
  script.run(0, 2);
  const auto done = [&](WorkerId worker) {
    script.machine.on_worker(script.now, worker, PhaseDone{});
  };
  done(1);
  done(2);
  script.word(1, GroupAction::kStep);
  done(2);
  script.report(1, 1);
  script.word(1, GroupAction::kSave);
  script.machine.on_worker(script.now, 2, RankSaved{1, 1s, {}});
  script.said();
  script.machine.on_worker(script.now, 1, RankCopied{1});
  CHECK(script.said() == Lines{"driver: saved here 1"});  // the result of 1 is to be kept
  script.word(2, GroupAction::kStep);
  script.said();
  done(2);
  script.report(1, 2);
  CHECK(script.said() == Lines{"driver: report 2"});
  script.word(3, GroupAction::kStep);
  script.said();
  script.machine.on_worker(script.now, 1, RankSaved{1, 1s, {}});
  CHECK(script.said() == Lines{"promote 1"});
  script.machine.on_promoted(script.now, {{0}, {1}, 1, 1s, {}}, {});
  CHECK(script.said() == Lines{"driver: saved 1"});
  // The word is not the end of rank 0's step 3, for which rank 1 would be awaited then.
  script.watch_for(29s);
  CHECK(script.said().empty());
}

TEST_CASE("a copy of another rank than 0 is refused") {
  MachineScript script;
  script.set_up();
  script.run(0, 2);
  script.machine.on_worker(script.now, 2, RankCopied{1});
  CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 102"});
}

// The worker waits for a verdict on its report, and the driver is told of that when the checkpoint
// before it has its name: a disk that stood still got healthy trials ended as hung.
TEST_CASE("a report that waits for a slow disk is not a silence of its worker") {
  MachineScript script;
  script.set_up(30s);
  script.run();
  script.saved(1, 1);
  CHECK(script.said() == Lines{"promote 1"});
  script.report(1, 2, true);
  script.watch_for(1h);
  CHECK(script.said().empty());
  script.machine.on_promoted(script.now, {{0}, {1}, 1, 1s, {}}, {});
  CHECK(script.said() == Lines{"driver: saved 1", "driver: report 2"});
  script.watch_for(1h);  // for the verdict
  CHECK(script.said().empty());
  script.machine.on_command(script.now, Continue{{0}, {1}, {}});
  CHECK(script.said() == Lines{"worker 1: continue"});
  script.watch_for(30s - 1ms);
  CHECK(script.said().empty());
  script.watch_for(1ms);
  CHECK(script.said() == Lines{"signal 9 to 101"});
}

TEST_CASE("no worker is blamed for its silence while none is heard for a slow disk") {
  MachineScript script;
  script.set_up(30s);
  script.run();
  script.watch_for(20s);
  script.machine.on_disk(script.now, false);
  script.watch_for(1h);
  script.machine.on_disk(script.now, true);
  script.watch_for(30s - 1ms);
  CHECK(script.said().empty());
  script.watch_for(1ms);
  CHECK(script.said() == Lines{"signal 9 to 101"});
}

TEST_CASE("a stop is passed on, and enforced when its grace is over") {
  MachineScript script;
  script.set_up();
  script.run();
  const auto stop = [&](StopKind kind, Duration grace) {
    script.machine.on_command(script.now, StopAttempt{{0}, {1}, kind, grace});
  };
  SUBCASE("in time") {
    stop(StopKind::kStop, 10s);
    CHECK(script.said() == Lines{"worker 1: stop"});
    script.pass(9s);
    script.end(1, Outcome::kStopped);
    script.exits(101);
    CHECK(script.said().back() == "conclude 0: stopped, rank 0, code 0, ");
  }
  SUBCASE("a stop without a limit waits") {
    stop(StopKind::kStop, {});
    CHECK_FALSE(script.machine.next_deadline());
  }
  SUBCASE("too late to stop") {
    stop(StopKind::kStop, 10s);
    script.said();
    script.pass(10s);
    CHECK(script.said() == Lines{"signal 15 to 101"});
    script.dies(101, SIGTERM);
    CHECK(script.said().back() ==
          "conclude 0: stopped, rank 0, code 0, did not end within 10 s of "
          "being told to stop, killed");
  }
  SUBCASE("too late to stop, in the middle of a save") {
    stop(StopKind::kStop, 10s);
    script.pass(10s);
    script.said();
    script.dies(101, SIGTERM);
    CHECK(script.wanted<ConcludeAttempt>().at(0).removes_half_written);
  }
  SUBCASE("too late to pause") {
    stop(StopKind::kPause, 10s);
    script.pass(10s);
    script.pass(5s);
    script.dies(101, SIGKILL);
    CHECK(script.said().back() ==
          "conclude 0: lost, rank 0, code 0, did not end within 10 s of "
          "being told to pause, killed");
  }
  SUBCASE("paused, but slow to exit") {
    stop(StopKind::kPause, 10s);
    script.end(1, Outcome::kPaused);
    script.pass(10s);
    script.dies(101, SIGTERM);
    CHECK(script.said().back() == "conclude 0: paused, rank 0, code 0, ");
  }
}

TEST_CASE("a stop that comes before the worker exists reaches it after its start") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.machine.on_command(script.now, StopAttempt{{0}, {1}, StopKind::kPause, {}});
  script.spawned(1, 101);
  CHECK(script.said() ==
        Lines{"spawn 1", "driver: started 101", "worker 1: start", "worker 1: stop"});
}

TEST_CASE("a killed attempt ends as lost, also one that is not there yet") {
  MachineScript script;
  script.set_up();
  SUBCASE("running") {
    script.run();
    script.machine.on_command(script.now, KillAttempt{{0}, {1}});
    CHECK(script.said() == Lines{"signal 15 to 101"});
    script.dies(101, SIGTERM);
    CHECK(script.said().back() == "conclude 0: lost, rank 0, code 0, killed on the driver's order");
  }
  SUBCASE("being forked") {
    script.launch(0);
    script.machine.on_command(script.now, KillAttempt{{0}, {1}});
    CHECK(script.said() == Lines{"spawn 1"});
    script.spawned(1, 101);
    CHECK(script.said() == Lines{"signal 9 to 101"});
    script.dies(101, SIGKILL);
    CHECK(script.said().back() == "conclude 0: lost, rank 0, code 0, killed on the driver's order");
  }
  SUBCASE("being forked by a zygote that dies") {
    script.launch(0);
    script.machine.on_command(script.now, KillAttempt{{0}, {1}});
    script.said();
    script.machine.on_zygote_died(script.now, "killed");
    CHECK(script.said() == Lines{"start zygote", "forget 1",
                                 "conclude 0: lost, rank 0, code 0, killed on the driver's order"});
  }
  SUBCASE("of another attempt: only that it does not run here") {
    script.run();
    script.machine.on_command(script.now, KillAttempt{{0}, {2}});
    CHECK(script.said() == Lines{"driver: ended: nothing of it runs here"});
  }
}

TEST_CASE("attempts that a new set-up does not name end") {
  MachineScript script;
  script.set_up();
  script.launch(0);
  script.launch(1);
  script.spawned(1, 101);
  script.spawned(2, 102);
  script.said();
  SetupExperiment again;
  again.keep = {attempt_key({1}, {1})};
  script.machine.on_command(script.now, again);
  CHECK(script.said() == Lines{"signal 15 to 101"});
  script.dies(101, SIGTERM);
  CHECK(script.said().back().find("conclude 0: lost") == 0);
  script.conclude(0);
  CHECK(script.machine.live().size() == 1);
}

TEST_CASE("a checkpoint that cannot take its place is a failed save") {
  MachineScript script;
  script.set_up();
  script.run();
  script.machine.on_worker(script.now, 1, RankSaved{4, 1s, {}});
  script.machine.on_promoted(script.now, {{0}, {1}, 4, 1s, {}}, "renaming: no space left");
  CHECK(script.said() == Lines{"promote 4", "signal 15 to 101"});
  script.dies(101, SIGTERM);
  CHECK(script.said().back() ==
        "conclude 0: exception, rank 0, code 0, save: renaming: no space left");
}

TEST_CASE("reports of another attempt or rank are nonsense and end the trial") {
  MachineScript script;
  script.set_up();
  script.run(0, 2);
  SUBCASE("of another rank") {
    script.report(2, 1);
  }
  SUBCASE("of another trial") {
    Reported report;
    report.trial = {5};
    report.attempt = {1};
    script.machine.on_worker(script.now, 1, report);
  }
  CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 102"});
}

TEST_CASE("workers are not read while the driver is too far behind") {
  MachineScript script;
  const std::size_t limit = AgentMachine::kCreditBytes;
  const auto reading_at = [&](std::size_t bytes) {
    script.machine.on_backlog(script.now, bytes);
    return script.machine.reading();
  };
  CHECK(reading_at(limit));
  CHECK_FALSE(reading_at(limit + 1));
  CHECK_FALSE(reading_at(limit / 2));  // not at once again
  CHECK(reading_at(limit / 2 - 1));
}

TEST_CASE("what does not fit changes nothing") {
  MachineScript script;
  script.set_up();
  script.run();
  script.launch(0);        // the same attempt again
  script.spawned(1, 555);  // answered before
  script.spawned(77, 556);
  script.report(99, 1);
  script.exits(12345);
  script.machine.on_command(script.now, Continue{{9}, {1}, {}});
  script.machine.on_command(script.now, StopAttempt{{0}, {2}, StopKind::kStop, 1s});
  CHECK(script.said().empty());
}
