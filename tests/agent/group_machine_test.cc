// Groups whose ranks do not keep pace: who is blamed, for what, and when.
#include <algorithm>
#include <csignal>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

constexpr Duration kLimit = 60s;
constexpr Duration kAlone = 600s;
// The promise: a rank that ends takes the others with it within five seconds.
static_assert(Attempt::kSettle < Attempt::kEchoSettle);
static_assert(Attempt::kEchoSettle + Attempt::kGroupGrace < 5s);

constexpr Duration kBound = kLimit + Attempt::kGroupPatience;
constexpr Duration kAloneBound = kAlone + Attempt::kGroupPatience;

// Three ranks, set up, in step 1.
MachineScript in_step_1(std::uint64_t restore_iteration = 0) {
  MachineScript script;
  script.set_up({}, kLimit, kAlone);
  script.run(0, 3, restore_iteration);
  if (restore_iteration == 0) script.begin(3);
  return script;
}

// Nothing for as long as it may take, then the end of all, with this rank and cause.
void check_ends(MachineScript& script, Duration after, std::uint32_t rank, const char* cause,
                const char* option = "group_timeout_s") {
  script.said();
  script.watch_for(after - 1ms);
  CHECK(script.said().empty());
  script.watch_for(1ms);
  CHECK(script.said() == Lines{"signal 9 to 101", "signal 9 to 102", "signal 9 to 103"});
  for (const std::uint32_t pid : {101, 102, 103}) script.dies(pid, SIGKILL);
  CHECK(script.said().back() == "conclude 0: hung, rank " + std::to_string(rank) + ", code 0, " +
                                    cause + " (" + option + "), killed");
}

void check_never_ends(MachineScript& script) {
  script.said();
  script.watch_for(1h);
  CHECK(script.said().empty());
}

}  // namespace

TEST_CASE("a rank that hangs in setup is named when another has finished it") {
  MachineScript script;
  script.set_up({}, kLimit, kAlone);
  script.run(0, 3);
  SUBCASE("not before") {
    check_never_ends(script);
  }
  SUBCASE("rank 2") {
    script.done(1);
    script.word(1, GroupAction::kStep);
    script.done(2);
    check_ends(script, kBound, 2, "did not finish setup within 60 s of another rank");
  }
  SUBCASE("rank 0") {
    script.watch_for(1h);
    script.done(2);
    script.watch_for(10s);
    script.done(3);
    check_ends(script, kBound - 10s, 0, "did not finish setup within 60 s of another rank");
  }
}

TEST_CASE("a rank that hangs in load is named") {
  MachineScript script = in_step_1(3);
  for (const WorkerId worker : {1, 2, 3}) script.done(worker);
  script.watch_for(1h);
  script.done(1);
  script.word(4, GroupAction::kStep);
  script.done(3);
  check_ends(script, kBound, 1, "did not finish load within 60 s of another rank");
}

TEST_CASE("a rank that hangs in a step is named when another has finished it") {
  MachineScript script = in_step_1();
  SUBCASE("not before: a step may take as long as it likes") {
    check_never_ends(script);
  }
  SUBCASE("rank 1") {
    script.watch_for(1h);
    script.done(3);
    script.watch_for(5s);
    script.report(1, 1);
    script.word(2, GroupAction::kStep);
    check_ends(script, kBound - 5s, 1, "did not finish step 1 within 60 s of another rank");
  }
  SUBCASE("rank 0") {
    script.done(2);
    script.done(3);
    check_ends(script, kBound, 0, "did not finish step 1 within 60 s of another rank");
  }
}

TEST_CASE("no rank is blamed for what it may have said while none is heard for a slow disk") {
  MachineScript script = in_step_1();
  SUBCASE("one that is behind") {
    script.report(1, 1);
    script.done(3);
    script.word(2, GroupAction::kStep);
    script.watch_for(50s);
    script.machine.on_disk(script.now, false);
    check_never_ends(script);
    script.machine.on_disk(script.now, true);
    check_ends(script, kBound, 1, "did not finish step 1 within 60 s of another rank");
  }
  SUBCASE("one that is alone") {
    script.alone(2, true);
    script.watch_for(500s);
    script.machine.on_disk(script.now, false);
    check_never_ends(script);
    script.machine.on_disk(script.now, true);
    check_ends(script, kAloneBound, 1, "worked alone in step 1 for 600 s", "alone_timeout_s");
  }
}

