// Groups over several nodes: the agent that leads one, and the agents of its other nodes.
#include <algorithm>
#include <csignal>

#include <doctest/doctest.h>

#include "agent/group_scripts.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("a group starts when the ranks on all nodes exist, and each hears the lead's rank") {
  LeadScript script;
  CHECK(script.said() == Lines{"open group for 1", "spawn 2", "spawn 1 with rendezvous",
                               "driver: group meets at 1 addresses"});
  script.link();
  CHECK(script.said() == Lines{"driver: started 101", "worker 1: start", "worker 2: start",
                               "to node 1: start ranks"});
  script.begin();
  script.word(2, GroupAction::kStep);
  CHECK(script.said() == Lines{"worker 2: group step", "to node 1: rank 2: group step",
                               "to node 1: rank 3: group step"});
  script.hear(FromRank{3, AskAlone{}});
  CHECK(script.said() == Lines{"to node 1: rank 3: nobody else is alone"});
}

TEST_CASE("a checkpoint has its name when the ranks on all nodes have saved") {
  LeadScript script;
  script.begin();
  script.report(1, 1);
  script.word(1, GroupAction::kSave);
  script.said();
  script.saved(1, 1);
  script.saved(2, 1);
  script.hear(FromRank{2, RankSaved{1, 1s, {}}});
  CHECK(script.said().empty());
  script.hear(FromRank{3, RankSaved{1, 1s, {}}});
  CHECK(script.said() == Lines{"promote 1"});
}

TEST_CASE("a result is told when every rank has loaded, as the checkpoint may go after it") {
  LeadScript script(3);
  script.link();
  for (const WorkerId worker : {1, 2}) {
    script.done(worker);  // setup
    script.done(worker);  // load
  }
  for (const std::uint32_t rank : {2u, 3u}) script.hear(FromRank{rank, PhaseDone{}});
  script.word(4, GroupAction::kStep);
  script.said();
  script.report(1, 4);
  CHECK(script.said().empty());
  script.hear(FromRank{2, PhaseDone{}});
  CHECK(script.said().empty());
  script.hear(FromRank{3, PhaseDone{}});
  CHECK(script.said() == Lines{"driver: report 4"});
}

TEST_CASE("a group that ends in order is over when its last rank on any node is gone") {
  LeadScript script;
  script.begin();
  script.end(1, Outcome::kCompleted);
  script.end(2, Outcome::kCompleted);
  script.exits(101);
  script.exits(102);
  for (const std::uint32_t rank : {2u, 3u}) {
    script.hear(FromRank{rank, WorkerEnded{}});
    script.hear(RankGone{rank, true, false, 0, "exited with code 0", {}});
  }
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kCompleted);
  CHECK_FALSE(ended.is_of_node);
  script.lose();  // a link that is not needed any more
  CHECK(script.said().empty());
}

TEST_CASE("a rank that fails on another node is the first cause, and ends the ranks on all nodes") {
  LeadScript script;
  script.begin();
  script.hear(RankGone{3, true, true, SIGSEGV, "killed by signal 11 (SIGSEGV)", {}});
  CHECK(script.said() ==
        Lines{"signal 15 to 101", "signal 15 to 102", "to node 1: end ranks by 15"});
  script.dies(101, SIGTERM);
  script.dies(102, SIGTERM);
  script.hear(RankGone{2, true, true, SIGTERM, "killed by signal 15", {}});
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kSignal);
  CHECK(ended.rank == 3);
  CHECK_FALSE(ended.is_of_node);
}

TEST_CASE("the last lines of a rank that failed elsewhere come from its node") {
  LeadScript script;
  script.begin();
  script.hear(RankTail{1, "of a rank that is not there"});
  script.hear(RankTail{3, "last words\n"});
  script.hear(RankGone{3, true, false, 3, "exited with code 3", {}});
  script.dies(101, SIGTERM);
  script.dies(102, SIGTERM);
  script.hear(RankGone{2, true, true, SIGTERM, "killed by signal 15", {}});
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.rank == 3);
  CHECK(ends[0].ended.stderr_tail == "last words\n");
  CHECK_FALSE(ends[0].wants_stderr_tail);  // its file is not here
}

