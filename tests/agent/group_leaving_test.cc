// Groups over several nodes of which one is told to end.
#include <algorithm>
#include <csignal>

#include <doctest/doctest.h>

#include "agent/group_scripts.h"

using namespace tune;
using namespace tune::testing;
using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("the trial of a node that is to leave has that node's time to save") {
  LeadScript script;
  script.begin();
  script.hear(NodeLeaves{"it is drained", 10min});
  const auto told = script.wanted<TellWorker>();
  REQUIRE(told.size() == 1);
  CHECK(std::get<StopAttempt>(told[0].command).grace == 10min);
}

TEST_CASE("what a node says after one of them was told to end is not a failure of the trial") {
  LeadScript script;
  script.begin();
  script.hear(NodeLeaves{"its agent was told to end (SIGTERM)"});
  script.hear(FromRank{3, WorkerEnded{Outcome::kException, "its loader was killed"}});
  script.exits(101, 1);
  script.exits(102, 1);
  for (const std::uint32_t rank : {2u, 3u}) {
    script.hear(RankGone{rank, true, false, 1, "exited with code 1", {}});
  }
  const AttemptEnded ended = script.concluded();
  CHECK(ended.outcome == Outcome::kLost);
  CHECK(ended.is_of_node);
}

TEST_CASE("a part of a group that fails when its agent was told to end takes the blame") {
  for (const bool dies : {false, true}) {
    CAPTURE(dies);
    PartScript script;
    script.start();
    script.machine.on_signal(script.now, "SIGTERM");
    CHECK(script.said().empty());  // the driver may have been told as well
    if (dies) {
      script.dies(102, SIGTERM);
    } else {
      script.end(2, Outcome::kException, "its loader was killed");
    }
    const Lines said = script.said();
    const auto blame = std::ranges::find(said, "to lead: fails: it was told to end");
    REQUIRE(blame != said.end());
    const std::string failure =
        dies ? "to lead: rank 3 is gone: killed by signal 15" : "to lead: word of rank 3";
    CHECK(std::find(blame, said.end(), failure) != said.end());
  }
}
