#include "trainables/torch/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "trainables/torch/configured_options.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/optimizer_state.h"
#include "trainables/torch/python_file.h"
#include "trainables/torch/safetensors.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// An exception of LibTorch inside `call` comes out as Error with the file and its first line: the
// rest is a stack trace.
template <class Call>
auto on_file(ErrorCode code, const char* doing, const fs::path& file, Call&& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    std::string cause = error.what_without_backtrace();
    cause.resize(std::min(cause.size(), cause.find('\n')));
    throw Error(code, std::string(doing) + " " + file.string() + ": " + cause);
  }
}

void write_bytes(const fs::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw Error(ErrorCode::kIo, "cannot write " + file.string() + ": is the disk full");
}

c10::IValue read_pickled(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) throw Error(ErrorCode::kIo, "cannot read " + file.string());
  return on_file(ErrorCode::kIo, "reading", file, [&] { return torch::pickle_load(bytes); });
}

// The model's own tensors by name; a parameter that several modules share has one name.
NamedTensors tensors_of(const torch::nn::Module& model) {
  NamedTensors tensors;
  for (const auto& parameter : model.named_parameters()) {
    tensors.emplace_back(parameter.key(), parameter.value());
  }
  for (const auto& buffer : model.named_buffers()) {
    tensors.emplace_back(buffer.key(), buffer.value());
  }
  return tensors;
}

using TensorsByName = std::map<std::string, at::Tensor>;

// The file's word instead of a name: Python's DistributedDataParallel puts one before all.
std::string instead_of(const std::string& name, const TensorsByName& saved) {
  const auto has_it_below = [&](const auto& one) { return one.first.ends_with("." + name); };
  const auto found = std::ranges::find_if(saved, has_it_below);
  if (found == saved.end()) return {};
  const bool is_of_ddp = found->first == "module." + name;
  return ", but " + found->first +
         (is_of_ddp ? ": save model.module.state_dict() of Python's DistributedDataParallel" : "");
}

void expect_fit(const fs::path& file, const NamedTensors& wanted, const TensorsByName& saved) {
  const std::string start = "loading " + file.string() + " into the model: ";
  for (const auto& [name, tensor] : wanted) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      throw Error(ErrorCode::kBadInput,
                  start + "the file has no " + name + instead_of(name, saved));
    }
    const at::Tensor& value = found->second;
    if (value.sizes() != tensor.sizes() || value.scalar_type() != tensor.scalar_type()) {
      throw Error(ErrorCode::kBadInput, start + name + " is " + describe(value) +
                                            " in the file and " + describe(tensor) +
                                            " in the model");
    }
  }
  if (saved.size() != wanted.size()) {
    throw Error(ErrorCode::kBadInput, start + "the file has " + std::to_string(saved.size()) +
                                          " tensors, the model " + std::to_string(wanted.size()));
  }
}

c10::Device device_of(const torch::optim::Optimizer& optimizer) {
  for (const auto& group : optimizer.param_groups()) {
    if (!group.params().empty()) return group.params().front().device();
  }
  return c10::kCPU;
}

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kPythonModelFile = "model.pt";  // read only
constexpr const char* kOptimizerFile = "optimizer.pt";
constexpr const char* kRandomFile = "random.pt";

fs::path weights_file(const fs::path& directory) {
  const bool from_python =
      !fs::exists(directory / kModelFile) && fs::exists(directory / kPythonModelFile);
  return directory / (from_python ? kPythonModelFile : kModelFile);
}

// The CPU's and, where there is one, that of this rank's GPU.
std::vector<at::Generator> default_generators() {
  std::vector<at::Generator> generators{at::detail::getDefaultCPUGenerator()};
  if (const CudaPart* cuda = loaded_cuda_part()) generators.push_back(cuda->generator());
  return generators;
}

}  // namespace

void save_checkpoint(const fs::path& directory, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer) {
  checkpoint_writer(directory, model, optimizer, nullptr)();
}

void load_checkpoint(const fs::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer) {
  load_model(directory, model);
  load_optimizer(directory, optimizer);
  load_random_state(directory);
}

void save_model(const fs::path& directory, const torch::nn::Module& model) {
  model_writer(directory, model, nullptr)();
}

void load_model(const fs::path& directory, torch::nn::Module& model) {
  const fs::path file = weights_file(directory);
  TensorsByName saved;
  for (auto& [name, tensor] : read_weights(directory)) saved.emplace(name, std::move(tensor));
  const NamedTensors wanted = tensors_of(model);
  expect_fit(file, wanted, saved);
  const at::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : wanted) tensor.copy_(saved.at(name));
}