TEST_CASE("the loss of a node ends the group at once, and the node is to blame for every echo") {
  LeadScript script;
  script.begin();
  SUBCASE("nothing was noticed before") {}
  SUBCASE("a rank threw in a collective") {
    script.echo(1, "step: connection reset");
  }
  SUBCASE("a rank threw something of its own") {
    script.end(2, Outcome::kException, "step: no answer");
  }
  SUBCASE("a rank was ended by its collective") {
    script.dies(102, SIGABRT);
  }
  script.lose();
  const AgentTime lost = script.now;
  CHECK(script.machine.live().size() == 1);
  script.pass(Attempt::kGroupGrace);
  const Lines said = script.said();
  CHECK(std::ranges::count(said, "signal 15 to 101") >= 1);
  CHECK(std::ranges::count(said, "signal 9 to 101") == 1);
  CHECK(script.now - lost < 5s);  // the promise
  script.dies(101, SIGKILL);
  script.dies(102, SIGKILL);
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.is_of_node);
  CHECK(ended.cause == "node two is lost: its connection broke");
}

TEST_CASE("what rank 0 has said stands when a node is lost after it, if all had saved") {
  LeadScript script;
  script.begin();
  bool is_saved = true;
  SUBCASE("nothing was to be saved") {}
  SUBCASE("the lost node had still to save") {
    script.saved(1, 1);
    is_saved = false;
  }
  script.end(1, Outcome::kCompleted);
  script.end(2, Outcome::kCompleted);
  script.lose();
  script.exits(101);
  script.exits(102);
  CHECK(script.concluded().outcome == (is_saved ? Outcome::kCompleted : Outcome::kLost));
}

TEST_CASE("what a rank throws may be the echo of a loss that the driver heard of first") {
  LeadScript script;
  script.begin();
  Outcome outcome = Outcome::kLost;
  const auto kill = [&] { script.machine.on_command(script.now, KillAttempt{{0}, {1}}); };
  SUBCASE("it is not settled when the driver ends the group") {
    script.echo(2, "step: connection reset");
    kill();
  }
  SUBCASE("rank 0 had said that all is done") {
    script.end(1, Outcome::kPaused);
    kill();
    script.echo(2, "step: connection reset");
    outcome = Outcome::kPaused;
  }
  script.exits(101);
  script.exits(102, 1);
  script.said();
  script.watch_for(Attempt::kSilentEnd);  // of the other node
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.outcome == outcome);
  CHECK(ends[0].ended.is_of_node == (outcome == Outcome::kLost));
}

TEST_CASE("an order to end that cuts saves off is the cause of the loss") {
  LeadScript script;
  script.begin();
  script.saved(1, 1);
  script.end(1, Outcome::kPaused);
  script.machine.on_command(script.now, KillAttempt{{0}, {1}});  // its driver has lost node two
  script.exits(101);
  script.exits(102);
  script.lose();
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.is_of_node);
}

TEST_CASE("a node that is silent blames no rank, and is lost after group_timeout_s") {
  LeadScript script;
  script.begin();
  script.done(2);  // ahead of the ranks on the other node
  script.watch_linked_for(10s);
  script.said();
  script.watch_for(kGroupLimit - 1ms);
  CHECK(script.said().empty());
  script.watch_for(1ms);
  CHECK_FALSE(script.said().empty());
  script.dies(101, SIGTERM);
  script.dies(102, SIGTERM);
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.cause == "node two is lost: it has said nothing for 60 s");
}

