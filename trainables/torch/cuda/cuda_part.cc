// The part that is linked with CUDA and NCCL; see trainables/torch/cuda_part.h.
#include "trainables/torch/cuda_part.h"

#include <nccl.h>
#include <torch/cuda.h>

#include <c10/cuda/CUDAFunctions.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "trainables/torch/nccl_version.h"

namespace tune {
namespace {

#ifdef TUNE_NCCL_VERSION_CODE
static_assert(NCCL_VERSION_CODE == TUNE_NCCL_VERSION_CODE,
              "nccl.h is not of the version that LibTorch was built with");
#endif

std::string complaint() {
  if (c10::cuda::device_count() == 0) return "CUDA finds none";
  return nccl_complaint(NcclVersion::unpacked(torch::cuda::nccl::version()),
                        {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH});
}

void use_device(int index) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int size, std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, std::move(options));
}

}  // namespace
}  // namespace tune

extern "C" __attribute__((visibility("default"))) void tune_cuda_part(tune::CudaPart* part) {
  *part = {tune::complaint, tune::use_device, tune::make_nccl};
}
