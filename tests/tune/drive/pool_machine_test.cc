#include "tune/drive/pool_machine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "tune/drive/pool_script.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::has;
using testing::kJobEnded;
using testing::kJobQueued;
using testing::kJobRunning;
using testing::PoolScript;

TEST_CASE("a pool asks for as many agents as trials need, and no more wait than the backlog") {
  PoolScript script({.max = 10, .backlog = 2, .places = 2});
  script.scene_.wanted = 9;
  script.look();
  CHECK(script.starts_ == std::vector<PoolBook::Number>{1, 2});
  script.start_all();
  script.list({{1, kJobRunning, "job1"}, {2, kJobQueued, "job2", "", "PENDING (Priority)"}});
  CHECK(script.starts_ == std::vector<PoolBook::Number>{3});  // one of the backlog runs
  script.start_all();
  script.list({{1, kJobRunning, "job1"}, {2, kJobRunning, "job2"}, {3, kJobRunning, "job3"}});
  script.start_all();
  CHECK(script.book_.open().size() == 5);  // 9 trials on nodes of 2
  script.list(
      {{1, kJobRunning}, {2, kJobRunning}, {3, kJobRunning}, {4, kJobRunning}, {5, kJobRunning}});
  CHECK(script.starts_.empty());
}

TEST_CASE("a host that does not answer hides nothing of what the others have") {
  PoolScript script({.max = 2, .hosts = {"a", "b"}});
  script.scene_.wanted = 4;
  script.look();
  script.start_all();
  for (int i = 0; i < 3; ++i) script.list({}, "b");
  CHECK_FALSE(script.book_.open().contains(1));
  CHECK((script.book_.open().contains(2) && script.was_told("does not list all")));
}