TEST_CASE("a rank that is behind but goes on is not blamed") {
  MachineScript script = in_step_1();
  script.done(3);
  // Rank 0 runs ahead: a step takes it 10 s, and rank 1 a minute.
  for (std::uint64_t step = 1; step <= 60; ++step) {
    script.report(1, step);
    script.word(step + 1, GroupAction::kStep);
    script.done(3);
    script.said();
    script.watch_for(10s);
    if (step % 6 == 0) script.done(2);
    CHECK(script.said().empty());
  }
  // Rank 1 has now done 10 steps and begins step 11, which rank 0 finished long ago.
  script.report(1, 61, true);
  check_ends(script, kBound, 1, "did not finish step 11 within 60 s of another rank");
}

TEST_CASE("a rank that hangs in a save is named, though rank 0 waits for a verdict") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.done(2);
  script.done(3);
  script.word(1, GroupAction::kSave);
  script.watch_for(1h);
  SUBCASE("rank 2") {
    script.saved(1, 1);
    script.word(2, GroupAction::kStep);
    script.saved(2, 1);
    script.done(2);
    script.report(1, 2, true);
    check_ends(script, kAloneBound, 2, "did not finish save 1 within 600 s of another rank",
               "alone_timeout_s");
  }
  SUBCASE("rank 0") {
    script.saved(2, 1);
    script.saved(3, 1);
    check_ends(script, kAloneBound, 0, "did not finish save 1 within 600 s of another rank",
               "alone_timeout_s");
  }
}

TEST_CASE("ranks wait for one that saves, wherever they are, and then their time begins anew") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.done(2);
  script.done(3);
  script.word(1, GroupAction::kSave);
  for (const WorkerId worker : {1, 2}) script.saved(worker, 1);
  script.word(2, GroupAction::kStep);
  script.report(1, 2);  // rank 1 may be in a collective, in which it waits for rank 2
  script.word(3, GroupAction::kStep);
  script.said();
  script.watch_for(500s);
  CHECK(script.said().empty());
  script.saved(3, 1);
  script.machine.on_promoted(script.now, {{0}, {1}, 1, 1s, {}}, {});
  check_ends(script, kBound, 1, "did not finish step 2 within 60 s of another rank");
}

TEST_CASE("a rank that works alone has time of its own, and the others wait for it") {
  MachineScript script = in_step_1();
  SUBCASE("which does not end it early") {
    script.done(3);
    script.alone(1, true);
    script.said();
    script.watch_for(kAlone - 1s);
    CHECK(script.said().empty());
    script.alone(1, false);
    // Rank 0 goes on in its step, of which rank 2 waits for the end.
    check_ends(script, kBound, 0, "did not finish step 1 within 60 s of another rank");
  }
  SUBCASE("which ends though no rank has finished the step") {
    script.watch_for(1h);
    script.alone(2, true);
    check_ends(script, kAloneBound, 1, "worked alone in step 1 for 600 s", "alone_timeout_s");
  }
  SUBCASE("which ends before that of one that began later") {
    script.alone(3, true);
    script.watch_for(100s);
    script.alone(1, true);
    check_ends(script, kAloneBound - 100s, 2, "worked alone in step 1 for 600 s",
               "alone_timeout_s");
  }
  SUBCASE("which is over when it is gone") {
    script.done(3);
    script.alone(2, true);
    script.watch_for(500s);
    script.dies(102, SIGKILL);
    const Lines said = script.said();
    CHECK(std::ranges::find(said, "signal 15 to 103") != said.end());
  }
  SUBCASE("and says twice what it says once") {
    script.alone(2, true);
    script.watch_for(100s);
    script.alone(2, true);
    check_ends(script, kAloneBound - 100s, 1, "worked alone in step 1 for 600 s",
               "alone_timeout_s");
  }
}

