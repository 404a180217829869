// The hosts of a pool: those that are named, left out or drained.
#include "tune/drive/pool_machine.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "tune/drive/pool_script.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::kJobEnded;
using testing::kJobRunning;
using testing::PoolScript;

TEST_CASE("where hosts are given, each has one agent") {
  PoolScript script({.max = 16, .backlog = 8, .places = 1, .hosts = {"a", "b"}});
  script.scene_.wanted = 10;
  script.look();
  REQUIRE(script.all_starts_.size() == 2);
  CHECK(script.all_starts_[0].host == "a");
  CHECK(script.all_starts_[1].host == "b");
}

TEST_CASE("two names of one machine are two hosts, each with its own agent") {
  PoolScript script({.backlog = 8, .places = 1, .hosts = {"a", "b"}});
  script.scene_.wanted = 10;
  script.look();
  script.start_all();
  const auto at = [](PoolBook::Number number, const std::string& host) {
    return ListedAllocation{number, kJobRunning, "7", host};
  };
  script.list({at(1, "a"), at(2, "a"), at(1, "b"), at(2, "b")});
  CHECK(script.book_.open().at(1).host == "a");
  CHECK(script.book_.open().at(2).host == "b");
  CHECK(script.starts_.empty());
}

// A node joins from one host; starts on another end there at once. How many did.
std::size_t start_in_vain(PoolScript& script, const std::function<bool(std::size_t)>& is_enough) {
  script.scene_.wanted = 5;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "job1", "good"}});
  script.join(1, 1);
  std::size_t bad = 0;
  for (int i = 0; i < 200 && !is_enough(bad); ++i) {
    for (const auto number : std::exchange(script.starts_, {})) {
      script.machine_.on_started(number, "j");
      script.look();
      script.list({{1, kJobRunning, "job1", "good"}, {number, kJobEnded, "j", "broken", "FAILED"}});
      ++bad;
    }
    script.pass(5s);
  }
  return bad;
}

TEST_CASE("a host with three starts and no hello is left out") {
  PoolScript script({.backlog = 1, .places = 1});
  start_in_vain(script, [](std::size_t bad) { return bad >= 3; });
  script.pass(60s);
  CHECK(script.book_.excluded() == std::vector<std::string>{"broken"});
  CHECK(script.was_told("host broken gets no more agents"));
  CHECK_FALSE(script.book_.is_paused());
  REQUIRE_FALSE(script.starts_.empty());
  CHECK(script.all_starts_.back().excluded == std::vector<std::string>{"broken"});
}

TEST_CASE("starts in vain on one host pause a pool whose engine cannot leave it out") {
  PoolScript script({.backlog = 1, .places = 1, .leaves_hosts_out = false});
  const std::size_t bad =
      start_in_vain(script, [&](std::size_t) { return script.book_.is_paused(); });
  CHECK(bad == PoolMachine::kBadStarts);
  CHECK(script.book_.excluded().empty());
  CHECK(script.was_told("3 starts in a row were in vain, the last: FAILED (on broken)"));
  CHECK_FALSE(script.was_told("gets no more agents"));
}

// ---- Hosts that a user drains

// Nodes on `a` and `b`, whose agents leave when they are told to.
PoolScript two_hosts() {
  PoolScript script({.backlog = 8, .places = 1, .hosts = {"a", "b"}});
  script.scene_.wanted = 10;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "7", "a"}, {2, kJobRunning, "7", "b"}});
  script.join(1, 1);
  script.join(2, 1);
  return script;
}

