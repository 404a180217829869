// Checkpoints of a group whose nodes do not write into one folder: each carries its part, and the
// lead has them put together.
#include <algorithm>

#include <doctest/doctest.h>

#include "agent/machine_script.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

namespace {

const std::uint64_t kKey = attempt_key({0}, {1});

enum class Folder { kExperiment, kOwn };

Launch launch_on(std::uint32_t node, std::uint64_t restored = 0) {
  Launch launch;
  launch.trial = {0};
  launch.attempt = {1};
  launch.ranks = 2;
  launch.cpu_units = 2 * kUnit;
  launch.hosts = {"one", "two"};
  launch.node = node;
  launch.lead = node > 0 ? "10.0.0.1:4711" : "";
  launch.restore_iteration = restored;
  launch.restore_attempt = {1};
  return launch;
}

struct GatheringScript : MachineScript {
  GatheringScript(Folder folder, bool objects) {
    SetupExperiment setup;
    setup.experiment_id = "0a1b2";
    setup.experiment_directory = "/results/x";
    setup.trainable = "Curve";
    setup.group_timeout = 60s;
    if (objects) setup.objects.address = "s3://bucket/x";
    machine.on_command(now, setup);
    const bool is_own = folder == Folder::kOwn;
    if (is_own || objects) machine.on_own_folder(is_own ? "/own" : "/results/x", is_own);
    machine.on_zygote(now, ZygoteReady{{}, {{"Curve", true, false}}, {}});
    said();
  }
  static CheckpointSaved whole(std::uint64_t iteration) { return {{0}, {1}, iteration, 1s, {}}; }
};

// One rank here, as process 101, and one on node two.
struct Lead : GatheringScript {
  Lead(Folder own, Folder other, bool objects = false) : GatheringScript(own, objects) {
    machine.on_command(now, launch_on(0));
    machine.on_group_open(now, kKey, {"10.0.0.1:4711"}, {});
    spawned(1, 101);
    hear(NodeLinks{kKey, 1, other == Folder::kOwn});
    hear(RankForked{1, 201});
    done(1);
    hear(FromRank{1, PhaseDone{}});
    word(1, GroupAction::kStep);
    said();
  }
  void hear(NodeWord word) { machine.on_node(now, kKey, 1, {std::move(word)}); }
  void save_all(std::uint64_t iteration) {
    saved(1, iteration);
    hear(FromRank{1, RankSaved{iteration, 1s, {}}});
  }
  void stored_here(std::uint64_t iteration, const std::string& why_not = {}) {
    machine.on_stored(now, whole(iteration), why_not.empty(), why_not);
  }
  void stored_there(std::uint64_t iteration, const std::string& why_not = {}) {
    hear(PartStored{whole(iteration), why_not});
  }
  void end_all(Outcome outcome) {
    end(1, outcome);
    hear(FromRank{1, WorkerEnded{outcome, {}}});
    exits(101);
    hear(RankGone{1, true, false, 0, "exited with code 0", {}});
  }
};

// The rank of node two, as process 101.
struct Part : GatheringScript {
  explicit Part(std::uint64_t restored = 0, bool objects = false)
      : GatheringScript(Folder::kOwn, objects) {
    machine.on_command(now, launch_on(1, restored));
    launched = said();
    spawned(1, 101);
  }
  void hear(LeadWord word) { machine.on_lead(now, kKey, {std::move(word)}); }
  Lines launched;
};

}  // namespace

TEST_CASE("a checkpoint is stored when the parts of all nodes are, and put together once") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.saved(1, 1);
  CHECK(lead.said().empty());
  lead.hear(FromRank{1, RankSaved{1, 1s, {}}});
  CHECK(lead.said() ==
        Lines{"driver: saved here 1", "store part of 1", "to node 1: store part of 1"});
  SUBCASE("the other's comes last") {
    lead.stored_here(1);
    CHECK(lead.said().empty());
    lead.stored_there(1);
  }
  SUBCASE("its own comes last") {
    lead.stored_there(1);
    CHECK(lead.said().empty());
    lead.stored_here(1);
  }
  CHECK(lead.said() == Lines{"store 2 parts of 1"});
  lead.stored_there(1);  // said again
  CHECK(lead.said().empty());
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"driver: saved 1"});
}

TEST_CASE("a lead that sees the experiment's folder puts the others' parts into it itself") {
  Lead lead(Folder::kExperiment, Folder::kOwn);
  lead.save_all(1);
  CHECK(lead.said() == Lines{"driver: saved here 1", "to node 1: store part of 1"});
  lead.stored_there(1);
  CHECK(lead.said() == Lines{"promote 1 with 1"});
  lead.machine.on_promoted(lead.now, GatheringScript::whole(1), {});
  CHECK(lead.said() == Lines{"driver: saved 1"});
}

TEST_CASE("what a lead without the folder finds there of another node is left to that") {
  Lead lead(Folder::kOwn, Folder::kExperiment);
  lead.save_all(1);
  CHECK(lead.said() == Lines{"driver: saved here 1", "store part of 1"});
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"store 1 parts of 1"});
}

