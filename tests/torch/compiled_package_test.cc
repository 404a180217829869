// What is not a package of AOTInductor for this machine.
#include <caffe2/serialize/inline_container.h>

#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

// A package that says this of itself, and holds no code.
std::string refusal_of_package(const std::string& metadata, const std::string& library = "",
                               const std::string& model = "model") {
  const testing::TemporaryFolder folder;
  const fs::path file = folder.path() / "net.pt2";
  {
    caffe2::serialize::PyTorchStreamWriter writer(file.string());
    const std::string name = "data/aotinductor/" + model + "/c.wrapper";
    writer.writeRecord(name + "_metadata.json", metadata.data(), metadata.size());
    if (!library.empty()) writer.writeRecord(name + ".so", library.data(), library.size());
    writer.writeEndOfFile();
  }
  return refusal([&] { CompiledModel(file, {.name = model}); });
}

std::string of(const std::string& device, const std::string& machine, const std::string& words) {
  return "{\"AOTI_DEVICE_KEY\": \"" + device + "\", \"AOTI_MACHINE\": \"" + machine +
         "\", \"AOTI_CPU_ISA\": \"" + words + "\"}";
}

TEST_CASE("what is not a package is refused, and the error says what to call in Python") {
  const std::string data = std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/script_model/";
  CHECK_HAS(refusal([&] { CompiledModel model(data + "absent.pt2"); }, ErrorCode::kIo),
            "there is no such file");
  for (const char* name : {"exported.pt2", "net.ts", "trained.txt"}) {
    CAPTURE(name);
    CHECK_HAS(refusal([&] { CompiledModel model(data + name); }),
              "torch._inductor.aoti_compile_and_package");
  }
  CHECK_HAS(refusal_of_package("{}"), "it names no device");
  CHECK_HAS(refusal([&] { CompiledModel(data + "net.ts", {.runners = 0}); }),
            "runners of a compiled model is 0");
}

TEST_CASE("a package for another device, machine or processor is refused by its name") {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  CHECK_HAS(refusal_of_package(of("cuda", "", "AVX2")),
            "was compiled for a GPU, and this process has none: compile it again for the CPU");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK_HAS(refusal_of_package(of("cpu", "s390x", "ZVECTOR")), "was compiled for s390x, this is ");
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx512f")) {
    CHECK_HAS(refusal_of_package(of("cpu", "x86_64", "AVX512 AVX512_VNNI")),
              "this processor has no AVX512: compile it again here, or with ATEN_CPU_CAPABILITY");
  }
#endif
}

// Folders in /tmp into which a package of this model was unpacked.
std::set<fs::path> unpacked(const std::string& name) {
  std::set<fs::path> found;
  std::error_code ignored;
  for (const auto& folder : fs::directory_iterator("/tmp", ignored)) {
    for (const auto& archive : fs::directory_iterator(folder.path(), ignored)) {
      if (fs::exists(archive.path() / "data/aotinductor" / name, ignored)) {
        found.insert(folder.path());
      }
    }
  }
  return found;
}

TEST_CASE("a package whose library cannot be opened is refused with the version that is wanted") {
  // Of a name of its own: other tests load packages at the same time.
  const std::string name = "model_of_" + std::to_string(::getpid());
  const std::string words = refusal_of_package(of("cpu", "", ""), "not a library", name);
  CHECK_HAS(words, "net.pt2: ");
  CHECK_HAS(words, "by the PyTorch of this LibTorch");
  CHECK(unpacked(name).empty());  // LibTorch leaves it
}

}  // namespace
}  // namespace tune
