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
  script.scene_.wanted = 5;
  script.look();
  script.start_all();
  script.list({{1, kJobRunning, "job1", "good"}});
  script.join(1, 1);
  std::size_t bad = 0;
  for (int i = 0; i < 200 && !script.book_.is_paused(); ++i) {
    for (const auto number : std::exchange(script.starts_, {})) {
      script.machine_.on_started(number, "j");
      script.look();
      script.list({{1, kJobRunning, "job1", "good"}, {number, kJobEnded, "j", "broken", "FAILED"}});
      ++bad;
    }
    script.pass(5s);
  }
  CHECK(bad == PoolMachine::kBadStarts);
  CHECK(script.book_.excluded().empty());
  CHECK(script.was_told("3 starts in a row were in vain, the last: FAILED (on broken)"));
  CHECK_FALSE(script.was_told("gets no more agents"));
}

}  // namespace
}  // namespace tune
