// The request of a trial and the offer of a node. Users write Resources; placement counts in units:
// whole ten-thousandths, rounded down, so that three times 0.3333 fits.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

// A number of bytes, written as a whole number or as text: 1024, "512MiB", "8GiB", "8GB".
class MemorySize {
 public:
  MemorySize() = default;
  MemorySize(std::integral auto bytes) : bytes_(static_cast<std::int64_t>(bytes)) {}  // NOLINT
  MemorySize(const char* text) : MemorySize(std::string_view(text)) {}                // NOLINT
  MemorySize(std::string_view text);  // NOLINT; Error (kBadInput) when it is not a size
  std::int64_t bytes() const { return bytes_; }
  friend bool operator==(const MemorySize&, const MemorySize&) = default;

 private:
  std::int64_t bytes_ = 0;
};

// Totals of one trial, split evenly over its ranks. cpu defaults to one a rank.
struct Resources {
  std::optional<double> cpu = {};
  double gpu = 0;
  MemorySize memory = {};
  int ranks = 1;
  friend bool operator==(const Resources&, const Resources&) = default;
};

inline constexpr std::int64_t kUnit = 10000;  // ten-thousandths of one CPU or GPU
std::int64_t to_units(double amount);          // rounded down, to the nearest 1e-9 first

// One trial's request in units. Each of `ranks` ranks gets cpu / ranks, and either gpu / ranks
// whole GPUs or a share below one of a single GPU.
struct ResourceRequest {
  std::int64_t cpu_units = kUnit;
  std::int64_t gpu_units = 0;
  std::int64_t memory_bytes = 0;
  int ranks = 1;
  friend bool operator==(const ResourceRequest&, const ResourceRequest&) = default;
};

// Checks and converts. Throws Error (kBadInput) for negative or non-finite amounts, ranks < 1, cpu
// that gives a rank nothing, gpu / ranks neither whole nor below 1; the message has the values.
ResourceRequest to_request(const Resources& resources);

// Which of a trial's GPUs on a node each of its ranks sees, and in which order. Where any is a MIG
// instance, of which CUDA shows a process only one, each rank sees its own alone.
enum class GpuVisibility : std::uint8_t {
  kTrial,    // all, the same for every rank: as torchrun has it
  kRotated,  // all, its own first: that is always cuda:0
  kLast = kRotated,
};

// One GPU of a node: what CUDA_VISIBLE_DEVICES is set to for it (a number, a UUID or a MIG id).
struct Gpu {
  std::string device;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::string uuid = {};  // or MIG id, as NVML has it; empty: a logical one
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct NodeResources {
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  std::vector<Gpu> gpus;
  friend bool operator==(const NodeResources&, const NodeResources&) = default;
};

}  // namespace tune