TEST_CASE("a pool never has more than its maximum, and a user changes it") {
  PoolScript script({.max = 3, .backlog = 10});
  script.scene_.wanted = 100;
  script.look();
  CHECK(script.starts_.size() == 3);
  script.book_.order({.max = 4, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.starts_.size() == 4);
  script.book_.order({.max = 1, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.starts_.size() == 4);
  CHECK(script.stops_.empty());
}

TEST_CASE("a lower maximum cancels what waits in the queue above it, and nothing that runs") {
  PoolScript script({.max = 5, .backlog = 10, .places = 1});
  script.scene_.wanted = 100;
  script.look();
  script.start_all();
  const ListedAllocation one{1, kJobRunning, "job1"};
  script.list({one, {2, kJobRunning}, {3, kJobQueued}, {4, kJobQueued}, {5, kJobQueued}});
  script.join(1, 1);
  script.book_.order({.max = 3, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.stops_ == std::vector<PoolBook::Number>{5, 4});
  for (const PoolBook::Number number : script.stops_) script.machine_.on_stopped(number, "");
  script.look();
  CHECK(script.book_.open().size() == 3);
  CHECK(script.book_.bad_starts() == 0);
  script.book_.order({.max = 1, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.stops_ == std::vector<PoolBook::Number>{5, 4, 3});  // 2 has begun
  CHECK(script.drained_.empty());
}

TEST_CASE("a paused pool asks for nothing until it is resumed") {
  PoolScript script;
  script.book_.order({.max = {}, .paused = true, .cause = "alice"});
  script.scene_.wanted = 4;
  script.look();
  CHECK(script.starts_.empty());
  script.book_.order({.max = {}, .paused = false, .cause = "alice"});
  script.look();
  CHECK(script.starts_.size() == 2);
}

TEST_CASE("a connected agent is capacity, whatever the queue says of its allocation") {
  PoolScript script({.max = 10, .backlog = 1, .places = 2});
  script.scene_.wanted = 2;
  script.look();
  script.start_all();
  script.join(1);
  script.scene_.wanted = 0;
  script.scene_.running = 2;
  script.list({{1, kJobQueued, "job1", "", "PENDING (Priority)"}});
  script.scene_.wanted = 2;
  script.look();
  CHECK(script.starts_ == std::vector<PoolBook::Number>{2});  // it does not count as waiting
  CHECK(script.stops_.empty());
  // Gone from the list, it is there as long as it speaks.
  script.list({{2, kJobQueued, "job2"}});
  script.start_all();
  script.list({{2, kJobQueued, "job2"}});
  script.list({{2, kJobQueued, "job2"}});
  CHECK(script.gone_.empty());
  script.scene_.nodes[0].silence = 6s;
  script.look();
  CHECK(script.gone_ == std::vector<AgentNumber>{AgentNumber{1}});
}

TEST_CASE("an idle agent is given back after its time, down to the minimum") {
  PoolScript script({.min = 1, .backlog = 4, .places = 1, .idle = 60s});
  script.scene_.wanted = 3;
  script.look();
  script.start_all();
  for (const PoolBook::Number number : {1, 2, 3}) script.join(number, 1);
  script.scene_.wanted = 0;
  script.scene_.running = 1;
  script.scene_.nodes[2].trials = 1;
  script.look();
  script.pass(59s);
  CHECK(script.drained_.empty());
  script.pass(1s);
  CHECK(script.drained_ == std::vector<AgentNumber>{AgentNumber{2}, AgentNumber{1}});
  script.scene_.running = 0;
  script.scene_.nodes[2].trials = 0;
  std::erase_if(script.scene_.nodes, [](const auto& node) { return node.allocation < 3; });
  script.list({{3, kJobRunning, "job3"}});
  script.list({{3, kJobRunning, "job3"}});
  CHECK(script.book_.open().size() == 1);
  script.pass(200s);
  CHECK(script.drained_.size() == 2);
  CHECK(script.logs_.empty());
  CHECK(script.book_.bad_starts() == 0);
}

TEST_CASE("an agent that is needed again while it is idle stays") {
  PoolScript script({.places = 1, .idle = 60s});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join(1, 1);
  script.scene_.wanted = 0;
  script.pass(50s);
  script.scene_.wanted = 1;
  script.pass(1s);
  script.scene_.wanted = 0;
  script.pass(50s);
  CHECK(script.drained_.empty());
  script.pass(60s);
  CHECK(script.drained_.size() == 1);
}

TEST_CASE("what waits in the queue is cancelled when no trial needs it any more") {
  PoolScript script({.places = 1});
  script.scene_.wanted = 2;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "job1"}, {2, kJobQueued, "job2", "", "PENDING (Resources)"}});
  script.join(1, 1);
  script.scene_.wanted = 0;
  script.look();
  CHECK(script.stops_ == std::vector<PoolBook::Number>{2});
  script.machine_.on_stopped(2, "");
  script.look();
  CHECK_FALSE(script.book_.open().contains(2));
  CHECK(script.book_.bad_starts() == 0);
}

TEST_CASE("a lost agent is replaced, and its allocation is stopped") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 3;
  script.look();
  script.start_all();
  script.join(1, 1);
  script.lose(1);
  CHECK(script.stops_ == std::vector<PoolBook::Number>{1});
  script.machine_.on_stopped(1, "");
  script.look();
  CHECK(script.starts_ == std::vector<PoolBook::Number>{2});
  REQUIRE(script.logs_.size() == 1);
  CHECK(has(script.logs_[0], "allocation 1 of the pool has ended"));
  CHECK(script.book_.bad_starts() == 0);  // it had taken part
}

TEST_CASE("an allocation that has timed out is replaced without a word of failure") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 3;
  script.look();
  script.start_all();
  script.join(1, 1);
  script.scene_.nodes[0].is_out = true;  // its time ends
  script.look();
  CHECK(script.starts_.empty());
  script.book_.node_has_left(1);
  script.scene_.nodes.clear();
  script.list({{1, kJobEnded, "job1", "n1", "TIMEOUT"}});
  CHECK(script.starts_ == std::vector<PoolBook::Number>{2});
  CHECK(script.logs_.empty());
  CHECK(script.book_.bad_starts() == 0);
}

