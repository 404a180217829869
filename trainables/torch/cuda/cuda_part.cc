// The part that is linked with CUDA and NCCL; see trainables/torch/cuda_part.h.
#include "trainables/torch/cuda_part.h"

#include <nccl.h>
#include <torch/cuda.h>

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>
#include <mutex>
#include <typeinfo>

#include "trainables/torch/nccl_version.h"

namespace tune {
namespace {

#ifdef TUNE_NCCL_VERSION_CODE
static_assert(NCCL_VERSION_CODE == TUNE_NCCL_VERSION_CODE,
              "nccl.h is not of the version that LibTorch was built with");
#endif

std::string complaint() {
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  if (typeid(hooks) == typeid(at::CUDAHooksInterface)) {
    return "LibTorch was asked for CUDA (torch::manual_seed, torch::cuda::is_available or the "
           "like) before its CUDA part was loaded, and keeps the answer that there is none: seed "
           "by "
           "tune::seed_all, ask for the device first, and ask nothing of CUDA in a program that "
           "has "
           "yet to start trials or workers";
  }
  if (c10::cuda::device_count() == 0) return "CUDA finds none";
  return nccl_complaint(NcclVersion::unpacked(torch::cuda::nccl::version()),
                        {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH});
}

std::string use_device(int index) {
  const int gpus = c10::cuda::device_count();
  if (index >= gpus) {
    return "CUDA finds " + std::to_string(gpus) + ", and none of the index " +
           std::to_string(index);
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  return {};
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout) {
  // Else a collective that is out of time is given more, to write down what for.
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", 0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, std::move(options));
}

void seed(std::uint64_t seed) {
  for (c10::DeviceIndex index = 0; index < c10::cuda::device_count(); ++index) {
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(index);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

at::Generator generator() {
  return at::cuda::detail::getDefaultCUDAGenerator();
}

}  // namespace
}  // namespace tune

extern "C" __attribute__((visibility("default"))) void tune_cuda_part(tune::CudaPart* part) {
  *part = {tune::complaint, tune::use_device, tune::make_nccl, tune::seed, tune::generator};
}