TEST_CASE("of nodes that write into one folder one carries to an object store") {
  Lead shared(Folder::kExperiment, Folder::kExperiment, true);
  shared.save_all(1);
  CHECK(shared.said() == Lines{"driver: saved here 1", "store part of 1"});
  Lead own(Folder::kExperiment, Folder::kOwn, true);
  own.save_all(1);
  CHECK(own.said().size() == 3);
}

TEST_CASE("one checkpoint at a time is carried, and of those that wait the newest is next") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.save_all(2);
  lead.said();
  lead.save_all(3);
  CHECK(lead.said() ==
        Lines{"driver: saved here 3", "to node 1: drop part of 2", "drop 2", "driver: given up 2"});
  lead.stored_here(1);
  lead.stored_there(1);
  lead.said();
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"driver: saved 1", "store part of 3", "to node 1: store part of 3"});
}

TEST_CASE("a part that cannot be stored costs that checkpoint, on all nodes") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.said();
  lead.stored_there(1, "no space left");
  CHECK(lead.said().empty());  // its own is still on its way
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"to node 1: drop part of 1", "drop 1", "driver: given up 1"});
  SUBCASE("a trial that is paused then has failed to save") {
    lead.end_all(Outcome::kPaused);
    const Lines said = lead.said();
    CHECK(said.back() == "conclude 0: exception, rank 0, code 1, save: not stored: no space left");
  }
  SUBCASE("the next one may do better") {
    lead.save_all(2);
    lead.stored_here(2);
    lead.stored_there(2);
    lead.stored_here(2);
    lead.said();
    lead.end_all(Outcome::kPaused);
    CHECK(lead.said().back() == "conclude 0: paused, rank 0, code 0, ");
  }
}

TEST_CASE("files of one name that differ are the trial's own failure") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.stored_here(1);
  lead.stored_there(1);
  lead.said();
  lead.machine.on_stored(lead.now, GatheringScript::whole(1), false, "two files model", true);
  const Lines said = lead.said();
  CHECK(std::ranges::count(said, "driver: given up 1") == 1);
  CHECK(std::ranges::count(said, "signal 15 to 101") == 1);
  lead.dies(101, 15);
  lead.hear(RankGone{1, true, true, 15, "killed by signal 15", {}});
  const auto ends = lead.wanted<ConcludeAttempt>();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].ended.outcome == Outcome::kException);
  CHECK(ends[0].ended.cause == "save: two files model");
}

TEST_CASE("an attempt is over when its last checkpoint is stored, and then frees the others") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.end_all(Outcome::kCompleted);
  const Lines said = lead.said();
  CHECK(std::ranges::count(said, "driver: place free") == 1);
  lead.stored_here(1);
  lead.stored_there(1);
  CHECK(lead.said() == Lines{"store 2 parts of 1"});
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"driver: saved 1", "to node 1: released", "close group",
                             "conclude 0: completed, rank 0, code 0, "});
}

TEST_CASE(
    "a node that is lost with its part takes the attempt with it, though its ranks had ended") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.end_all(Outcome::kPaused);
  lead.said();
  SUBCASE("before it was stored") {}
  SUBCASE("while it is silent") {
    lead.stored_here(1);
    lead.watch_for(60s);
    CHECK(lead.said().back() ==
          "conclude 0: lost, rank 0, code 0, node two is lost: it has said "
          "nothing for 60 s");
    return;
  }
  lead.machine.on_link_broken(lead.now, kKey, 1, "its connection broke");
  const Lines said = lead.said();
  CHECK(std::ranges::count(said, "give up checkpoints") == 1);
  CHECK(std::ranges::count(said, "driver: given up 1") == 1);
  CHECK(said.back() == "conclude 0: lost, rank 0, code 0, node two is lost: its connection broke");
  lead.stored_here(1);  // too late
  CHECK(lead.said().empty());
}

// It may stand in its place by the time that its attempt is given up.
TEST_CASE("the end of an attempt waits for the outcome of what is being put together") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.end_all(Outcome::kCompleted);
  lead.stored_here(1);
  lead.stored_there(1);
  lead.said();
  lead.machine.on_command(lead.now, KillAttempt{{0}, {1}});
  CHECK(lead.said() == Lines{"give up checkpoints"});
  SUBCASE("it stands") {
    lead.stored_here(1);
    CHECK(lead.said().front() == "driver: saved 1");
  }
  SUBCASE("it does not") {
    lead.stored_here(1, "its attempt has ended");
    const Lines said = lead.said();
    CHECK(std::ranges::count(said, "driver: given up 1") == 1);
    CHECK(said.back().starts_with("conclude 0: lost"));
  }
  CHECK(lead.said().empty());
}

