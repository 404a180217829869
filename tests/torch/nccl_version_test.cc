#include "trainables/torch/nccl_version.h"

#include <doctest/doctest.h>

namespace tune {
namespace {

// 2.28.9 as LibTorch packs it: 16 bits each for minor and patch.
constexpr std::uint64_t kPacked = (2ull << 32) | (28ull << 16) | 9;

TEST_CASE("the NCCL that LibTorch was built with is not a complaint") {
  CHECK(NcclVersion::unpacked(kPacked).text() == "2.28.9");
  CHECK(nccl_complaint(NcclVersion::unpacked(kPacked), {2, 28, 9}).empty());
}

TEST_CASE("another NCCL is refused with both versions and what to do") {
  for (const NcclVersion compiled : {NcclVersion{2, 28, 8}, {2, 27, 9}, {3, 28, 9}, {28, 2, 9}}) {
    const std::string complaint = nccl_complaint(NcclVersion::unpacked(kPacked), compiled);
    CHECK(complaint == "LibTorch was built with NCCL 2.28.9, tune with the nccl.h of " +
                           compiled.text() + ": build it again with that of 2.28.9");
  }
}

}  // namespace
}  // namespace tune