TEST_CASE("an allocation whose agent has left is stopped when it does not end by itself") {
  PoolScript script({.places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join(1, 1);
  script.book_.node_has_left(1);
  script.scene_.nodes.clear();
  script.scene_.wanted = 0;
  script.look();
  script.pass(29s);
  CHECK(script.stops_.empty());
  script.pass(1s);
  CHECK(script.stops_ == std::vector<PoolBook::Number>{1});
}

TEST_CASE("starts that go wrong are tried again after longer and longer pauses") {
  PoolScript script({.backlog = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join(1, 1);  // it has worked before
  script.lose(1);
  script.machine_.on_stopped(1, "");
  script.look();
  std::vector<PoolMachine::Time> tries;
  for (int i = 0; i < 600 && tries.size() < 4; ++i) {
    if (!script.starts_.empty()) {
      tries.push_back(script.now_);
      script.machine_.on_not_started(std::exchange(script.starts_, {}).front(), "no credit left");
    }
    script.pass(1s);
  }
  REQUIRE(tries.size() == 4);
  CHECK(tries[1] - tries[0] >= 5s);
  CHECK(tries[2] - tries[1] >= 10s);
  CHECK(tries[3] - tries[2] >= 20s);
  CHECK(script.was_told("no credit left"));
}

TEST_CASE(
    "starts that are refused together lengthen the pause once, and trials say what they wait for") {
  PoolScript script({.max = 4, .backlog = 2, .places = 1});
  script.scene_.wanted = 4;
  CHECK(why_trials_wait(script.book_, 4, script.now_) == "");
  script.look();
  std::vector<PoolMachine::Time> tries;
  for (int i = 0; i < 600 && script.gave_up_.empty(); ++i) {
    if (!script.starts_.empty()) {
      tries.push_back(script.now_);
      for (const auto number : std::exchange(script.starts_, {})) {
        script.machine_.on_not_started(number, "no credit left");
      }
    }
    script.pass(1s);
    if (i == 3) {
      CHECK(
          why_trials_wait(script.book_, 4, script.now_) ==
          "4 trials wait: the pool's last start was in vain 3 s ago (no credit left) and is tried "
          "again");
    }
  }
  // 10 of 2 each, after pauses of 5, 10, 20 and 40 s.
  REQUIRE(tries.size() == 5);
  CHECK(tries[4] - tries[0] >= 75s);
  CHECK(tries[4] - tries[0] < 85s);
  CHECK(has(script.gave_up_, "10 starts in a row were in vain, the last: no credit left"));
}

TEST_CASE("after three starts in vain a pool that has worked pauses, and says how to go on") {
  PoolScript script({.max = 2, .backlog = 1, .places = 1});
  script.scene_.wanted = 5;
  script.look();
  script.start_all();
  script.join(1, 1);
  for (int i = 0; i < 200 && !script.book_.is_paused(); ++i) {
    const auto started = script.starts_;
    script.start_all();
    for (const auto number : started)
      script.list({{1, kJobRunning}, {number, kJobEnded, "", "", "FAILED"}});
    script.pass(5s);
  }
  CHECK(script.book_.is_paused());
  CHECK(script.was_told("3 starts in a row were in vain, the last: FAILED"));
  CHECK(script.was_told("tune pool DIR --resume"));
  CHECK(script.logs_.size() == 3);
  CHECK(script.gave_up_.empty());
  script.book_.order({.max = {}, .paused = false, .cause = "alice"});
  script.look();
  CHECK(script.starts_.size() == 1);
}

TEST_CASE("a pool that has never worked gives up instead of waiting for ever") {
  PoolScript script({.backlog = 1, .places = 1});
  script.scene_.wanted = 5;
  for (int i = 0; i < 200 && script.gave_up_.empty(); ++i) {
    script.look();
    const auto started = script.starts_;
    script.start_all();
    for (const auto number : started) script.list({{number, kJobEnded, "", "", "FAILED"}});
    script.pass(5s);
  }
  CHECK(has(script.gave_up_, "the last: FAILED"));
}

TEST_CASE("a start that ends before its own answer came is a start in vain") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  REQUIRE(script.book_.open().at(1).state == AllocationState::kRequested);
  script.list({{1, kJobEnded, "job1", "n1", "FAILED"}});
  CHECK(script.book_.open().empty());
  CHECK(script.book_.bad_starts() == 1);
  CHECK(script.logs_.size() == 1);
}

TEST_CASE("an allocation that runs without an agent is ended when its time to join is over") {
  PoolScript script({.max = 1, .places = 1, .join_within = 60s});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "job1", "n1"}});
  script.pass(59s);
  CHECK(script.stops_.empty());
  script.pass(2s);
  CHECK(script.stops_ == std::vector<PoolBook::Number>{1});
  script.machine_.on_stopped(1, "");
  script.look();
  CHECK(script.book_.bad_starts() == 1);
  REQUIRE_FALSE(script.logs_.empty());
  CHECK(has(script.logs_[0], "no agent came within 60 s"));
}

