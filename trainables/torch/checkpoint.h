// Models, optimizers and the random state as files of a checkpoint's folder: what a Trainable's
// save and load are made of. Not the transaction around them: the framework flushes and renames.
//
//   model.safetensors  parameters and buffers by name; Python's safetensors.torch.load_file reads
//                      it. Where it is missing a model.pt is read, as Python's
//                      torch.save(model.state_dict(), "model.pt") writes it
//   optimizer.pt       the optimizer's options (its learning rate too) and state, and the options
//                      that its constructor was given
//   random.pt          the states of the generators of the CPU and of the own GPU
//
// All throw Error: kIo when a file cannot be written or read; kBadInput when it does not fit what
// it is loaded into.
#pragma once

#include <filesystem>

#include "core/value.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace tune {

// All three files: a restored training goes on exactly where it stood.
void save_checkpoint(const std::filesystem::path& directory, const torch::nn::Module& model,
                     const torch::optim::Optimizer& optimizer);
void load_checkpoint(const std::filesystem::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer);

void save_model(const std::filesystem::path& directory, const torch::nn::Module& model);
// Copies into the model's own tensors, on whatever device they are, so that the optimizer and
// others that hold them see the new values. Names, shapes and types must be the same, no more and
// no less.
void load_model(const std::filesystem::path& directory, torch::nn::Module& model);

void save_optimizer(const std::filesystem::path& directory,
                    const torch::optim::Optimizer& optimizer);
// The optimizer must hold as many parameters in as many groups. Its options become the
// checkpoint's, with what a schedule made of them; but where its constructor was given another
// value than that of the checkpoint (the configuration was replaced), its own stays in all groups.
// A group whose own options alone were given another value takes the checkpoint's.
void load_optimizer(const std::filesystem::path& directory, torch::optim::Optimizer& optimizer);

// The state of a DataLoader, a Sampler or a schedule, or any other value, as a file of JSON.
void save_state(const std::filesystem::path& file, const Value& state);
Value load_state(const std::filesystem::path& file);

void save_random_state(const std::filesystem::path& directory);
void load_random_state(const std::filesystem::path& directory);

}  // namespace tune