TEST_CASE("a rank that asks is told whether another one is alone") {
  MachineScript script;
  script.set_up({}, kLimit, kAlone);
  script.run(0, 3);
  const auto answers = [&] {
    script.said();
    script.ask_alone(1);
    script.ask_alone(2);
    return script.said();
  };
  CHECK(answers() == Lines{"worker 1: nobody else is alone", "worker 2: nobody else is alone"});
  script.alone(2, true);
  CHECK(answers() == Lines{"worker 1: others are alone", "worker 2: nobody else is alone"});
  script.alone(3, true);
  script.alone(2, false);
  CHECK(answers() == Lines{"worker 1: others are alone", "worker 2: others are alone"});
  script.dies(103, SIGKILL);
  CHECK(answers() == Lines{"worker 1: nobody else is alone", "worker 2: nobody else is alone"});
}

TEST_CASE("a question is not a sign of life") {
  MachineScript script;
  script.set_up(60s);
  script.run(0, 2);
  script.watch_for(59s);
  script.ask_alone(2);
  script.said();
  script.watch_for(1s);
  CHECK(script.said() == Lines{"signal 9 to 101", "signal 9 to 102"});
}

TEST_CASE("without alone_timeout_s a rank may work alone for any time") {
  MachineScript script;
  script.set_up({}, kLimit);
  script.run(0, 3);
  script.begin(3);
  script.done(2);
  script.alone(1, true);
  check_never_ends(script);
}

TEST_CASE("rank 0 may wait for a verdict, but not keep it to itself") {
  MachineScript script = in_step_1();
  script.report(1, 1, true);
  script.done(2);
  script.done(3);
  script.said();
  script.watch_for(1h);
  CHECK(script.said().empty());
  script.machine.on_command(script.now, Continue{{0}, {1}, {}});
  check_ends(script, kBound, 0, "did not tell the other ranks within 60 s how to go on");
}

TEST_CASE("a rank that does not end when the others have is named") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.done(2);
  script.done(3);
  script.word(1, GroupAction::kEnd);
  script.watch_for(1h);
  script.end(2, Outcome::kCompleted);
  check_ends(script, kBound, 0, "did not finish the end within 60 s of another rank");
}

TEST_CASE("time in which the agent itself was stopped counts against nobody") {
  MachineScript script = in_step_1();
  script.done(2);
  script.said();
  for (int stop = 0; stop < 10; ++stop) script.pass(1h);  // a second of each may be the ranks' own
  CHECK(script.said().empty());
  check_ends(script, kBound - 10s, 0, "did not finish step 1 within 60 s of another rank");
}

TEST_CASE("without group_timeout_s ranks wait for each other for any time") {
  MachineScript script;
  script.set_up();
  script.run(0, 3);
  script.begin(3);
  script.done(2);
  check_never_ends(script);
}

TEST_CASE("a word to the group that is not of rank 0 is nonsense") {
  MachineScript script = in_step_1();
  script.machine.on_worker(script.now, 2, GroupStep{2, GroupAction::kStep});
  CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 102", "signal 15 to 103"});
}

TEST_CASE("a rank whose function returns before rank 0 has said the last word") {
  MachineScript script = in_step_1();
  SUBCASE("a moment before rank 0's own: that is how functions end") {
    script.report(1, 1);
    script.word(2, GroupAction::kStep);
    script.done(2);
    script.done(3);
    script.end(2, Outcome::kCompleted);
    script.word(1, GroupAction::kEnd);
    script.end(3, Outcome::kCompleted);
    script.end(1, Outcome::kCompleted);
    for (const std::uint32_t pid : {101, 102, 103}) script.exits(pid);
    CHECK(script.said().back() == "conclude 0: completed, rank 0, code 0, ");
    return;
  }
  SUBCASE("rank 0 reports once more") {
    script.end(2, Outcome::kCompleted);
    script.exits(102);
    script.said();
    script.report(1, 1, true);
    CHECK(script.said().empty());  // no result of the group
    script.pass(Attempt::kSettle);
    CHECK(script.said() == Lines{"signal 15 to 101", "signal 15 to 103"});
  }
  SUBCASE("rank 0 has reported before") {
    script.report(1, 1);
    script.word(2, GroupAction::kStep);
    script.end(2, Outcome::kCompleted);
  }
  SUBCASE("rank 0 waits for it in a collective, which ends") {
    script.end(2, Outcome::kCompleted);
    script.echo(1, "step: connection closed by peer");
  }
  SUBCASE("the same, and the collective is heard of first") {
    script.echo(3, "step: connection closed by peer");
    script.end(2, Outcome::kCompleted);
  }
  script.pass(Attempt::kSettle);
  for (const std::uint32_t pid : {101, 102, 103}) script.dies(pid, SIGTERM);
  CHECK(script.said().back() ==
        "conclude 0: exception, rank 1, code 0, ended in step 1 before rank 0 did: all ranks must "
        "report equally often");
}

