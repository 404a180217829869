// Stands for the library that speaks to CUDA and NCCL, on a machine that has neither: each call is
// a line in the file FAKE_CUDA_LOG, and each process that opens it one in FAKE_CUDA_OPENED. The GPU
// of a rank is FAKE_GPU_ID.
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "trainables/torch/cuda_part.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

void note(const std::string& line) {
  std::ofstream(variable("FAKE_CUDA_LOG"), std::ios::app) << line << '\n';
}

[[maybe_unused]] const bool tells = [] {
  const std::string file = variable("FAKE_CUDA_OPENED");
  if (file.empty()) return false;
  std::ofstream(file, std::ios::app) << "libtune_torch_cuda " << ::getpid() << '\n';
  return true;
}();

class FakeNccl : public c10d::Backend {
 public:
  FakeNccl(int rank, int size) : Backend(rank, size) {}
  const std::string getBackendName() const override { return "nccl"; }
  void shutdown() override { note("shutdown"); }
  void abort() override { note("abort"); }
};

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int rank,
                                            int size, std::chrono::milliseconds,
                                            const std::function<void(std::function<bool()>)>&) {
  note("nccl");
  return c10::make_intrusive<FakeNccl>(rank, size);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void tune_cuda_part(tune::CudaPart* part) {
  note("loaded");
  *part = {[] { return !variable("FAKE_CUDA_WAS_ASKED").empty(); },
           [] { return std::string(); },
           [](int) { return std::string(); },
           [](int) { return variable("FAKE_GPU_ID"); },
           make_nccl,
           [](std::uint64_t) {},
           [] { return at::Generator(); },
           [](double part) { note("at most " + std::to_string(part)); },
           [] { note("gives memory back"); },
           [](const std::vector<at::Tensor>& tensors) { return tensors; },
           [] { return std::unique_ptr<tune::DeviceGraph>(); }};
}
