#include "trainables/torch/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/trainable.h"

namespace tune {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

int visible_gpus() {
  const std::string list = variable("CUDA_VISIBLE_DEVICES");
  if (list.empty()) return 0;
  return static_cast<int>(std::count(list.begin(), list.end(), ',')) + 1;
}

int own_index(int gpus) {
  for (const char* name : {"TUNE_DEVICE_INDEX", "LOCAL_RANK"}) {
    const std::string text = variable(name);
    if (text.empty()) continue;
    const int index = std::atoi(text.c_str());
    if (index < 0 || index >= gpus) {
      throw Error(ErrorCode::kBadInput, std::string(name) + " is " + text +
                                            ", but CUDA_VISIBLE_DEVICES names " +
                                            std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
    }
    return index;
  }
  return 0;
}

// What the build and the installation lay down, or what the user says.
std::vector<std::string> candidates() {
  const std::string given = variable("TUNE_CUDA_PART");
  if (!given.empty()) return {given};
  return {TUNE_CUDA_PART_BUILT, TUNE_CUDA_PART_INSTALLED};
}

CudaPart load_part() {
  std::string causes;
  for (const std::string& path : candidates()) {
    // Global: LibTorch's CUDA part registers itself, and what it registers is looked up by others.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      causes += std::string("\n  ") + ::dlerror();
      continue;
    }
    void* function = ::dlsym(library, kCudaPartFunction);
    if (function == nullptr) {
      causes += "\n  " + path + " does not export " + kCudaPartFunction;
      continue;
    }
    CudaPart part;
    reinterpret_cast<void (*)(CudaPart*)>(function)(&part);
    const std::string complaint = part.complaint();
    if (complaint.empty()) return part;
    throw Error(ErrorCode::kBadInput, "cannot use the GPUs: " + complaint);
  }
  throw Error(
      ErrorCode::kBadInput,
      "cannot use the GPUs: the CUDA part of tune::torch cannot be loaded (it is built where "
      "the CUDA toolkit is):" +
          causes);
}

}  // namespace

const CudaPart& cuda_part() {
  static const CudaPart part = load_part();
  return part;
}

void load_cuda() {
  cuda_part();
}

c10::Device own_device() {
  const int gpus = visible_gpus();
  if (gpus == 0) return c10::kCPU;
  const int index = own_index(gpus);
  cuda_part().use_device(index);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

c10::Device Context::device() const {
  return own_device();
}

}  // namespace tune
