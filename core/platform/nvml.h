// NVIDIA's management library, loaded at run time when it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/node.h"

namespace tune {

// Every GPU of the machine; empty when there is no driver.
std::vector<PhysicalGpu> list_gpus();

// The load of a whole device, by all processes that use it.
struct GpuLoad {
  std::optional<double> busy;  // share of the last moments in which it computed; nothing for MIG
  std::int64_t memory_bytes = 0;
};

// Loads the library at the first reading, which takes a moment, and keeps it. One thread uses it.
class GpuMeter {
 public:
  GpuMeter();
  ~GpuMeter();
  GpuMeter(const GpuMeter&) = delete;

  // Of the device or MIG instance with that id, as list_gpus() has it. Nothing when there is no
  // driver, or it does not know the device.
  std::optional<GpuLoad> read(const std::string& uuid);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tune