TEST_CASE("an allocation that its engine calls hopeless is a start in vain, and is stopped") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  ListedAllocation stuck{1, kJobQueued, "", "", "Pending (ImagePullBackOff: no such image)"};
  script.list({stuck});
  CHECK(script.stops_.empty());
  stuck.is_hopeless = true;
  script.list({stuck});
  script.list({stuck});  // it takes its time to go
  CHECK(script.stops_ == std::vector<PoolBook::Number>{1});
  script.list({});
  script.list({});
  CHECK(script.book_.open().empty());
  CHECK(script.book_.bad_starts() == 1);
  CHECK_HAS(script.book_.why_bad(), "ImagePullBackOff");
  REQUIRE(script.logs_.size() == 1);
  CHECK_HAS(script.logs_[0], "no such image");
}

TEST_CASE("a hopeless word about an allocation whose agent is there changes nothing") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join(1, 1);
  ListedAllocation stuck{1, kJobQueued, "", "", "Pending (ImagePullBackOff)"};
  stuck.is_hopeless = true;
  script.list({stuck});
  CHECK(script.stops_.empty());
}

TEST_CASE("a node that can hold no trial is sent away, and counts as a start in vain") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.book_.node_has_joined(1);
  script.scene_.nodes.push_back({AgentNumber{1}, 1, 0});
  script.look();
  CHECK(script.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
  script.book_.node_has_left(1);
  script.scene_.nodes.clear();
  script.list({{1, kJobEnded, "job1", "n1", "COMPLETED"}});
  CHECK(script.book_.bad_starts() == 1);
}

// ---- The next driver

TEST_CASE("a request that a killed driver had journaled is found by its name") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  CHECK(script.starts_.size() == 1);  // and the driver was killed before it heard of the id
  script.resume();
  CHECK(script.starts_.empty());  // not a second one
  script.list({{1, kJobQueued, "job1", "", "PENDING (Priority)"}});
  CHECK(script.book_.open().at(1).id == "job1");
  CHECK(script.book_.open().size() == 1);
  CHECK(script.starts_.empty());
}