TEST_CASE("a group_timeout_s below a link's heartbeats gives no linked node up between them") {
  LeadScript lead(0, 250ms);
  lead.link();
  lead.said();
  lead.watch_linked_for(10s);
  CHECK(lead.said().empty());
  lead.watch_for(Attempt::kQuiet - 1ms);
  CHECK(lead.said().empty());
  lead.watch_for(1ms);
  CHECK_FALSE(lead.said().empty());

  PartScript part(250ms);
  part.start();
  for (int i = 0; i < 10; ++i) {
    part.watch_for(1s);
    part.machine.on_lead(part.now, kGroupKey, {});
  }
  part.watch_for(Attempt::kQuiet - 1ms);
  CHECK(part.said().empty());
  part.watch_for(1ms);
  CHECK_FALSE(part.said().empty());
}

TEST_CASE("a node that is heard again in time gives its ranks their time anew") {
  LeadScript script;
  script.begin();
  script.done(2);
  script.watch_for(kGroupLimit - 5s);
  script.machine.on_node(script.now, kGroupKey, 1, {});
  script.watch_linked_for(kGroupLimit - 1s);
  CHECK(script.said().empty());
  script.watch_linked_for(1s + Attempt::kQuiet);
  CHECK(script.said().empty());  // what it says may be on its way
  script.watch_linked_for(Attempt::kGroupPatience);
  CHECK_FALSE(script.said().empty());  // now a rank is hung
  for (const std::uint32_t pid : {101, 102}) script.dies(pid, SIGKILL);
  for (const std::uint32_t rank : {2u, 3u}) {
    script.hear(RankGone{rank, true, true, SIGKILL, "killed", {}});
  }
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kHung);
  CHECK(ended.rank == 0);  // the hindmost of those that are behind rank 1
}

TEST_CASE("a node that does not link, or is another attempt's, is lost") {
  LeadScript script;
  std::string cause;
  std::uint32_t unlinked = 0;
  SUBCASE("it does not link") {
    script.watch_for(Attempt::kMeet);
    cause =
        "node two is lost: it did not link to the first node of its group, one, at "
        "10.0.0.1:4711 for 60 s";
    unlinked = 1;
  }
  SUBCASE("it comes for another attempt") {
    script.hear(NodeLinks{kGroupKey + 1, 1});
    cause = "node two is lost: it came for another attempt";
  }
  script.dies(101, SIGTERM);
  script.dies(102, SIGTERM);
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.cause.starts_with(cause));
  CHECK(ended.unlinked == unlinked);
}

TEST_CASE("a lead that cannot listen loses the attempt, and says why") {
  MachineScript script;
  script.set_up({}, kGroupLimit);
  script.machine.on_command(script.now, group_launch_on(0));
  script.machine.on_group_open(script.now, kGroupKey, {}, "listening at 10.0.0.1: no such address");
  script.spawned(1, 101);  // they were being forked
  script.spawned(2, 102);
  script.dies(101, SIGKILL);
  script.dies(102, SIGKILL);
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.outcome == Outcome::kLost);
  CHECK(ends[0].ended.cause == "listening at 10.0.0.1: no such address");
}

TEST_CASE("ranks that are to end are not waited for on a node that says nothing") {
  LeadScript script;
  script.begin();
  script.machine.on_command(script.now, KillAttempt{{0}, {1}});
  script.dies(101, SIGTERM);
  script.dies(102, SIGTERM);
  script.said();
  script.watch_for(Attempt::kSilentEnd);
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.outcome == Outcome::kLost);
}

TEST_CASE("a node that is to leave has the trial paused by the lead") {
  LeadScript script;
  script.begin();
  script.hear(NodeLeaves{"it is drained"});
  CHECK(script.said() == Lines{"worker 1: stop"});
  script.hear(NodeLeaves{"it is drained"});  // once
  CHECK(script.said().empty());
  script.end(1, Outcome::kLost);  // it cannot save
  script.end(2, Outcome::kCompleted);
  script.exits(101);
  script.exits(102);
  for (const std::uint32_t rank : {2u, 3u}) {
    script.hear(FromRank{rank, WorkerEnded{}});
    script.hear(RankGone{rank, true, false, 0, "exited with code 0", {}});
  }
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.is_of_node);
}

// ---- The other nodes ----------------------------------------------------------------------------

