// Whether the NCCL that LibTorch was built with is the one whose header we were compiled with.
// ncclConfig_t lies inside c10d's options and differs between versions: with another one it would
// be read and written at the wrong places. Free of NCCL and LibTorch.
#pragma once

#include <cstdint>
#include <string>

namespace tune {

struct NcclVersion {
  std::uint64_t major = 0;
  std::uint64_t minor = 0;
  std::uint64_t patch = 0;
  bool operator==(const NcclVersion&) const = default;

  // As torch::cuda::nccl::version() packs it.
  static NcclVersion unpacked(std::uint64_t packed) {
    return {packed >> 32, (packed >> 16) & 0xffff, packed & 0xffff};
  }
  std::string text() const {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  }
};

// Empty when they are the same, else what is wrong and what to do.
inline std::string nccl_complaint(const NcclVersion& of_torch, const NcclVersion& compiled) {
  if (of_torch == compiled) return {};
  return "LibTorch was built with NCCL " + of_torch.text() + ", tune with the nccl.h of " +
         compiled.text() + ": build it again with that of " + of_torch.text();
}

}  // namespace tune
