#include "core/rank_environment.h"

#include <doctest/doctest.h>

#include "rank_variables.h"

using namespace tune;

namespace {

bool nothing_is_set(const std::string&) {
  return false;
}

TEST_CASE("a rank's environment is torchrun's, with our own beside it") {
  const RankPlace place{.local_ranks = 3, .master_port = 4321, .threads = 2};
  const Environment environment = rank_environment(place, 1, nothing_is_set);
  const auto expected = testing::rank_variables(1, 3);
  CHECK(environment.size() == expected.size() + 1);
  CHECK(environment.at("TUNE_DEVICE_INDEX") == "1");
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    REQUIRE(environment.contains(name));
    if (!value.empty()) CHECK(environment.at(name) == value);
  }
  CHECK(environment.at("MASTER_PORT") == "4321");
  CHECK(environment.at("OMP_NUM_THREADS") == "2");
  CHECK(environment.at("MKL_NUM_THREADS") == "2");
}

TEST_CASE("ranks of a later node are numbered after those before it") {
  const RankPlace place{.local_ranks = 2, .nodes = 3, .node = 2, .master_address = "192.0.2.1"};
  const Environment environment = rank_environment(place, 1, nothing_is_set);
  CHECK(environment.at("RANK") == "5");
  CHECK(environment.at("ROLE_RANK") == "5");
  CHECK(environment.at("LOCAL_RANK") == "1");
  CHECK(environment.at("WORLD_SIZE") == "6");
  CHECK(environment.at("GROUP_RANK") == "2");
  CHECK(environment.at("GROUP_WORLD_SIZE") == "3");
}

TEST_CASE("where the ranks meet is said when it is known") {
  Environment environment = rank_environment({}, 0, nothing_is_set);
  CHECK_FALSE(environment.contains("MASTER_ADDR"));
  CHECK_FALSE(environment.contains("MASTER_PORT"));
  add_rendezvous(environment, "192.0.2.1", 77);
  CHECK(environment.at("MASTER_ADDR") == "192.0.2.1");
  CHECK(environment.at("MASTER_PORT") == "77");
}

TEST_CASE("the number of threads is the user's where he says it, each for itself") {
  const auto is_omp = [](const std::string& name) { return name == "OMP_NUM_THREADS"; };
  const Environment environment = rank_environment({.threads = 4}, 0, is_omp);
  CHECK_FALSE(environment.contains("OMP_NUM_THREADS"));
  CHECK(environment.at("MKL_NUM_THREADS") == "4");
}

TEST_CASE("DDP of ranks without GPUs takes its memory from their backend, unless the user says") {
  Environment environment;
  add_bucket_memory(environment, [](const std::string&) { return true; });
  CHECK(environment.empty());
  add_bucket_memory(environment, nothing_is_set);
  CHECK(environment == Environment{{"DDP_DISABLE_COMM_MEM", "0"}});
}

TEST_CASE("of MIG instances a rank is shown its own alone, of whole GPUs all") {
  using List = std::vector<std::string>;
  const struct {
    List devices;
    std::size_t own;
    std::size_t count;
    List shown;
    std::size_t index;
  } cases[] = {
      {{"0", "1", "2"}, 1, 1, {"0", "1", "2"}, 1},
      {{"MIG-a", "MIG-b"}, 1, 1, {"MIG-b"}, 0},
      {{"MIG-a", "MIG-b", "MIG-c", "MIG-d"}, 2, 2, {"MIG-c", "MIG-d"}, 0},
      {{"0", "MIG-b"}, 0, 1, {"0"}, 0},  // one of them is enough
      {{"MIG-a"}, 1, 1, {}, 0},          // more ranks than instances
      {{}, 0, 0, {}, 0},
  };
  for (const auto& one : cases) {
    const ShownGpus shown = shown_gpus(one.devices, one.own, one.count);
    CHECK(shown.devices == one.shown);
    CHECK(shown.own == one.index);
  }
  Environment environment;
  add_gpus(environment, {{"0", "2"}, 1});
  CHECK(environment.at("CUDA_VISIBLE_DEVICES") == "0,2");
  CHECK(environment.at("TUNE_DEVICE_INDEX") == "1");
}

}  // namespace