TEST_CASE("another node links, forks and starts its ranks as the lead says, and passes words on") {
  PartScript script;
  CHECK(script.said() ==
        Lines{"node 1 joins 10.0.0.1:4711", "to lead: node 1 links", "spawn 2", "spawn 1"});
  script.spawned(1, 101);
  script.spawned(2, 102);
  CHECK(script.said() == Lines{"to lead: rank 2 is 101", "to lead: rank 3 is 102"});
  script.hear(ToRank{2, GroupStep{1, GroupAction::kStep}});
  CHECK(script.said().empty());  // it is not started
  script.machine.on_lead(script.now, kGroupKey, {StartRanks{}});
  const auto starts = script.wanted<TellWorker>();
  REQUIRE(starts.size() == 2);
  const auto& start = std::get<StartWorker>(starts[1].command);
  CHECK(start.rank == 3);
  CHECK(start.local_rank == 1);
  CHECK(start.environment.at("RANK") == "3");
  CHECK(start.environment.at("LOCAL_RANK") == "1");
  CHECK(start.environment.at("WORLD_SIZE") == "4");
  CHECK(start.environment.at("LOCAL_WORLD_SIZE") == "2");
  CHECK(start.environment.at("GROUP_RANK") == "1");
  CHECK(start.environment.at("GROUP_WORLD_SIZE") == "2");
  script.hear(ToRank{3, GroupStep{1, GroupAction::kStep}});
  CHECK(script.said() == Lines{"worker 2: group step"});
  script.hear(ToRank{0, GroupStep{1, GroupAction::kStep}});  // not its own
  script.hear(ToRank{7, GroupStep{1, GroupAction::kStep}});
  CHECK(script.said().empty());
  script.done(2);
  CHECK(script.said() == Lines{"to lead: word of rank 3"});
}

TEST_CASE("another node's part is over, for its driver, when its ranks are gone") {
  PartScript script;
  script.start();
  CHECK(script.machine.live().size() == 1);
  script.exits(101);
  script.exits(102);
  const Lines said = script.said();
  CHECK(std::ranges::count(said, "close group") == 1);
  CHECK(said.back() == "conclude 0: completed, rank 2, code 0, ");
}

TEST_CASE("a node whose output no other sees tells the last lines of a rank before its end") {
  PartScript script;
  script.machine.on_own_folder("/tmp/own");
  script.start();
  SUBCASE("a rank that fails") {
    script.exits(102, 3);
    CHECK(script.said() == Lines{"read tail of 3"});
    script.machine.on_tail(script.now, {{0}, {1}, 3}, "last words");
    CHECK(script.said() == Lines{"to lead: tail of rank 3: last words", "forget 2",
                                 "to lead: rank 3 is gone: exited with code 3"});
  }
  SUBCASE("a rank that has thrown, though it is being ended by then") {
    script.end(2, Outcome::kException, "step: no data");
    script.hear(EndRanks{SIGTERM});
    script.said();
    script.dies(102, SIGTERM);
    CHECK(script.said() == Lines{"read tail of 3"});
  }
  SUBCASE("a disk that stalls keeps no end back") {
    script.exits(102, 3);
    script.said();
    script.pass(AttemptPart::kTailWait);
    CHECK(script.said() == Lines{"forget 2", "to lead: rank 3 is gone: exited with code 3"});
    script.machine.on_tail(script.now, {{0}, {1}, 3}, "late");
    CHECK(script.said().empty());
  }
  SUBCASE("not of a rank that ends in order, or by the lead's word") {
    script.exits(101);
    script.hear(EndRanks{SIGTERM});
    script.dies(102, SIGTERM);
    const Lines said = script.said();
    CHECK(std::ranges::count(said, "read tail of 2") == 0);
    CHECK(std::ranges::count(said, "read tail of 3") == 0);
  }
}

