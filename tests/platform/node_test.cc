#include "core/platform/node.h"

#include <doctest/doctest.h>

namespace tune {
namespace {

TEST_CASE("quotas and limits of cgroups are read as numbers or as none") {
  CHECK_FALSE(cpus_of_quota("max 100000\n"));
  CHECK(*cpus_of_quota("150000 100000\n") == doctest::Approx(1.5));
  CHECK(*cpus_of_quota("50000\n 100000\n") == doctest::Approx(0.5));
  CHECK_FALSE(cpus_of_quota("-1\n 100000\n"));
  CHECK_FALSE(cpus_of_quota(""));
  CHECK(*bytes_of_limit("1073741824\n") == 1073741824);
  CHECK_FALSE(bytes_of_limit("max\n"));
  CHECK_FALSE(bytes_of_limit("9223372036854771712\n"));
  CHECK_FALSE(bytes_of_limit(""));
}

TEST_CASE("the GPUs offered are those that CUDA would show, in its order") {
  const std::vector<PhysicalGpu> all = {{"GPU-aaaa1111", "H", 80, {}},
                                        {"GPU-bbbb2222", "H", 80, {}},
                                        {"GPU-cccc3333", "H", 80, {"MIG-1", "MIG-2"}}};
  const auto names = [&](const std::optional<std::string>& visible) {
    std::vector<std::string> devices;
    for (const Gpu& gpu : visible_gpus(all, visible)) devices.push_back(gpu.device);
    return devices;
  };
  using Names = std::vector<std::string>;
  CHECK(names(std::nullopt) == Names{"0", "1", "MIG-1", "MIG-2"});
  CHECK(names("") == Names{});
  CHECK(names("1,0") == Names{"1", "0"});
  CHECK(names("1, 0") == Names{"1", "0"});
  CHECK(names("0,7,1") == Names{"0"});  // an invalid entry ends the list
  CHECK(names("-1") == Names{});
  CHECK(names("GPU-bbbb2222") == Names{"GPU-bbbb2222"});
  CHECK(names("GPU-bb") == Names{"GPU-bbbb2222"});
  CHECK(names("MIG-2,0") == Names{"MIG-2", "0"});
  CHECK(names("NoDevFiles") == Names{});
}

TEST_CASE("overrides give logical resources") {
  const NodeResources node = discover_node({.cpus = 6.5, .gpus = 3});
  CHECK(node.cpu_units == 65000);
  REQUIRE(node.gpus.size() == 3);
  CHECK(node.gpus[2].device == "2");
  CHECK(discover_node({}).cpu_units >= kUnit / 100);
  CHECK(discover_node({}).memory_bytes > 0);
}

}  // namespace
}  // namespace tune
