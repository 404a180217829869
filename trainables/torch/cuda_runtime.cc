// The state of CUDA in a process, of which there is one: not loaded, or the table of our library
// that speaks to it (cuda_part.h). Whoever runs a rank starts it before the user's code, by
// begin_rank() of core/rank_start.h.
#include <dlfcn.h>

#include <cstdio>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/rank_start.h"
#include "trainables/torch/cuda_libraries.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/device.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

// LibTorch was asked for CUDA when it had none, in the process that this one was forked from.
class AskedTooEarly : public Error {
 public:
  AskedTooEarly()
      : Error(
            ErrorCode::kBadInput,
            "cannot use the GPUs: LibTorch was asked for CUDA (torch::manual_seed, "
            "torch::cuda::is_available, torch::cuda::device_count, a backward or the like) before "
            "its CUDA part was loaded, and keeps the answer that there is none: seed by "
            "tune::seed_all, ask for the device by context().device(), and ask nothing of CUDA in "
            "a program that has yet to start trials or workers") {}
};

CudaPart load_part() {
  auto [library, causes] = open_cuda_libraries();
  if (library != nullptr) {
    if (void* function = ::dlsym(library, kCudaPartFunction)) {
      CudaPart part;
      reinterpret_cast<void (*)(CudaPart*)>(function)(&part);
      if (part.was_asked_too_early()) throw AskedTooEarly();
      if (const std::string complaint = part.complaint(); !complaint.empty()) {
        bad_input("cannot use the GPUs: " + complaint);
      }
      return part;
    }
    causes.append("\n  the library does not export ").append(kCudaPartFunction);
  }
#ifdef TUNE_NO_CUDA_PART
  causes += "\n  tune::torch was built without it: " TUNE_NO_CUDA_PART;
#endif
  bad_input("cannot use the GPUs: the CUDA part of tune::torch cannot be loaded:" + causes);
}

const CudaPart* loaded = nullptr;
std::optional<std::uint64_t> seed_to_come;

// LibTorch keeps for ever what it finds when it is first asked for CUDA, and so much asks it
// (torch::manual_seed, a backward) that only loading it first is safe. Where that fails the rank
// may do without GPUs, if it is not LibTorch that uses them; stderr says why. But where the program
// asked too early, `is_available() ? kCUDA : kCPU` would train on the CPU, in silence and for days:
// the rank ends. To execute the program again for its ranks would not help, as it would ask again.
void start_cuda_in_rank() {
  try {
    if (visible_gpus() > 0) load_cuda();
  } catch (const AskedTooEarly&) {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "LibTorch computes on CPUs: %s\n", error.what());
  }
}

}  // namespace

const CudaPart& cuda_part() {
  static const CudaPart part = load_part();
  if (loaded == nullptr) {
    loaded = &part;
    if (seed_to_come) part.seed(*seed_to_come);
  }
  return part;
}

const CudaPart* loaded_cuda_part() {
  return loaded;
}

void load_cuda() {
  cuda_part();
}

void seed_cuda(std::uint64_t seed) {
  seed_to_come = seed;
  if (loaded != nullptr) loaded->seed(seed);
}

}  // namespace tune

// Programs that link tune::torch are linked with this, and so with what is done here, also where
// they call nothing of this file: trainables/torch/CMakeLists.txt. Nothing is done at load but to
// say what a rank and a zygote are to begin with.
extern "C" const bool tune_torch_starts_cuda;
const bool tune_torch_starts_cuda =
    tune::at_rank_start(tune::start_cuda_in_rank) &&
    tune::at_gpu_zygote_start(tune::open_cuda_libraries_before_forks);

// Exported by plugins that link tune::torch, for the zygote that has loaded one.
extern "C" __attribute__((visibility("default"))) const char* tune_plugin_prepare();
extern "C" const char* tune_plugin_prepare() {
  static const std::string notice = tune::prepare_gpu_zygote();
  return notice.c_str();
}