void leave_drained(PoolScript& script) {
  script.book_.order({.max = {}, .paused = {}, .cause = "alice", .drained = "a"});
  script.look();
  REQUIRE(script.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
  std::erase_if(script.scene_.nodes, [](const auto& node) { return node.allocation == 1; });
  script.book_.node_has_left(1);
  script.list({{1, kJobEnded, "7", "a"}, {2, kJobRunning, "7", "b"}});
  REQUIRE_FALSE(script.book_.open().contains(1));
}

TEST_CASE("a host that a user drains has no agent until the pool is resumed") {
  PoolScript script = two_hosts();
  leave_drained(script);
  script.pass(1h);
  CHECK(script.all_starts_.size() == 2);
  CHECK(script.book_.bad_starts() == 0);
  CHECK(script.notices_.empty());
  script.book_.order({.max = {}, .paused = false, .cause = "alice"});
  script.look();
  REQUIRE(script.all_starts_.size() == 3);
  CHECK(script.all_starts_[2].host == "a");
}

TEST_CASE("a host that is drained when its agent is asked for, but not started yet, gets none") {
  PoolScript script({.backlog = 8, .places = 1, .hosts = {"a", "b"}});
  script.scene_.wanted = 1;
  script.machine_.look(script.now_, script.book_, script.scene_);
  const std::vector<PoolEvent> asked = script.machine_.take_events();
  REQUIRE(asked.size() == 1);
  script.book_.change(std::get<AllocationChanged>(asked[0]), script.now_);
  script.book_.order({.max = {}, .paused = {}, .cause = "alice", .drained = "a"});
  script.look();
  REQUIRE(script.all_starts_.size() == 1);
  CHECK(script.all_starts_[0].host == "b");
  CHECK_FALSE(script.book_.open().contains(1));
  CHECK(script.book_.bad_starts() == 0);
}

TEST_CASE("the next driver keeps a drained host out as well, and its agents leave") {
  PoolScript script = two_hosts();
  script.book_.order({.max = {}, .paused = {}, .cause = "alice", .drained = "a"});
  PackWriter out;
  script.book_.save(out);
  const std::string state = out.take();
  PackReader in(state);
  script.book_.restore(in);
  script.resume();
  script.join(2, 1);
  script.join(1, 1);
  CHECK(script.drained_ == std::vector<AgentNumber>{AgentNumber{1}});
  CHECK(script.book_.is_drained("a"));
  CHECK_FALSE(script.book_.is_drained("b"));
}

TEST_CASE("the last words of a drained host's agents do not bring it back") {
  PoolBook book;
  book.change({1, kJobRunning, "7", "a", ""}, 1s);
  book.order({.max = {}, .paused = {}, .cause = "alice", .drained = "a"});
  book.node_has_joined(1);
  CHECK(book.is_excluded("a"));
  book.change({2, kJobRunning, "8", "a", ""}, 2s);
  book.change({2, kJobEnded, "8", "a", "FAILED", AllocationFault::kStart}, 3s);
  CHECK(book.is_excluded("a"));
}

TEST_CASE("a pool whose hosts are all drained pauses, and goes on when it is resumed") {
  PoolScript script = two_hosts();
  leave_drained(script);
  script.book_.order({.max = {}, .paused = {}, .cause = "alice", .drained = "b"});
  script.look();
  CHECK(script.book_.is_paused());
  CHECK(script.was_told("no host is left"));
  CHECK(script.gave_up_.empty());
  script.book_.order({.max = {}, .paused = false, .cause = "alice"});
  script.look();
  CHECK(script.all_starts_.back().host == "a");
}

TEST_CASE("so does one whose hosts are drained before any agent took part") {
  PoolScript script({.backlog = 8, .places = 1, .hosts = {"a", "b"}});
  for (const char* host : {"a", "b"}) {
    script.book_.order({.max = {}, .paused = {}, .cause = "alice", .drained = host});
  }
  script.scene_.wanted = 1;
  script.look();
  CHECK(script.all_starts_.empty());
  CHECK(script.book_.is_paused());
  CHECK(script.was_told("no host is left"));
  CHECK(script.gave_up_.empty());
  script.book_.order({.max = {}, .paused = false, .cause = "alice"});
  script.look();
  CHECK(script.all_starts_.size() == 1);
}

}  // namespace
}  // namespace tune
