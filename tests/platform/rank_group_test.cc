// Which of several ranks that end is told to be the cause. Other properties of groups are tested
// with whole programs: launch_test.cc, distributor_test.cc.
#include "core/platform/rank_group.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <vector>

namespace tune {
namespace {

using Ending = std::function<void()>;

Ending exits(int code) {
  return [code] { _exit(code); };
}

Ending is_killed() {
  return [] { kill(getpid(), SIGKILL); };
}

Ending runs() {
  return [] {
    while (true) pause();
  };
}

// Ranks that have ended already when the group looks at them, but those that run.
RankGroupEnd end_of(const std::vector<std::pair<Ending, bool>>& ranks, int good_code = 0) {
  RankGroupOptions options;
  options.ranks = static_cast<int>(ranks.size());
  options.good_code = good_code;
  options.start = [&](int rank, int, int) {
    const auto& [ending, ends] = ranks[static_cast<std::size_t>(rank)];
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      ending();
    }
    siginfo_t info{};
    if (ends) waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
    return pid;
  };
  return run_rank_group(options);
}

TEST_CASE("a rank that is killed goes before one that failed in the same moment") {
  const RankGroupEnd end = end_of({{exits(1), true}, {is_killed(), true}, {runs(), false}});
  REQUIRE(end.failure);
  CHECK(end.failure->rank == 1);
  CHECK(WTERMSIG(end.failure->wait_status) == SIGKILL);
}

TEST_CASE("the first of ranks that fail alike is the cause, and ranks that are ended are none") {
  const RankGroupEnd exited = end_of({{runs(), false}, {exits(7), true}, {exits(8), true}});
  REQUIRE(exited.failure);
  CHECK(exited.failure->rank == 1);
  CHECK(WEXITSTATUS(exited.failure->wait_status) == 7);
  const RankGroupEnd killed = end_of({{runs(), false}, {is_killed(), true}, {is_killed(), true}});
  REQUIRE(killed.failure);
  CHECK(killed.failure->rank == 1);
}

TEST_CASE("any code but the good one is a failure") {
  CHECK_FALSE(end_of({{exits(0), true}, {exits(0), true}}).failure);
  CHECK_FALSE(end_of({{exits(5), true}, {exits(5), true}}, 5).failure);
  const RankGroupEnd end = end_of({{exits(5), true}, {exits(0), true}}, 5);
  REQUIRE(end.failure);
  CHECK(end.failure->rank == 1);
}

}  // namespace
}  // namespace tune
