#include "trainables/torch/cuda_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

namespace tune {
namespace {

// The folder of the LibTorch that runs.
std::string torch_folder() {
  char folder[PATH_MAX] = ".";
  if (void* torch = ::dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD)) {
    ::dlinfo(torch, RTLD_DI_ORIGIN, folder);
    ::dlclose(torch);
  }
  return folder;
}

// By its path, so that it is not that of another LibTorch.
std::string torch_cuda() {
  return torch_folder() + "/libtorch_cuda.so";
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

}  // namespace

CudaLibraries open_cuda_libraries() {
  CudaLibraries opened;
  // Global: LibTorch's CUDA part registers itself, and what it registers is looked up by others.
  const auto open = [&](const std::string& path) {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) opened.causes += std::string("\n  ") + ::dlerror();
    return library;
  };
  open(torch_cuda());
  // Without a folder it is sought where programs that link tune::torch are told to.
  const char* given = std::getenv("TUNE_CUDA_PART");
  const bool is_given = given != nullptr && *given != '\0';
  opened.part = open(is_given ? given : "libtune_torch_cuda.so");
  return opened;
}

std::string open_cuda_libraries_before_forks() {
  if (!std::filesystem::exists(torch_cuda())) return {};
  const std::string causes = open_cuda_libraries().causes;
  open_parts_of_cudnn();
  if (causes.empty()) return {};
  return "libraries for the GPUs could not be opened before the trials are forked; each trial "
         "tries again:" +
         causes;
}

}  // namespace tune
