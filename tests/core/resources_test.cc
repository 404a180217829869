#include "core/resources.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/refusal.h"
#include "numbers.h"

namespace tune {
namespace {

using testing::kInfinity;

TEST_CASE("amounts are counted in whole ten-thousandths, rounded down") {
  const std::pair<double, std::int64_t> cases[] = {
      {0, 0},          {1, 10000},   {0.5, 5000},       {0.3333, 3333}, {1.0 / 3, 3333},
      {0.00001, 0},    {0.3, 3000},  {0.1 + 0.2, 3000}, {0.7, 7000},    {16, 160000},
      {0.29999, 2999}, {1.1, 11000}, {1e6, 10000000000}};
  for (const auto& [amount, units] : cases) {
    CAPTURE(amount);
    CHECK(to_units(amount) == units);
  }
}

TEST_CASE("three times 0.3333 and ten times 0.1 fit into one GPU") {
  CHECK(3 * to_units(0.3333) <= kUnit);
  CHECK(3 * to_units(1.0 / 3) <= kUnit);
  CHECK(10 * to_units(0.1) == kUnit);
  CHECK(4 * to_units(0.3333) > kUnit);
}

TEST_CASE("cpu defaults to one a rank") {
  CHECK(to_request({}) == ResourceRequest{kUnit, 0, 0, 1});
  CHECK(to_request({.ranks = 4}).cpu_units == 4 * kUnit);
  const ResourceRequest request = to_request({.cpu = 6, .gpu = 4, .memory = "8GiB", .ranks = 4});
  CHECK(request == ResourceRequest{6 * kUnit, 4 * kUnit, std::int64_t{8} << 30, 4});
}

TEST_CASE("a rank gets whole GPUs or a share of one") {
  struct Case {
    double gpu;
    int ranks;
    bool fits;
  };
  const Case cases[] = {{0, 1, true},       {1, 1, true},     {2, 1, true}, {0.5, 1, true},
                        {0.3333, 1, true},  {1.5, 1, false},  {4, 4, true}, {8, 4, true},
                        {2, 4, true},       {6, 4, false},    {1, 3, true}, {1.2, 4, true},
                        {1.0001, 1, false}, {0.9999, 1, true}};
  for (const Case& one : cases) {
    CAPTURE(one.gpu);
    CAPTURE(one.ranks);
    const Resources resources = {.gpu = one.gpu, .ranks = one.ranks};
    if (one.fits) {
      CHECK(to_request(resources).gpu_units == to_units(one.gpu));
    } else {
      CHECK_HAS(testing::refusal([&] { to_request(resources); }), "whole, or below 1");
    }
  }
}

TEST_CASE("impossible resources are refused with their values") {
  struct Case {
    Resources resources;
    const char* part;
  };
  const Case cases[] = {
      {{.cpu = -1}, "cpu is -1"},
      {{.cpu = std::nan("")}, "cpu is nan"},
      {{.cpu = kInfinity}, "cpu is inf"},
      {{.cpu = 0}, "cpu 0 over 1 ranks"},
      {{.cpu = 0.0001, .ranks = 2}, "cpu 0.0001 over 2 ranks"},
      {{.gpu = -0.5}, "gpu is -0.5"},
      {{.gpu = 1e300}, "gpu is 1e+300"},
      {{.gpu = 0.00001}, "gpu 1e-05 over 1 ranks"},
      {{.memory = -1}, "memory is -1"},
      {{.ranks = 0}, "ranks is 0"},
      {{.ranks = -2}, "ranks is -2"},
      {{.ranks = 1000000}, "ranks is 1000000"},
  };
  for (const Case& one : cases) {
    CHECK_HAS(testing::refusal([&] { to_request(one.resources); }), one.part);
  }
}

TEST_CASE("memory is bytes or a text with a unit") {
  const std::pair<const char*, std::int64_t> cases[] = {{"0", 0},
                                                        {"1024", 1024},
                                                        {"512MiB", 512 << 20},
                                                        {"8GiB", std::int64_t{8} << 30},
                                                        {"8 GiB", std::int64_t{8} << 30},
                                                        {"8GB", 8000000000},
                                                        {"1.5KiB", 1536},
                                                        {"2kB", 2000},
                                                        {"1TiB", std::int64_t{1} << 40},
                                                        {"7B", 7},
                                                        {"4G", std::int64_t{4} << 30}};
  for (const auto& [text, bytes] : cases) {
    CAPTURE(text);
    CHECK(MemorySize(text).bytes() == bytes);
  }
  CHECK(MemorySize(4096).bytes() == 4096);
  CHECK(MemorySize(4096) == MemorySize("4KiB"));
  for (const char* text :
       {"", "GiB", "8Gib", "8GiBs", "-1GiB", "nan", "inf", "8 8", "1e30TiB", "0x10"}) {
    CAPTURE(text);
    CHECK_HAS(testing::refusal([&] { (void)MemorySize(text); }), "8GiB");
  }
}

}  // namespace
}  // namespace tune