TEST_CASE("a rank that returns with steps left, though rank 0 has ended by then") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.word(2, GroupAction::kStep);
  script.report(1, 2);
  script.word(2, GroupAction::kEnd);
  script.end(1, Outcome::kCompleted);
  script.exits(101);
  SUBCASE("has not done what the group's result says") {
    script.done(3);
    script.done(3);
    script.end(3, Outcome::kCompleted);
    script.exits(103);
    script.end(2, Outcome::kCompleted);  // in step 1
    script.pass(Attempt::kSettle);
    script.exits(102);
    CHECK(
        script.said().back() ==
        "conclude 0: exception, rank 1, code 0, ended in step 1 before rank 0 did: all ranks must "
        "report equally often");
  }
  SUBCASE("may have returned in the last of them, as a function does") {
    for (const std::uint32_t rank : {2, 3}) {
      script.done(rank);
      script.end(rank, Outcome::kCompleted);
      script.exits(100 + rank);
    }
    CHECK(script.said().back() == "conclude 0: completed, rank 0, code 0, ");
  }
}

TEST_CASE(
    "a rank that returned while others go on, who wait for it in a way that nobody hears of") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.done(2);
  script.done(3);
  script.word(2, GroupAction::kStep);
  script.watch_for(1h);
  script.end(3, Outcome::kCompleted);
  script.exits(103);
  SUBCASE("is named when the others have had their time") {
    script.said();
    script.watch_for(kBound - 1ms);
    CHECK(script.said().empty());
    script.watch_for(1ms);
    CHECK(script.said() == Lines{"signal 9 to 101", "signal 9 to 102"});
    script.dies(101, SIGKILL);
    script.dies(102, SIGKILL);
    CHECK(script.said().back() ==
          "conclude 0: hung, rank 2, code 0, ended in step 2, which others have not finished 60 s "
          "later (group_timeout_s), killed");
  }
  SUBCASE("is named beside one that dies of it") {
    script.dies(101, SIGABRT);
    script.dies(102, SIGTERM);
    const std::string end = script.said().back();
    CHECK(end.starts_with("conclude 0: signal, rank 0, code 6"));
    CHECK(end.ends_with("; rank 2 had ended in step 2"));
  }
  SUBCASE("is no hindrance when rank 0 alone goes on: it may have the end's work to do") {
    script.end(2, Outcome::kCompleted);
    script.exits(102);
    check_never_ends(script);
    script.word(1, GroupAction::kEnd);
    script.end(1, Outcome::kCompleted);
    script.exits(101);
    CHECK(script.said().back() == "conclude 0: completed, rank 0, code 0, ");
  }
}

TEST_CASE("of ranks that returned too early the first is blamed") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.done(2);
  script.word(2, GroupAction::kStep);
  script.end(2, Outcome::kCompleted);  // in step 2, which rank 0 has not finished
  script.end(3, Outcome::kCompleted);  // in step 1
  script.pass(Attempt::kSettle);
  for (const std::uint32_t pid : {101, 102, 103}) script.dies(pid, SIGTERM);
  CHECK(script.said().back().starts_with("conclude 0: exception, rank 2, code 0, ended in step 1"));
}

