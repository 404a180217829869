// Pools where no node holds a trial: whole groups of nodes are asked for, kept and given back.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/refusal.h"
#include "tune/drive/pool_script.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::kJobEnded;
using testing::kJobQueued;
using testing::kJobRunning;
using testing::PoolScript;
using Numbers = std::vector<PoolBook::Number>;

PoolMachine::Options pairs(std::uint32_t max, std::uint32_t backlog = 10) {
  return {.max = max, .backlog = backlog, .places = 0, .group = 2, .idle = 60s};
}

TEST_CASE("a pool asks for whole groups of nodes, and for none that completes no group") {
  PoolScript five(pairs(5));
  five.scene_.wanted = 9;
  five.look();
  CHECK(five.starts_ == Numbers{1, 2, 3, 4});  // a fifth would wait for a sixth
  PoolScript one(pairs(16));
  one.scene_.wanted = 1;
  one.look();
  CHECK(one.starts_ == Numbers{1, 2});
  PoolScript small(pairs(5));
  small.book_.order({.max = 1, .paused = {}, .cause = "alice"});
  small.scene_.wanted = 3;
  small.look();
  small.look();
  CHECK(small.starts_.empty());
  REQUIRE(small.notices_.size() == 1);
  CHECK_HAS(small.notices_[0],
            "no trial can begin: each needs 2 nodes of the pool's, which may have 1");
}

TEST_CASE("the nodes of one trial wait in the queue together, whatever the backlog") {
  PoolScript script({.max = 9, .backlog = 2, .places = 0, .group = 3});
  script.scene_.wanted = 5;
  script.look();
  CHECK(script.starts_ == Numbers{1, 2, 3});
}

TEST_CASE("idle nodes count by groups, with machines that have joined by hand") {
  PoolScript script(pairs(8));
  PoolScene::Node by_hand{AgentNumber{99}};
  by_hand.group = 2;
  script.scene_.nodes.push_back(by_hand);
  script.scene_.wanted = 1;
  script.look();
  CHECK(script.starts_ == Numbers{1});  // the rest of a group
  script.scene_.wanted = 2;
  script.look();
  CHECK(script.starts_ == Numbers{1, 2, 3});
}

TEST_CASE("a node that a trial runs on is no half of another one") {
  PoolScript script(pairs(8));
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join_part(1);
  script.join_part(2);
  script.begin_on({1, 2});
  CHECK(script.starts_.empty());
  script.scene_.wanted = 1;
  script.look();
  CHECK(script.starts_ == Numbers{3, 4});
  // Another one is at its end: its trial goes on with the other node, and with one that is new.
  script.start_all();
  script.scene_.wanted = 0;
  script.scene_.nodes[0].is_out = true;
  script.scene_.groups = 0;
  script.scene_.nodes[1].is_held = false;
  script.look();
  CHECK(script.starts_.empty());  // those that are on their way do
  script.scene_.wanted = 1;
  script.look();
  CHECK(script.starts_ == Numbers{5});
}

TEST_CASE("nodes that turn out smaller are asked for in larger groups, or are of no use") {
  PoolScript script(pairs(8));
  script.scene_.wanted = 1;
  script.look();
  script.start_all();
  script.join_part(1, 4);
  CHECK(script.starts_ == Numbers{3, 4});
  PoolScript narrow(pairs(3));
  narrow.scene_.wanted = 1;
  narrow.look();
  narrow.start_all();
  narrow.join_part(1, 4);
  CHECK(narrow.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
}

// ---- A node that waits for the rest of its group

// One of two is there, the other one in the queue.
PoolScript half(const PoolMachine::Options& options = pairs(2)) {
  PoolScript script(options);
  script.scene_.wanted = 3;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "job1"}, {2, kJobQueued, "job2", "", "PENDING (Priority)"}});
  script.join_part(1);
  return script;
}

