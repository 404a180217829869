#include "trainables/torch/compiled_model.h"

#include <ATen/core/grad_mode.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/platform/process.h"
#include "trainables/torch/checkpoint.h"
#include "trainables/torch/device.h"
#include "trainables/torch/torch_error.h"

namespace tune {

using Loader = torch::inductor::AOTIModelPackageLoader;
using Metadata = std::unordered_map<std::string, std::string>;
using Weights = std::unordered_map<std::string, at::Tensor>;

struct CompiledModel::Loaded {
  std::string file;
  std::string device;
  std::unique_ptr<Loader> loader;
};

namespace {

namespace fs = std::filesystem;

constexpr const char* kDevice = "AOTI_DEVICE_KEY";

// Not all words that Python may write are known; one that is not is taken to be there.
bool has_instructions(const std::string& word) {
#if defined(__x86_64__)
  if (word == "AVX2") return __builtin_cpu_supports("avx2");
  if (word == "AVX512") return __builtin_cpu_supports("avx512f");
  if (word == "AVX512_VNNI") return __builtin_cpu_supports("avx512vnni");
#endif
  return !word.empty();
}

// A package's library is linked with libtorch.so, which a program of tune::torch does not open.
// LibTorch's own would open all of CUDA with it: cuDNN and NCCL, which are not everywhere, for a
// package that needs neither. So an empty library of that name comes first (torch_name/). What the
// package calls is in libtorch_cpu.so, and of one for GPUs in libtorch_cuda.so, which are open.
void open_libtorch() {
  constexpr const char* kName = "libtorch.so";
  constexpr const char* kOurs = "libtune_torch_name.so";
  if (::dlopen(kName, RTLD_NOW | RTLD_NOLOAD) != nullptr) return;
  if (::dlopen(kOurs, RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* cause = ::dlerror();
  bad_input(std::string("a compiled package asks for ") + kName + ", for which " + kOurs +
            " stands, and that cannot be opened (" + (cause == nullptr ? "unknown" : cause) +
            "): put it where libtune_torch.a is installed, or where LD_LIBRARY_PATH says");
}

// A package of another machine would end the process with an unknown instruction, or not load.
void expect_runs_here(const std::string& file, const Metadata& metadata) {
  const auto said = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  utsname here = {};
  ::uname(&here);
  if (const std::string machine = said("AOTI_MACHINE");
      !machine.empty() && machine != here.machine) {
    bad_input(file + " was compiled for " + machine + ", this is " + here.machine +
              ": compile it again here");
  }
  std::istringstream words(said("AOTI_CPU_ISA"));
  for (std::string word; words >> word;) {
    if (has_instructions(word)) continue;
    bad_input(file + " was compiled with the instructions " + said("AOTI_CPU_ISA") +
              ", and this processor has no " + word +
              ": compile it again here, or with ATEN_CPU_CAPABILITY=avx2 in the environment");
  }
}

Metadata metadata_of(const std::string& file, const std::string& name) {
  std::string cause = "it names no device";
  try {
    Metadata metadata = Loader::load_metadata_from_package(file, name);
    if (metadata.contains(kDevice)) return metadata;
  } catch (const std::exception& error) {
    cause = cause_of(error);
  }
  bad_input(file + " is not a package of AOTInductor with a model \"" + name + "\" (" + cause +
            "): make one in Python by torch._inductor.aoti_compile_and_package("
            "torch.export.export(model.eval(), (example,)), package_path=\"model.pt2\"); "
            "what torch.export.save or torch.jit.save wrote is none");
}

// LibTorch unpacks a package into a folder of its own in /tmp, and leaves it there when it cannot
// load what it has unpacked; no error names it. Its like: /tmp/Ab3dEf/net/data/aotinductor/model.
std::set<fs::path> unpacked_packages(const std::string& name) {
  constexpr std::size_t kRandom = 6;
  std::set<fs::path> found;
  std::error_code ignored;  // a folder may be gone by now, or be another user's
  for (const auto& folder : fs::directory_iterator("/tmp", ignored)) {
    if (folder.path().filename().string().size() != kRandom) continue;
    struct stat status {};
    if (::lstat(folder.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid()) {
      continue;
    }
    for (const auto& archive : fs::directory_iterator(folder.path(), ignored)) {
      if (fs::is_directory(archive.path() / "data" / "aotinductor" / name, ignored)) {
        found.insert(folder.path());
      }
    }
  }
  return found;
}

// Removes what a failed load left. Each process that loads has a shared lock on /tmp: where another
// one loads as well, its folder cannot be told from this one's, and both stay.
class Unpacking {
 public:
  explicit Unpacking(std::string name)
      : name_(std::move(name)), tmp_(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    is_locked_ = tmp_.is_open() && ::flock(tmp_.get(), LOCK_SH | LOCK_NB) == 0;
    if (is_locked_) before_ = unpacked_packages(name_);
  }
  void remove_rest() const {
    constexpr int kTries = 100;  // a load takes less than the second that these do
    bool is_alone = false;
    for (int i = 0; is_locked_ && !is_alone && i < kTries; ++i) {
      if (i > 0) ::usleep(10'000);
      is_alone = ::flock(tmp_.get(), LOCK_EX | LOCK_NB) == 0;
    }
    if (!is_alone) return;
    std::set<fs::path> fresh = unpacked_packages(name_);
    std::erase_if(fresh, [&](const fs::path& folder) { return before_.contains(folder); });
    std::error_code ignored;  // the load's own error is the one to tell
    if (fresh.size() == 1) fs::remove_all(*fresh.begin(), ignored);
  }

 private:
  std::string name_;
  FileDescriptor tmp_;
  bool is_locked_ = false;
  std::set<fs::path> before_;
};

// Else a package reads whatever lies behind a tensor that is too small. Read by it when it first
// runs.
void check_inputs() {
  ::setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 0);
}

}  // namespace

CompiledModel::CompiledModel(const fs::path& package, const CompiledModelOptions& options)
    : loaded_(std::make_unique<Loaded>()) {
  loaded_->file = package.string();
  if (options.runners < 1) bad_input("runners of a compiled model is 0, at least 1 is wanted");
  if (!fs::is_regular_file(package)) {
    throw Error(ErrorCode::kIo, "reading " + package.string() + ": there is no such file");
  }
  Metadata metadata = metadata_of(loaded_->file, options.name);
  loaded_->device = metadata[kDevice];
  expect_runs_here(loaded_->file, metadata);
  int gpu = -1;
  if (loaded_->device == "cuda") {
    const c10::Device own = own_device();
    if (!own.is_cuda()) {
      bad_input(loaded_->file + " was compiled for a GPU, and this process has none: compile it " +
                "again for the CPU");
    }
    gpu = options.gpu >= 0 ? options.gpu : own.index();
  }
  open_libtorch();
  check_inputs();
  const Unpacking unpacking(options.name);
  try {
    loaded_->loader =
        std::make_unique<Loader>(loaded_->file, options.name, /*run_single_threaded=*/false,
                                 options.runners, static_cast<c10::DeviceIndex>(gpu));
  } catch (const std::exception& error) {
    unpacking.remove_rest();
    bad_input("loading " + loaded_->file + ": " + cause_of(error) + " (it has to be compiled by " +
              "the PyTorch of this LibTorch, " + TORCH_VERSION + ")");
  }
}

CompiledModel::~CompiledModel() = default;

std::vector<at::Tensor> CompiledModel::run(const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_gradients;
  try {
    return loaded_->loader->run(inputs);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    std::string given;
    for (const at::Tensor& input : inputs) given += (given.empty() ? "" : ", ") + describe(input);
    bad_input("running " + loaded_->file + " with (" + given + "): " + cause_of(error) +
              " (stderr says what was wrong: inputs have the shapes, types and strides, and are " +
              "on the device, that the package was exported with)");
  }
}

at::Tensor CompiledModel::forward(const at::Tensor& input) {
  return run({input}).at(0);
}

std::vector<std::string> CompiledModel::weights() const {
  std::vector<std::string> names = loaded_->loader->get_constant_fqns();
  std::ranges::sort(names);
  return names;
}

void CompiledModel::load_weights(const fs::path& directory) {
  const std::string start = "loading " + directory.string() + " into " + loaded_->file + ": ";
  Weights saved, given;
  for (auto& [name, tensor] : read_weights(directory)) saved.emplace(name, std::move(tensor));
  const Weights present = loaded_->loader->get_runner()->extract_constants_map(false);
  for (const auto& [name, tensor] : present) {
    const auto found = saved.find(name);
    if (found == saved.end()) bad_input(start + "the checkpoint has no " + name);
    const at::Tensor& value = found->second;
    if (value.sizes() != tensor.sizes() || value.scalar_type() != tensor.scalar_type()) {
      bad_input(start + name + " is " + describe(value) + " in the checkpoint and " +
                describe(tensor) + " in the package");
    }
    given.emplace(name, value.to(tensor.device()));
  }
  // Without the checkpoint's value the package would compute with the compiled one, in silence.
  for (const auto& [name, tensor] : saved) {
    if (!tensor.is_floating_point() || present.contains(name)) continue;
    bad_input(start + "the package has no " + name + ": it is of another model, or the compiler " +
              "made constants of short tensors, which aoti_compile_and_package(..., " +
              "inductor_configs={\"always_keep_tensor_constants\": True}) prevents");
  }
  try {
    loaded_->loader->load_constants(given, /*use_inactive=*/false, /*check_full_update=*/true);
  } catch (const std::exception& error) {
    bad_input(start + cause_of(error));
  }
}

const std::string& CompiledModel::device() const {
  return loaded_->device;
}

}  // namespace tune
