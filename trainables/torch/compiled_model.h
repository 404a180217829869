// A model that Python compiled ahead of time with AOTInductor, for inference without its code:
//
//   program = torch.export.export(net.eval(), (example,))                                # Python
//   torch._inductor.aoti_compile_and_package(program, package_path="net.pt2")
//   tune::CompiledModel model("net.pt2");                                                // C++
//   at::Tensor output = model.forward(images);
//
// A package holds machine code for one kind of device and processor, which is executed: load none
// that you would not run. It computes no gradients. What torch.export.save alone wrote has no code
// in it, and there is no public reader of it in C++.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tune {

struct CompiledModelOptions {
  std::string name = "model";  // of several in one package
  std::size_t runners = 1;     // calls at a time, from as many threads; others wait
  int gpu = -1;                // of a package for GPUs; below 0: this rank's own
};

class CompiledModel {
 public:
  // Throws Error: kIo when there is no such file; kBadInput when it is not such a package, and when
  // it was compiled for another device, machine or processor, which it names.
  explicit CompiledModel(const std::filesystem::path& package,
                         const CompiledModelOptions& options = {});
  ~CompiledModel();
  CompiledModel(const CompiledModel&) = delete;

  // The outputs in the order of Python's, flattened. Inputs lie on the package's device and have
  // the shapes and types that it was exported with; others are refused (kBadInput).
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs);
  // Of a model of one input; its only, or first, output.
  at::Tensor forward(const at::Tensor& input);

  // The weights of a checkpoint (model.safetensors, or Python's model.pt) instead of those that
  // were compiled: what a sweep found, in the code that was made of the model once. All that the
  // package names must be there, of the same shape and type, and it must name all of them but
  // counters (kBadInput): it does when it was compiled with
  // inductor_configs={"always_keep_tensor_constants": True}, without which short tensors become
  // constants. No call may be under way.
  void load_weights(const std::filesystem::path& directory);
  std::vector<std::string> weights() const;  // their names, as in Python's state_dict()

  const std::string& device() const;  // "cpu" or "cuda"

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace tune