TEST_CASE("a node waits for the rest of its group longer than an idle one, and says so once") {
  PoolScript script = half();
  script.pass(59s);
  CHECK(script.notices_.empty());
  script.pass(1s);
  script.pass(30s);
  REQUIRE(script.notices_.size() == 1);
  CHECK_HAS(
      script.notices_[0],
      "3 trials wait: each needs 2 nodes, 1 waits for the others, 1 job PENDING (Priority) for");
  CHECK_HAS(script.notices_[0], "are given back after 6 min");
  script.pass(269s);
  CHECK(script.drained_.empty());
  script.join_part(2);
  script.begin_on({1, 2});
  script.pass(600s);
  CHECK(script.drained_.empty());
  CHECK(script.stops_.empty());
}

TEST_CASE("a node that has waited in vain is given back, and the next one waits twice as long") {
  PoolScript script = half();
  script.pass(360s);
  CHECK(script.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
  script.book_.node_has_left(1);
  script.scene_.nodes.clear();
  script.list({{1, kJobEnded, "job1"}, {2, kJobQueued, "job2", "", "PENDING (Priority)"}});
  CHECK(script.starts_ == Numbers{3});
  CHECK(script.book_.bad_starts() == 0);
  script.start_all();
  script.join_part(3);
  script.pass(719s);
  CHECK(script.drained_.size() == 1);
  script.pass(1s);
  CHECK(script.drained_.size() == 2);
}

TEST_CASE("a node whose group cannot become whole is given back as an idle one") {
  PoolScript script = half();
  script.book_.order({.max = {}, .paused = true, .cause = "alice"});
  script.list({{1, kJobRunning, "job1"}, {2, kJobEnded, "job2", "", "CANCELLED"}});
  script.pass(30s);  // the list came within 15 s
  CHECK(script.drained_.empty());
  script.pass(30s);
  CHECK(script.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
  CHECK(script.starts_.empty());
}

TEST_CASE("what waits in the queue is cancelled when its group may not become whole") {
  PoolScript script(pairs(4));
  script.scene_.wanted = 2;
  script.look();
  script.start_all();
  script.list({{1, kJobQueued}, {2, kJobQueued}, {3, kJobQueued}, {4, kJobQueued}});
  script.join_part(1);
  script.join_part(2);
  script.begin_on({1, 2});
  script.list({{1, kJobRunning}, {2, kJobRunning}, {3, kJobQueued}, {4, kJobEnded}});
  CHECK(script.stops_.empty());  // another fourth one may come
  script.book_.order({.max = 3, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.stops_ == Numbers{3});
}

TEST_CASE("a lower maximum cancels the rest of a group as well") {
  PoolScript script(pairs(4));
  script.scene_.wanted = 2;
  script.look();
  script.start_all();
  script.list({{1, kJobQueued}, {2, kJobQueued}, {3, kJobQueued}, {4, kJobQueued}});
  script.book_.order({.max = 3, .paused = {}, .cause = "alice"});
  script.look();
  CHECK(script.stops_ == Numbers{4});
  script.look();
  CHECK(script.stops_ == Numbers{4, 3});
}

// ---- Words

TEST_CASE("it is told that trials wait for several nodes each") {
  PoolBook book;
  book.change({1, kJobQueued, "j", "", "PENDING (Priority)"}, 0s);
  CHECK(why_trials_wait(book, 3, 4min, {.nodes = 2}) ==
        "3 trials wait: each needs 2 nodes, 1 job PENDING (Priority) for 4 min");
  CHECK(
      why_trials_wait(book, 1, 4min, {.nodes = 3, .idle = 2}) ==
      "1 trial waits: it needs 3 nodes, 2 wait for the others, 1 job PENDING (Priority) for 4 min");
  CHECK(why_trials_wait({}, 3, 4min, {.nodes = 2, .most = 1}) ==
        "3 trials wait: each needs 2 nodes, the pool may have 1 (max)");
  CHECK(why_trials_wait({}, 3, 4min, {.nodes = 2}).empty());
}

}  // namespace
}  // namespace tune