TEST_CASE("what waits behind what is being put together is given up at once") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.stored_here(1);
  lead.stored_there(1);
  lead.save_all(2);
  lead.said();
  lead.machine.on_link_broken(lead.now, kKey, 1, "its connection broke");
  const Lines said = lead.said();
  CHECK(std::ranges::count(said, "driver: given up 2") == 1);
  CHECK(std::ranges::count(said, "driver: given up 1") == 0);
  lead.stored_here(1);
  CHECK(lead.said() == Lines{"driver: saved 1"});
  lead.dies(101, 15);
  CHECK(lead.said().back() ==
        "conclude 0: lost, rank 0, code 0, node two is lost: its connection broke");
}

TEST_CASE("a node whose part is stored is not missed") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.save_all(1);
  lead.end_all(Outcome::kCompleted);
  lead.stored_there(1);
  lead.said();
  lead.machine.on_link_broken(lead.now, kKey, 1, "its connection broke");
  CHECK(lead.said().empty());
  lead.stored_here(1);
  lead.stored_here(1);
  CHECK(lead.said().back() == "conclude 0: completed, rank 0, code 0, ");
}

TEST_CASE("a save that a node was lost in is given up, though the last rank saves later") {
  Lead lead(Folder::kOwn, Folder::kOwn);
  lead.hear(FromRank{1, RankSaved{1, 1s, {}}});
  lead.hear(FromRank{1, WorkerEnded{Outcome::kCompleted, {}}});
  lead.hear(RankGone{1, true, false, 0, "exited with code 0", {}});
  lead.machine.on_link_broken(lead.now, kKey, 1, "its connection broke");
  lead.said();
  lead.saved(1, 1);
  CHECK(lead.said() == Lines{"driver: saved here 1", "drop 1", "driver: given up 1"});
  lead.dies(101, 15);
  CHECK(lead.said().back() ==
        "conclude 0: lost, rank 0, code 0, node two is lost: its connection broke");
}

// ---- The others ---------------------------------------------------------------------------------

TEST_CASE("a node begins with the whole checkpoint, and its ranks exist when it is there") {
  Part part(4);
  CHECK(part.launched == Lines{"node 1 joins 10.0.0.1:4711", "to lead: node 1 links",
                               "fetch 4 of trial 0", "spawn 1"});
  CHECK(part.said().empty());
  SUBCASE("it is there") {
    part.machine.on_fetched(part.now, {0}, {1}, {}, false);
    CHECK(part.said() == Lines{"to lead: rank 1 is 101"});
    part.hear(StartRanks{});
    std::vector<AgentAction> actions;
    part.machine.take_actions(actions);
    REQUIRE(actions.size() == 1);
    const auto& start = std::get<StartWorker>(std::get<TellWorker>(actions[0]).command);
    CHECK(start.restore_folder == "/own/0a1b2_00000/.restored-1.1");
  }
  SUBCASE("it cannot be had") {
    part.machine.on_fetched(part.now, {0}, {1}, "there is none", false);
    CHECK(part.said().size() == 1);  // the lead ends the attempt
    part.hear(EndRanks{15});
    CHECK(part.said() == Lines{"signal 15 to 101"});
  }
  SUBCASE("this node cannot hold it") {
    part.machine.on_fetched(part.now, {0}, {1}, "no space left", true);
    const Lines said = part.said();
    CHECK(std::ranges::count(
              said, "to lead: fails: this node cannot hold its checkpoint: no space left") == 1);
  }
}

TEST_CASE("a node stays until its lead releases it, and carries what its ranks have left") {
  Part part;
  part.hear(StartRanks{});
  part.exits(101);
  CHECK(part.said().back() == "driver: place free");
  part.hear(StorePart{GatheringScript::whole(2)});
  CHECK(part.said() == Lines{"store part of 2"});
  part.machine.on_stored(part.now, GatheringScript::whole(2), true, {});
  CHECK(part.said() == Lines{"to lead: part of 2 is stored"});
  part.hear(DropPart{GatheringScript::whole(3)});
  CHECK(part.said() == Lines{"drop 3"});
  CHECK(part.machine.live().size() == 1);
  SUBCASE("released") {
    part.hear(ReleaseNode{});
  }
  SUBCASE("without its lead") {
    part.machine.on_link_broken(part.now, kKey, 0, "its connection broke");
  }
  CHECK(part.said() == Lines{"close group", "conclude 0: completed, rank 1, code 0, "});
}

TEST_CASE("what a node carries is given up with its attempt") {
  Part part;
  part.hear(StartRanks{});
  part.exits(101);
  part.hear(StorePart{GatheringScript::whole(2)});
  part.said();
  SUBCASE("its lead wants it no more") {
    part.hear(ReleaseNode{});
  }
  SUBCASE("its lead is lost") {
    part.machine.on_link_broken(part.now, kKey, 0, "its connection broke");
  }
  SUBCASE("its driver ends it") {
    part.machine.on_command(part.now, KillAttempt{{0}, {1}});
  }
  const Lines said = part.said();
  CHECK(std::ranges::count(said, "give up checkpoints") == 1);
  part.machine.on_stored(part.now, GatheringScript::whole(2), false, "its attempt has ended");
  CHECK(part.said().back().starts_with("conclude 0: "));
}
