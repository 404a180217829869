// A model that Python wrote as TorchScript, which trains without a line of its code in C++:
//
//   torch.jit.script(net).save("net.ts")                       # Python; or torch.jit.trace
//   tune::ScriptModel net("net.ts");                           // C++
//   register_training({.models = {net}, .optimizers = {...net->parameters()...}, ...});
//
// PyTorch calls TorchScript deprecated; of what came after it, torch.export and torch.compile,
// nothing that trains can be read from C++. For inference see compiled_model.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tune {

// Parameters and buffers are the script's own, by the names that they have in Python's
// state_dict(): optimizers, ranks, precision and checkpoints take it as any module, and Python
// loads its model.safetensors into the class that it was made of.
class ScriptModelImpl : public torch::nn::Module {
 public:
  // On the CPU, in training mode. Throws Error: kIo when there is no such file; kBadInput when it
  // is not TorchScript (of torch.save the error says what to call in Python), and when it has no
  // parameter, as after torch.jit.freeze.
  explicit ScriptModelImpl(const std::filesystem::path& file);

  // Of a forward that takes one tensor and returns one; Error (kBadInput) names another type that
  // it returns.
  at::Tensor forward(const at::Tensor& input);
  // Any number of tensors; the one that comes back, or those of a tuple or list.
  std::vector<at::Tensor> outputs(const std::vector<at::Tensor>& inputs,
                                  const std::string& method = "forward");

  void train(bool on = true) override;

 private:
  struct Script;
  std::shared_ptr<Script> script_;
};

TORCH_MODULE(ScriptModel);

}  // namespace tune
