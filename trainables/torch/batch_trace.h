// BatchTrace: the operations of some batches of a training, with their times, as a file that
// ui.perfetto.dev and chrome://tracing show: Python's torch.profiler, with the same names.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>

namespace tune {

// Profiling slows the batches that it watches: a few after the first ones say most.
struct ProfileOptions {
  // The first batch, and the one after the last, counted from the training's beginning. {0, 0}:
  // none.
  std::array<std::int64_t, 2> batches = {0, 0};
};

class BatchTrace {
 public:
  // Refuses (kBadInput) batches that are not a range from 0 up. `with_gpu`: its kernels as well.
  BatchTrace(const ProfileOptions& options, std::filesystem::path file, bool with_gpu);
  ~BatchTrace();  // a trace that has begun is written
  BatchTrace(const BatchTrace&) = delete;
  BatchTrace& operator=(const BatchTrace&) = delete;

  // Around each batch, by the same thread. `after` throws Error (kIo) when the trace, which ends
  // with that batch, cannot be written.
  void before(std::int64_t batch);
  void after(std::int64_t batch);

 private:
  void write();

  std::array<std::int64_t, 2> batches_;
  std::filesystem::path file_;
  bool with_gpu_;
  bool is_watching_ = false;
};

}  // namespace tune