TEST_CASE("a rank 0 that goes on after its last word is not listened to") {
  MachineScript script = in_step_1();
  script.report(1, 1);
  script.end(1, Outcome::kCompleted);
  script.said();
  script.word(2, GroupAction::kStep);
  script.exits(101);
  CHECK(script.said() == Lines{"worker 2: group step", "worker 3: group step", "forget 1"});
}

TEST_CASE("a rank that returned at its time is not blamed for what rank 0 throws later") {
  MachineScript script = in_step_1();
  script.end(2, Outcome::kCompleted);
  script.end(3, Outcome::kCompleted);
  script.end(1, Outcome::kException, "function: no space for the summary");
  for (const std::uint32_t pid : {101, 102, 103}) script.exits(pid, 1);
  CHECK(script.said().back() ==
        "conclude 0: exception, rank 0, code 1, function: no space for the summary");
}

TEST_CASE("an exception of the group gives way to the one that another rank threw by itself") {
  MachineScript script = in_step_1();
  script.echo(2, "step: all_reduce failed (did a rank end?)");
  SUBCASE("which may take a moment to be told") {
    script.pass(Attempt::kEchoSettle - 1ms);
    CHECK(script.said().empty());
    script.end(1, Outcome::kException, "step: no luck");
    script.echo(3, "step: all_reduce failed (did a rank end?)");
    script.pass(Attempt::kSettle);
    for (const std::uint32_t pid : {101, 102, 103}) script.dies(pid, SIGTERM);
    CHECK(script.said().back() == "conclude 0: exception, rank 0, code 1, step: no luck");
  }
  SUBCASE("or to a death") {
    script.dies(103, SIGKILL);
    for (const std::uint32_t pid : {101, 102}) script.dies(pid, SIGTERM);
    CHECK(script.said().back().starts_with("conclude 0: signal, rank 2, code 9"));
  }
  SUBCASE("but not to another of the group") {
    script.echo(1, "step: broadcast failed (did a rank end?)");
    script.pass(Attempt::kEchoSettle);
    for (const std::uint32_t pid : {101, 102, 103}) script.dies(pid, SIGTERM);
    CHECK(script.said().back() ==
          "conclude 0: exception, rank 1, code 1, step: all_reduce failed (did a rank end?)");
  }
}

TEST_CASE("a group is held at a step boundary while the driver is too far behind") {
  MachineScript script = in_step_1();
  const auto fall_behind = [&] {
    script.machine.on_backlog(script.now, AgentMachine::kCreditBytes + 1);
  };
  SUBCASE("it is told once, and once that it may go on") {
    fall_behind();
    CHECK(script.said() == Lines{"worker 1: hold"});
    fall_behind();
    CHECK(script.said().empty());
    script.machine.on_backlog(script.now, 0);
    CHECK(script.said() == Lines{"worker 1: go on"});
  }
  SUBCASE("nobody is blamed for it") {
    fall_behind();
    script.report(1, 1);
    script.done(2);
    script.done(3);
    check_never_ends(script);
    script.machine.on_backlog(script.now, 0);
    check_ends(script, kBound, 0, "did not tell the other ranks within 60 s how to go on");
  }
  SUBCASE("but a rank that others are ahead of is") {
    fall_behind();
    script.report(1, 1);
    script.done(3);
    check_ends(script, kBound, 1, "did not finish step 1 within 60 s of another rank");
  }
  SUBCASE("also one that starts meanwhile, and no rank alone") {
    fall_behind();
    script.said();
    script.launch(1, 2);
    script.launch(2, 1);
    for (const std::uint32_t worker : {4, 5, 6}) script.spawned(worker, 100 + worker);
    CHECK(script.said() == Lines{"spawn 5", "spawn 4 with rendezvous", "spawn 6",
                                 "driver: started 104", "worker 4: start", "worker 5: start",
                                 "worker 4: hold", "driver: started 106", "worker 6: start"});
    script.machine.on_backlog(script.now, 0);
    CHECK(script.said() == Lines{"worker 1: go on", "worker 4: go on"});
  }
}
