// MIG instances: what a split GPU offers.
#pragma once

#include <string_view>

namespace tune {

// CUDA shows a process one of them at most, whatever CUDA_VISIBLE_DEVICES lists.
inline bool is_mig_instance(std::string_view device) {
  return device.starts_with("MIG-");
}

}  // namespace tune
