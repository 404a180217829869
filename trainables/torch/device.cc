#include "trainables/torch/device.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/platform/node.h"
#include "core/rank_environment.h"
#include "core/rank_start.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/torch_error.h"
#include "trainables/trainable.h"

namespace tune {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

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
            "a "
            "program that has yet to start trials or workers") {}
};

void refuse(const std::string& complaint) {
  if (!complaint.empty()) bad_input("cannot use the GPUs: " + complaint);
}

// GPUs that a list names are the trial's: a missing one is an error, and no reason for the CPU.
int visible_gpus() {
  if (const char* list = std::getenv("CUDA_VISIBLE_DEVICES")) {
    return static_cast<int>(named_gpus(list).size());
  }
  static const int all = gpu_count();  // the driver takes long to answer
  return all;
}

void check_shown(const std::string& who, int index) {
  if (index == 0 || !sees_mig_instance()) return;
  bad_input(who + " is " + std::to_string(index) + ", and CUDA_VISIBLE_DEVICES is " +
            variable("CUDA_VISIBLE_DEVICES") +
            ": of a list with MIG instances CUDA shows a process the first alone: start the ranks "
            "with tune launch, or name each one's own");
}

int own_index(int gpus) {
  for (const char* name : {"TUNE_DEVICE_INDEX", "LOCAL_RANK"}) {
    const std::string text = variable(name);
    if (text.empty()) continue;
    int index = -1;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, index);
    if (read.ec != std::errc() || read.ptr != end || index < 0) {
      bad_input(std::string(name) + " is " + text + ", a whole number from 0 on is wanted");
    }
    if (index < gpus) {
      check_shown(name, index);
      return index;
    }
    bad_input(std::string(name) + " is " + text + ", but " +
              (gpus == 1 ? "1 GPU is" : std::to_string(gpus) + " GPUs are") +
              " visible: start no more ranks than GPUs, or set CUDA_VISIBLE_DEVICES to nothing to "
              "compute on CPUs");
  }
  return 0;
}

// Of the GPU that this rank shares with others.
double own_part() {
  const std::string text = variable("TUNE_GPU_PART");
  if (text.empty()) return 1;
  double part = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, part);
  if (read.ec != std::errc() || read.ptr != end || !(part > 0 && part <= 1)) {
    bad_input("TUNE_GPU_PART is " + text + ", a number above 0 and at most 1 is wanted");
  }
  return part;
}

// The folder of the LibTorch that runs.
std::string torch_folder() {
  char folder[PATH_MAX] = ".";
  if (void* torch = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD)) {
    ::dlinfo(torch, RTLD_DI_ORIGIN, folder);
    ::dlclose(torch);
  }
  return folder;
}

// LibTorch's CUDA part. By its path, so that it is not that of another LibTorch.
std::string torch_cuda() {
  return torch_folder() + "/libtorch_cuda.so";
}

struct Opened {
  void* part = nullptr;  // our own
  std::string causes;    // why one of them is not open, a line each
};

// LibTorch's CUDA part, which brings cuDNN, cuBLAS and NCCL, and ours. Nothing of them is called.
Opened open_libraries() {
  Opened opened;
  // Global: LibTorch's CUDA part registers itself, and what it registers is looked up by others.
  const auto open = [&](const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) opened.causes += std::string("\n  ") + ::dlerror();
    return library;
  };
  open(torch_cuda());
  // Without a folder it is sought where programs that link tune::torch are told to.
  const std::string given = variable("TUNE_CUDA_PART");
  opened.part = open(given.empty() ? "libtune_torch_cuda.so" : given);
  return opened;
}

// The cuDNN that is open: its path, or nothing.
std::filesystem::path open_cudnn() {
  std::filesystem::path found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* into) {
        const std::filesystem::path path = library->dlpi_name;
        if (!path.filename().string().starts_with("libcudnn.so")) return 0;
        *static_cast<std::filesystem::path*>(into) = path;
        return 1;
      },
      &found);
  return found;
}

// cuDNN opens its parts (libcudnn_ops.so.9 and so on) when it is first used, by their names; those
// that lie beside it are the ones. It says itself what it cannot open.
void open_parts_of_cudnn() {
  const std::filesystem::path cudnn = open_cudnn();
  if (cudnn.empty()) return;
  const std::string version = cudnn.filename().string().substr(std::string("libcudnn").size());
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(cudnn.parent_path(), unreadable)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("libcudnn_") || !name.ends_with(version)) continue;
    ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

CudaPart load_part() {
  auto [library, causes] = open_libraries();
  if (library != nullptr) {
    if (void* function = ::dlsym(library, kCudaPartFunction)) {
      CudaPart part;
      reinterpret_cast<void (*)(CudaPart*)>(function)(&part);
      if (part.was_asked_too_early()) throw AskedTooEarly();
      refuse(part.complaint());
      return part;
    }
    causes.append("\n  the library does not export ").append(kCudaPartFunction);
  }
#ifdef TUNE_NO_CUDA_PART
  causes += "\n  tune::torch was built without it: " TUNE_NO_CUDA_PART;
#endif
  bad_input("cannot use the GPUs: the CUDA part of tune::torch cannot be loaded:" + causes);
}

// One state of CUDA in the process.
const CudaPart* loaded = nullptr;
std::optional<std::uint64_t> seed_to_come;

// LibTorch keeps for ever what it finds when it is first asked for CUDA, and so much asks it
// (torch::manual_seed, a backward) that only loading it first is safe. Where that fails the rank
// may do without GPUs, if it is not LibTorch that uses them; stderr says why. But where the program
// asked too early, `is_available() ? kCUDA : kCPU` would train on the CPU, in silence and for days:
// the rank ends. To execute the program again for its ranks would not help, as it would ask again.
void load_cuda_first() {
  try {
    if (visible_gpus() > 0) load_cuda();
  } catch (const AskedTooEarly&) {
    throw;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "LibTorch computes on CPUs: %s\n", error.what());
  }
}

// Opening takes seconds, and as much memory in each process that does it: trials are forked with
// all of it. LibTorch for CPUs has nothing to open.
std::string open_libraries_in_zygote() {
  if (!std::filesystem::exists(torch_cuda())) return {};
  const std::string causes = open_libraries().causes;
  open_parts_of_cudnn();
  if (causes.empty()) return {};
  return "libraries for the GPUs could not be opened before the trials are forked; each trial "
         "tries again:" +
         causes;
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

bool sees_mig_instance() {
  return std::ranges::any_of(named_gpus(variable("CUDA_VISIBLE_DEVICES")), is_mig_instance);
}

c10::Device own_device() {
  const int gpus = visible_gpus();
  if (gpus == 0) return c10::kCPU;
  const int index = own_index(gpus);
  refuse(cuda_part().use_device(index));
  if (const double part = own_part(); part < 1) cuda_part().limit_memory(part);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

c10::Device Context::device() const {
  return own_device();
}

}  // namespace tune

// Programs that link tune::torch are linked with this, and so with what is done here, also where
// they call nothing of this file: trainables/torch/CMakeLists.txt.
extern "C" const bool tune_torch_loads_cuda_first;
const bool tune_torch_loads_cuda_first = tune::at_rank_start(tune::load_cuda_first) &&
                                         tune::at_gpu_zygote_start(tune::open_libraries_in_zygote);

// Exported by plugins that link tune::torch, for the zygote that has loaded one.
extern "C" __attribute__((visibility("default"))) const char* tune_plugin_prepare();
extern "C" const char* tune_plugin_prepare() {
  static const std::string notice = tune::prepare_gpu_zygote();
  return notice.c_str();
}