TEST_CASE("a request that never came to the engine is forgotten, and another takes its place") {
  PoolScript script({.max = 1, .places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.resume();
  script.list({});
  CHECK(script.book_.open().contains(1));  // a command may be on its way still
  for (int i = 0; i < 40 && script.book_.open().contains(1); ++i) script.list({});
  CHECK_FALSE(script.book_.open().contains(1));
  CHECK(script.starts_ == std::vector<PoolBook::Number>{2});
  CHECK(script.book_.bad_submissions() == 0);
}

TEST_CASE("jobs of the driver before that this one's engine never lists were not in vain") {
  for (const bool is_listed_once : {false, true}) {
    CAPTURE(is_listed_once);
    PoolScript script({.max = 1, .places = 1});
    script.scene_.wanted = 1;
    script.look();
    script.start_all();
    script.list({{1, kJobQueued, "job1", "", "PENDING (Priority)"}});
    script.resume();
    if (is_listed_once) script.list({{1, kJobQueued, "job1", "", "PENDING (Priority)"}});
    script.list({});
    script.list({});
    CHECK_FALSE(script.book_.open().contains(1));
    CHECK(script.book_.bad_starts() == is_listed_once);
  }
}

TEST_CASE("agents of the driver before are waited for, and count until then") {
  PoolScript script({.max = 4, .backlog = 4, .places = 1});
  script.scene_.wanted = 2;
  script.look();
  script.start_all();
  script.join(1, 1);
  script.join(2, 1);
  script.resume();
  CHECK(script.starts_.empty());
  script.join(1, 1);
  script.pass(61s);
  CHECK(script.stops_ == std::vector<PoolBook::Number>{2});  // it has not come back
  CHECK(script.starts_ == std::vector<PoolBook::Number>{3});
}

TEST_CASE("an allocation of the experiment that the journal does not know is stopped") {
  PoolScript script;
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.resume();
  script.list({{1, kJobQueued, "job1"}, {7, kJobRunning, "job7"}, {8, kJobEnded, "job8"}});
  CHECK(script.stops_ == std::vector<PoolBook::Number>{7});
}

TEST_CASE("an allocation that lists lacked for a while is stopped when one has it again") {
  PoolScript pool;
  pool.scene_.wanted = 1;
  pool.look();
  pool.start_all();
  pool.list({{.number = 1, .state = kJobRunning, .id = "job1"}});
  pool.scene_.wanted = 0;
  pool.list({});
  pool.list({});
  REQUIRE(pool.book_.open().empty());
  CHECK(pool.stops_ == std::vector<PoolBook::Number>{});
  // Nothing more is asked for, and the engine is asked all the same.
  pool.list({{.number = 1, .state = kJobRunning, .id = "job1"}});
  CHECK(pool.stops_ == std::vector<PoolBook::Number>{1});
}

// Its one allocation is called ended while it runs, and no other is wanted.
PoolScript called_ended() {
  PoolScript pool;
  pool.scene_.wanted = 1;
  pool.look();
  pool.start_all();
  pool.scene_.wanted = 0;
  pool.list({{.number = 1, .state = kJobEnded, .id = "job1"}});
  REQUIRE(pool.book_.open().empty());
  return pool;
}

TEST_CASE("an allocation that was called ended once, and is there, is found and stopped") {
  PoolScript pool = called_ended();
  pool.list({{.number = 1, .state = kJobRunning, .id = "job1"}});
  CHECK(pool.stops_ == std::vector<PoolBook::Number>{1});
}

TEST_CASE("an allocation that was called ended twice, and is there, is found and stopped") {
  PoolScript pool = called_ended();
  pool.pass(PoolMachine::kUnseen);
  pool.list({{.number = 1, .state = kJobEnded, .id = "job1"}});
  pool.list({{.number = 1, .state = kJobRunning, .id = "job1"}});
  CHECK(pool.stops_ == std::vector<PoolBook::Number>{1});
  // It has been told to stop; two lists without it, and the engine is left alone.
  pool.pass(PoolMachine::kUnseen);
  for (int i = 0; i < PoolMachine::kSureLists; ++i) {
    CHECK(pool.machine_.is_unsure());
    pool.list({{.number = 1, .state = kJobEnded, .id = "job1"}});
  }
  CHECK_FALSE(pool.machine_.is_unsure());
  pool.pass(std::chrono::hours(1));
  CHECK_FALSE(pool.is_listing_);
}

TEST_CASE("an engine that does not list is told of once, and nothing is ended by it") {
  PoolScript script({.places = 1});
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  for (int i = 0; i < 6; ++i) {
    for (int n = 0; n < 200 && !script.is_listing_; ++n) script.pass(500ms);
    script.is_listing_ = false;
    script.machine_.on_not_listed("slurm_load_jobs error");
    script.look();
  }
  CHECK(script.notices_.size() == 1);
  CHECK(script.book_.open().size() == 1);
  script.list({{1, kJobQueued, "job1"}});
  CHECK(script.was_told("answers again"));
}

}  // namespace
}  // namespace tune
