// What a machine keeps of what it has stored.
#include "core/agent/kept_checkpoints.h"

#include <doctest/doctest.h>

#include <string>

#include "agent/relay_sides.h"

namespace tune {
namespace {

CheckpointOrigin of_trial(std::uint32_t trial, std::uint64_t iteration = 10) {
  return {TrialNumber{trial}, iteration, AttemptNumber{1}};
}

struct Kept {
  MemoryFiles files;
  KeptCheckpoints kept{files, RelaySides::kExperiment};

  void keep(const CheckpointOrigin& checkpoint) {
    files.folders.insert(checkpoint_place(RelaySides::kExperiment, checkpoint).place);
    files.files[checkpoint_place(RelaySides::kExperiment, checkpoint).place + "/step"] =
        std::to_string(checkpoint.iteration);
    kept.keep(checkpoint);
  }
  bool has(const CheckpointOrigin& checkpoint) const {
    return files.folders.contains(checkpoint_place(RelaySides::kExperiment, checkpoint).place);
  }
  static RelayPlace place() { return restored_place(RelaySides::kExperiment, {3}, {2}); }
};

TEST_CASE("the newest stored checkpoint of a trial is kept, until the trial is over") {
  Kept one;
  one.keep(of_trial(3, 10));
  one.keep(of_trial(3, 20));
  CHECK_FALSE(one.has(of_trial(3, 10)));
  CHECK(one.has(of_trial(3, 20)));
  one.kept.on_ended({3}, false);
  CHECK(one.files.folders.empty());
  CHECK(one.files.files.empty());
}

TEST_CASE("a trial that goes on begins with what was kept of it, once") {
  Kept one;
  one.keep(of_trial(3));
  one.kept.on_ended({3}, true);
  CHECK(one.kept.give({3}, of_trial(3), Kept::place()));
  CHECK(one.files.shown(Kept::place().place) == "step=10;");
  CHECK_FALSE(one.has(of_trial(3)));
  CHECK_FALSE(one.kept.give({3}, of_trial(3), Kept::place()));
}

TEST_CASE("what a trial does not begin with is of no more use") {
  Kept one;
  one.keep(of_trial(3));
  SUBCASE("an older one") {
    CHECK_FALSE(one.kept.give({3}, of_trial(3, 9), Kept::place()));
  }
  SUBCASE("another trial's, which that may still need") {
    one.keep(of_trial(4));
    CHECK_FALSE(one.kept.give({3}, of_trial(4), Kept::place()));
    CHECK(one.has(of_trial(4)));
  }
  SUBCASE("a folder that is gone") {
    one.files.folders.clear();
    CHECK_FALSE(one.kept.give({3}, of_trial(3), Kept::place()));
  }
  CHECK_FALSE(one.has(of_trial(3)));
}

TEST_CASE("of paused trials the last few are kept, beside all that run") {
  Kept one;
  constexpr auto kMost = static_cast<std::uint32_t>(KeptCheckpoints::kMostWaiting);
  for (std::uint32_t trial = 0; trial <= kMost + 1; ++trial) one.keep(of_trial(trial));
  for (std::uint32_t trial = 0; trial <= kMost; ++trial) one.kept.on_ended({trial}, true);
  CHECK_FALSE(one.has(of_trial(0)));
  for (std::uint32_t trial = 1; trial <= kMost + 1; ++trial) CHECK(one.has(of_trial(trial)));
}

TEST_CASE("a trial that was paused here begins with what it has stored, and nothing is carried") {
  RelaySides sides;
  const std::string folder = checkpoint_place(RelaySides::kExperiment, of_trial(3)).place;
  sides.agent_files.folders.insert(folder);
  sides.agent_files.files[folder + "/step"] = "10";
  sides.client->store({{3}, {1}, 10, {}, {}});
  sides.run(std::chrono::seconds(1));
  CHECK(sides.driver_files.shown(folder) == "step=10;");
  sides.client->on_ended({3}, true);
  const std::uint64_t before = sides.messages;
  sides.client->fetch({3}, {2}, of_trial(3));
  sides.run(std::chrono::seconds(1));
  REQUIRE(sides.ended<RelayFetched>().size() == 1);
  CHECK(sides.ended<RelayFetched>()[0].error.empty());
  CHECK(sides.agent_files.shown(Kept::place().place) == "step=10;");
  CHECK(sides.messages == before);
}

}  // namespace
}  // namespace tune