TEST_CASE("without its lead a node ends its ranks within five seconds") {
  PartScript script;
  script.start();
  std::string cause;
  SUBCASE("the connection broke") {
    script.machine.on_link_broken(script.now, kGroupKey, 0, "its connection broke");
    cause = "its connection broke";
  }
  SUBCASE("the lead is silent") {
    script.watch_for(kGroupLimit);
    cause = "it has said nothing for 60 s";
  }
  SUBCASE("the driver ends it") {
    script.machine.on_command(script.now, KillAttempt{{0}, {1}});
    cause = "killed on the driver's order";
  }
  Lines said = script.said();
  CHECK(std::ranges::count(said, "signal 15 to 101") == 1);
  script.pass(Attempt::kGroupGrace);
  CHECK(script.said() == Lines{"signal 9 to 101", "signal 9 to 102"});
  script.dies(101, SIGKILL);
  script.dies(102, SIGKILL);
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.outcome == Outcome::kLost);
  CHECK(ends[0].ended.is_of_node);
  CHECK(ends[0].ended.cause.ends_with(cause));
}

TEST_CASE("a node that is to end a part which it never began says that it is over") {
  MachineScript script;
  script.set_up({}, kGroupLimit);
  script.machine.on_command(script.now, KillAttempt{{0}, {1}});
  CHECK(script.said() == Lines{"driver: ended: nothing of it runs here"});
  PartScript part;
  part.start();
  part.exits(101);
  part.exits(102);
  part.said();
  part.machine.on_command(part.now, KillAttempt{{0}, {1}});  // its end is on its way
  CHECK(part.said().empty());
}

TEST_CASE("a lead that nothing is heard of is given up after a minute") {
  PartScript script;
  script.spawned(1, 101);
  script.said();
  script.watch_for(Attempt::kMeet);
  CHECK(std::ranges::count(script.said(), "signal 15 to 101") == 1);
  script.dies(101, SIGTERM);
  script.spawned(2, 102);  // the zygote had been asked
  script.dies(102, SIGKILL);
  const auto ends = script.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.unlinked == 1);
  CHECK(ends[0].ended.cause ==
        "node one, which leads its group, is lost: it has said nothing at 10.0.0.1:4711 for 60 s");
}

TEST_CASE("ranks that are not forked yet never are when the lead ends them") {
  PartScript script;
  script.spawned(1, 101);
  script.said();
  script.hear(EndRanks{SIGTERM});
  const Lines said = script.said();
  CHECK(std::ranges::count(said, "signal 15 to 101") == 1);
  script.dies(101, SIGTERM);
  script.spawned(2, 102);  // it was being forked
  CHECK(std::ranges::count(script.said(), "signal 9 to 102") == 1);
  script.dies(102, SIGKILL);
  CHECK(script.wanted<ConcludeAttempt>().size() == 1);
}

TEST_CASE("a node that is to leave asks its lead, and one that cannot begin tells its driver") {
  PartScript script;
  SUBCASE("it runs") {
    script.start();
    script.machine.on_command(script.now, Drain{"it is drained"});
    script.pass(1ms);
    const Lines said = script.said();
    CHECK(std::ranges::count(said, "to lead: leaves: it is drained") == 1);
    CHECK(std::ranges::count(said, "signal 15 to 101") == 0);
  }
  SUBCASE("it is about to begin") {
    script.spawned(1, 101);
    script.machine.on_command(script.now, Drain{"it is drained"});
    script.pass(1ms);
    const Lines said = script.said();
    CHECK(std::ranges::count(said, "to lead: fails: it is drained") == 1);
    CHECK(std::ranges::count(said, "signal 15 to 101") == 1);
  }
}

TEST_CASE("a node whose disk is slow says so, as its ranks are not heard then") {
  PartScript script;
  script.start();
  script.machine.on_disk(script.now, false);
  script.machine.on_disk(script.now, false);
  CHECK(script.said() == Lines{"to lead: disk is slow"});
  script.machine.on_disk(script.now, true);
  CHECK(script.said() == Lines{"to lead: disk keeps up"});

  LeadScript lead;
  lead.begin();
  lead.done(2);
  lead.hear(NodeDisk{false});
  lead.watch_linked_for(10 * kGroupLimit);
  CHECK(lead.said().empty());
}
