#include "trainables/torch/script_model.h"

#include <torch/script.h>

#include <utility>

#include "core/error.h"
#include "trainables/torch/torch_error.h"

namespace tune {

struct ScriptModelImpl::Script {
  torch::jit::Module module;
};

namespace {

namespace fs = std::filesystem;
using torch::jit::IValue;

torch::jit::Module script_in(const fs::path& file) {
  if (!fs::is_regular_file(file)) {
    throw Error(ErrorCode::kIo, "reading " + file.string() + ": there is no such file");
  }
  try {
    return torch::jit::load(file.string(), c10::kCPU);
  } catch (const std::exception& error) {
    bad_input(file.string() + " is not a model in TorchScript (" + cause_of(error) +
              "): write one in Python by torch.jit.script(model).save(\"" +
              file.filename().string() + "\")");
  }
}

// The tensors of `from`, which stay the script's: what an optimizer does to them is done to it.
// Modules of LibTorch take no names with dots, so that there is one for each of the script's.
void take_tensors(const torch::jit::Module& from, torch::nn::Module& to) {
  for (const auto& parameter : from.named_parameters(/*recurse=*/false)) {
    to.register_parameter(parameter.name, parameter.value, parameter.value.requires_grad());
  }
  for (const auto& buffer : from.named_buffers(/*recurse=*/false)) {
    to.register_buffer(buffer.name, buffer.value);
  }
  for (const auto& child : from.named_children()) {
    take_tensors(child.value,
                 *to.register_module(child.name, std::make_shared<torch::nn::Module>(child.name)));
  }
}

std::vector<IValue> values_of(const std::vector<at::Tensor>& tensors) {
  return std::vector<IValue>(tensors.begin(), tensors.end());
}

[[noreturn]] void refuse_type(const std::string& method, const IValue& value,
                              const std::string& remedy) {
  bad_input("the script's " + method + " returns a " + value.tagKind() + remedy);
}

}  // namespace

ScriptModelImpl::ScriptModelImpl(const fs::path& file)
    : Module("ScriptModel"), script_(std::make_shared<Script>(Script{script_in(file)})) {
  take_tensors(script_->module, *this);
  if (parameters().empty()) {
    bad_input(file.string() +
              " has no parameter to train: torch.jit.freeze and optimize_for_inference make "
              "constants of them; save what torch.jit.script returned");
  }
  train();
}

at::Tensor ScriptModelImpl::forward(const at::Tensor& input) {
  const IValue output = script_->module.forward({input});
  if (output.isTensor()) return output.toTensor();
  refuse_type("forward", output,
              ", and not a tensor: override train_batch and validate_batch, and write "
              "model().call([&] { return net->outputs({a, b}); }) there");
}

std::vector<at::Tensor> ScriptModelImpl::outputs(const std::vector<at::Tensor>& inputs,
                                                 const std::string& method) {
  const IValue output = script_->module.get_method(method)(values_of(inputs));
  if (output.isTensor()) return {output.toTensor()};
  if (output.isTensorList()) return output.toTensorVector();
  if (!output.isTuple()) refuse_type(method, output, ", and neither a tensor nor several");
  std::vector<at::Tensor> tensors;
  for (const IValue& element : output.toTupleRef().elements()) {
    if (!element.isTensor()) {
      refuse_type(method, element, " within a tuple, where a tensor is wanted");
    }
    tensors.push_back(element.toTensor());
  }
  return tensors;
}

void ScriptModelImpl::train(bool on) {
  Module::train(on);
  script_->module.train(on);
}

}  // namespace tune
