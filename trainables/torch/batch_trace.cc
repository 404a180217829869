#include "trainables/torch/batch_trace.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "core/error.h"
#include "trainables/torch/torch_error.h"

namespace tune {

BatchTrace::BatchTrace(const ProfileOptions& options, std::filesystem::path file, bool with_gpu)
    : batches_(options.batches), file_(std::move(file)), with_gpu_(with_gpu) {
  const auto [first, end] = batches_;
  if (first < 0 || end <= first) {
    bad_input("profile's batches are [" + std::to_string(first) + ", " + std::to_string(end) +
              "]: the first, from 0 on, and the one after the last are wanted");
  }
}

BatchTrace::~BatchTrace() {
  if (!is_watching_) return;
  try {
    write();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: %s\n", error.what());
  }
}

void BatchTrace::before(std::int64_t batch) {
  namespace profiler = torch::profiler::impl;
  if (is_watching_ || batch != batches_[0]) return;
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO,
                                        /*report_input_shapes=*/true);
  std::set<profiler::ActivityType> activities{profiler::ActivityType::CPU};
  if (with_gpu_) activities.insert(profiler::ActivityType::CUDA);
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
  is_watching_ = true;
}

void BatchTrace::after(std::int64_t batch) {
  if (is_watching_ && batch + 1 >= batches_[1]) write();
}

void BatchTrace::write() {
  is_watching_ = false;
  const auto result = torch::autograd::profiler::disableProfiler();
  std::error_code missing;
  std::filesystem::remove(file_, missing);
  result->save(file_.string());
  if (!std::filesystem::exists(file_, missing)) {
    throw Error(ErrorCode::kIo, "the trace " + file_.string() + " cannot be written");
  }
}

}  // namespace tune