NamedTensors read_weights(const fs::path& directory) {
  const fs::path file = weights_file(directory);
  return file.filename() == kPythonModelFile ? read_torch_save(file) : read_safetensors(file);
}

void save_optimizer(const fs::path& directory, const torch::optim::Optimizer& optimizer) {
  optimizer_writer(directory, optimizer, nullptr)();
}

void load_optimizer(const fs::path& directory, torch::optim::Optimizer& optimizer) {
  const fs::path file = directory / kOptimizerFile;
  torch::serialize::InputArchive archive;
  on_file(ErrorCode::kIo, "reading", file,
          [&] { archive.load_from(file.string(), device_of(optimizer)); });
  on_file(ErrorCode::kBadInput, "loading the optimizer from", file,
          [&] { load_but_configured_options(archive, optimizer); });
}

void save_state(const fs::path& file, const Value& state) {
  state_writer(file, state)();
}

Value load_state(const fs::path& file) {
  return parse_json(read_file(file), file.string());
}

void save_random_state(const fs::path& directory) {
  random_state_writer(directory)();
}

void load_random_state(const fs::path& directory) {
  const fs::path file = directory / kRandomFile;
  const c10::IValue states = read_pickled(file);
  if (!states.isTensorList()) {
    throw Error(ErrorCode::kBadInput, file.string() + " holds no random states");
  }
  std::vector<at::Generator> generators = default_generators();
  const std::vector<at::Tensor> saved = states.toTensorVector();
  for (std::size_t i = 0; i < std::min(saved.size(), generators.size()); ++i) {
    const std::lock_guard lock(generators[i].mutex());
    on_file(ErrorCode::kBadInput, "loading the random state from", file,
            [&] { generators[i].set_state(saved[i]); });
  }
}

// ---- In two parts -------------------------------------------------------------------------------

CheckpointWriter all_of(std::vector<CheckpointWriter> writers) {
  return [writers = std::move(writers)] {
    for (const CheckpointWriter& write : writers) write();
  };
}

CheckpointWriter checkpoint_writer(const fs::path& directory, const torch::nn::Module& model,
                                   const torch::optim::Optimizer& optimizer,
                                   CheckpointCopies* copies) {
  return all_of({model_writer(directory, model, copies),
                 optimizer_writer(directory, optimizer, copies), random_state_writer(directory)});
}

CheckpointWriter model_writer(const fs::path& directory, const torch::nn::Module& model,
                              CheckpointCopies* copies) {
  NamedTensors tensors = tensors_of(model);
  if (copies != nullptr) {
    for (auto& [name, tensor] : tensors) tensor = copies->copy(tensor);
  }
  return [file = directory / kModelFile, tensors = std::move(tensors)] {
    write_safetensors(file, tensors);
  };
}

CheckpointWriter optimizer_writer(const fs::path& directory,
                                  const torch::optim::Optimizer& optimizer,
                                  CheckpointCopies* copies) {
  const fs::path file = directory / kOptimizerFile;
  return on_file(ErrorCode::kIo, "writing", file, [&]() -> CheckpointWriter {
    const bool is_known = has_known_state(optimizer);
    std::optional<StateInCopies> in_copies;
    if (copies != nullptr && is_known) in_copies.emplace(optimizer, *copies);
    auto archive = std::make_shared<torch::serialize::OutputArchive>();
    optimizer.save(*archive);
    save_configured_options(*archive, optimizer);
    if (copies == nullptr || is_known) {
      return [file, archive] {
        on_file(ErrorCode::kIo, "writing", file, [&] { archive->save_to(file.string()); });
      };
    }
    std::ostringstream bytes;
    archive->save_to(bytes);
    return [file, bytes = bytes.str()] { write_bytes(file, bytes); };
  });
}

CheckpointWriter state_writer(const fs::path& file, const Value& state) {
  return [file, text = state.dump() + "\n"] { write_file_atomically(file, text); };
}

CheckpointWriter random_state_writer(const fs::path& directory) {
  std::vector<at::Tensor> states;
  for (at::Generator& generator : default_generators()) {
    const std::lock_guard lock(generator.mutex());
    states.push_back(generator.get_state());
  }
  const fs::path file = directory / kRandomFile;
  const std::vector<char> bytes =
      on_file(ErrorCode::kIo, "writing", file, [&] { return torch::pickle_save(states); });
  return [file, bytes] { write_bytes(file, {bytes.data(), bytes.size()}); };
}

}  // namespace tune
