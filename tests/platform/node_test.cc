#include "core/platform/node.h"

#include <doctest/doctest.h>

#include <arpa/inet.h>

#include <string>
#include <vector>

#include "platform/surroundings.h"

namespace tune::testing {
namespace {

TEST_CASE("the path of a control group is found for both versions") {
  const char* const second = "0::/user.slice/session-1.scope\n";
  const char* const first =
      "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/a:b\n1:name=systemd:/x\n0::/y\n";
  struct Case {
    const char* text;
    const char* controller;
    std::optional<std::string> path;
  };
  for (const Case& c :
       {Case{second, "", "/user.slice/session-1.scope"}, Case{second, "cpu", std::nullopt},
        Case{first, "", "/y"}, Case{first, "cpu", "/docker/a:b"},
        Case{first, "cpuacct", "/docker/a:b"}, Case{first, "memory", "/docker/abc"},
        Case{first, "mem", std::nullopt}, Case{"", "", std::nullopt}, Case{"0::", "", std::nullopt},
        Case{"nonsense\n::\n", "cpu", std::nullopt}}) {
    CAPTURE(c.text);
    CAPTURE(c.controller);
    CHECK(cgroup_path(c.text, c.controller) == c.path);
  }
}

TEST_CASE("quotas of control groups are numbers of CPUs or none") {
  struct Case {
    const char* text;
    std::optional<double> cpus;
  };
  for (const Case& c :
       {Case{"max 100000\n", {}}, Case{"150000 100000\n", 1.5}, Case{"50000\n 100000\n", 0.5},
        Case{"-1\n 100000\n", {}}, Case{" ", {}}, Case{"", {}}, Case{"100000", {}},
        Case{"100000 0", {}}, Case{"0 100", {}}}) {
    CAPTURE(c.text);
    CHECK(cpus_of_quota(c.text) == c.cpus);
  }
}

TEST_CASE("limits of control groups are numbers of bytes or none") {
  CHECK(bytes_of_limit("1073741824\n") == 1073741824);
  CHECK_FALSE(bytes_of_limit("max\n"));
  CHECK_FALSE(bytes_of_limit("9223372036854771712\n"));  // version 1 means none by it
  CHECK_FALSE(bytes_of_limit("0"));
  CHECK_FALSE(bytes_of_limit(""));
}

TEST_CASE("the GPUs offered are those that CUDA would show, in its order") {
  const std::vector<PhysicalGpu> all = {{"GPU-aaaa1111", "H", 80, {}},
                                        {"GPU-aabb2222", "H", 80, {}},
                                        {"GPU-cccc3333", "H", 80, {"MIG-1", "MIG-12"}}};
  using Names = std::vector<std::string>;
  struct Case {
    std::optional<std::string> visible;
    Names devices;
  };
  for (const Case& c : {Case{std::nullopt, {"0", "1", "MIG-1", "MIG-12"}},
                        Case{"", {}},
                        Case{"1,0", {"1", "0"}},
                        Case{" 1 , 0", {"1", "0"}},
                        Case{"2", {"MIG-1"}},
                        Case{"0,7,1", {"0"}},
                        Case{"0,,1", {"0"}},
                        Case{"-1", {}},
                        Case{"1,-1,0", {"1"}},
                        Case{"0,0", {}},
                        Case{"1,0,01", {}},
                        Case{"99999999999999999999", {}},
                        Case{"GPU-aabb2222,GPU-aaaa1111", {"GPU-aabb2222", "GPU-aaaa1111"}},
                        Case{"GPU-aab", {"GPU-aabb2222"}},
                        Case{"GPU-aa", {}},
                        Case{"GPU-aab,GPU-aabb", {}},
                        Case{"GPU-dddd", {}},
                        Case{"GPU", {}},
                        Case{"2,MIG-1", {}},
                        Case{"MIG-12,0", {"MIG-12", "0"}},
                        Case{"MIG-1", {"MIG-1"}},
                        Case{"MIG-2", {}},
                        Case{"NoDevFiles", {}}}) {
    CAPTURE(c.visible.value_or("not set"));
    Names devices;
    for (const Gpu& gpu : visible_gpus(all, c.visible)) devices.push_back(gpu.device);
    CHECK(devices == c.devices);
  }
  CHECK(visible_gpus(all, "GPU-aaaa1111")[0] == Gpu{"GPU-aaaa1111", "H", 80, "GPU-aaaa1111"});
  CHECK(visible_gpus(all, "GPU-cccc3333")[0] == Gpu{"MIG-1", "H MIG", 0, "MIG-1"});
  CHECK(visible_gpus({}, std::nullopt).empty());
}

TEST_CASE("a list names GPUs up to the first entry that can be none") {
  using Names = std::vector<std::string>;
  for (const auto& [list, names] :
       std::vector<std::pair<const char*, Names>>{{"", {}},
                                                  {"-1", {}},
                                                  {"NoDevFiles", {}},
                                                  {" ", {}},
                                                  {",1", {}},
                                                  {"3", {"3"}},
                                                  {"0, 2 ,7", {"0", "2", "7"}},
                                                  {"1,-1,0", {"1"}},
                                                  {"0,,1", {"0"}},
                                                  {"0,", {"0"}},
                                                  {"GPU-aa,MIG-1,1", {"GPU-aa", "MIG-1", "1"}}}) {
    CAPTURE(list);
    CHECK(named_gpus(list) == names);
  }
}

TEST_CASE("overrides give logical resources") {
  const NodeResources node = discover_node({.cpus = 6.5, .gpus = 3});
  CHECK(node.cpu_units == 65000);
  REQUIRE(node.gpus.size() == 3);
  CHECK(node.gpus[2].device == "2");
  CHECK(discover_node({.cpus = {}, .gpus = 0}).gpus.empty());
}

TEST_CASE("this node has CPUs, memory, a name and an address") {
  const NodeResources node = discover_node({});
  CHECK(node.cpu_units >= kUnit / 100);
  CHECK(node.memory_bytes > 1 << 20);
  CHECK(node.gpus.size() == static_cast<std::size_t>(gpu_count()));
  const MemoryUse use = memory_use();
  CHECK(use.total_bytes == node.memory_bytes);
  CHECK(use.used_bytes > 0);
  CHECK(use.used_bytes <= use.total_bytes);
  CHECK_FALSE(hostname().empty());
  in_addr address{};
  CHECK(::inet_pton(AF_INET, primary_ip().c_str(), &address) == 1);
}

TEST_CASE("without visible devices there are no GPUs") {
  const ScopedVariable none("CUDA_VISIBLE_DEVICES", "");
  CHECK(gpu_count() == 0);
}

}  // namespace
}  // namespace tune::testing
