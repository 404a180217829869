#include "tune/drive/object_removals.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "s3_stand.h"

namespace tune {
namespace {

using testing::S3Stand;
using Names = std::vector<std::string>;

TEST_CASE("only what no attempt may still record is removed") {
  const std::map<std::string, TrialObjects> trials{
      {"e_00000", {{"checkpoint_000004-a2", "checkpoint_000002"}, AttemptNumber{2}}},
      {"e_00001", {{}, AttemptNumber{1}}}};
  const Names names{"e_00000/checkpoint_000002/manifest.json",
                    "e_00000/checkpoint_000003/part",
                    "e_00000/checkpoint_000004-a2/manifest.json",
                    "e_00000/checkpoint_000005-a2/manifest.json",
                    "e_00000/checkpoint_000006-a3/part",  // it may run
                    "e_00001/checkpoint_000001/part",
                    "e_00001/another/file",
                    "e_00002/checkpoint_000001/part",
                    ".proof-1"};
  CHECK(unrecorded_objects(names, trials) == Names{"e_00000/checkpoint_000003/part",
                                                   "e_00000/checkpoint_000005-a2/manifest.json",
                                                   "e_00001/checkpoint_000001/part"});
}

Trial trial_with(std::uint32_t number, std::vector<std::uint64_t> iterations) {
  Trial trial;
  trial.number = TrialNumber{number};
  for (const std::uint64_t iteration : iterations) {
    CheckpointRecord record;
    record.iteration = iteration;
    record.attempt = AttemptNumber{1};
    trial.checkpoints.push_back(record);
  }
  return trial;
}

TEST_CASE("removals wait for a store that is away, and the end removes what is nobody's") {
  S3Stand stand;
  for (const auto& [name, value] : stand.environment()) setenv(name.c_str(), value.c_str(), 1);
  const std::string root = "p/s-1/e_00000/checkpoint_00000";
  for (const char* name : {"1/manifest.json", "1/part", "2/manifest.json", "2/part", "3/part"}) {
    stand.put(root + name, "x");
  }
  stand.put("p/s-2/e_00000/checkpoint_000001/part", "another experiment's");
  stand.put("p/s-1/e_00001/checkpoint_000001/part", "cut off");
  ObjectRemovals removals({"s3://checkpoints/p/s-1", "", ""}, "e");
  std::size_t failures = 0;
  stand.answer_by([&](const S3Stand::Asked&) -> std::optional<S3Stand::Answer> {
    if (failures++ == 0) return S3Stand::error(503, "SlowDown");
    return std::nullopt;
  });
  removals.remove(TrialNumber{0}, {1, AttemptNumber{1}});
  CHECK(removals.finish({trial_with(0, {2}), trial_with(1, {})}, false));
  CHECK(stand.keys() ==
        Names{root + "2/manifest.json", root + "2/part", "p/s-2/e_00000/checkpoint_000001/part"});
  for (const auto& [name, value] : stand.environment()) unsetenv(name.c_str());
}

TEST_CASE("a store that stays away is not waited for at the end") {
  S3Stand stand;
  for (const auto& [name, value] : stand.environment()) setenv(name.c_str(), value.c_str(), 1);
  stand.refuse(503, "SlowDown");
  ObjectRemovals removals({"s3://checkpoints/p", "", ""}, "e");
  CHECK_FALSE(removals.finish({trial_with(0, {2})}, true));
  for (const auto& [name, value] : stand.environment()) unsetenv(name.c_str());
}

}  // namespace
}  // namespace tune
