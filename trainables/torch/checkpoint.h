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
#include <vector>

#include "core/value.h"
#include "trainables/torch/checkpoint_copies.h"
#include "trainables/torch/safetensors.h"

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

// The weights that load_model would read, on the CPU.
NamedTensors read_weights(const std::filesystem::path& directory);

void save_optimizer(const std::filesystem::path& directory,
                    const torch::optim::Optimizer& optimizer);
// The optimizer must hold as many parameters in as many groups. Its options become the
// checkpoint's, with what a schedule made of them; but where its constructor was given another
// value than that of the checkpoint (the configuration was replaced), its own stays in all groups.
// A group with a name (parameter_groups.h) has its own stay where it was given another value
// itself; of one without a name that is not known, and the checkpoint's counts.
void load_optimizer(const std::filesystem::path& directory, torch::optim::Optimizer& optimizer);

// The state of a DataLoader, a Sampler or a schedule, or any other value, as a file of JSON.
void save_state(const std::filesystem::path& file, const Value& state);
Value load_state(const std::filesystem::path& file);

void save_random_state(const std::filesystem::path& directory);
void load_random_state(const std::filesystem::path& directory);

// ---- In two parts -------------------------------------------------------------------------------

// The saves from above, of which all is copied now and the files are written when the writer is
// called, while the training goes on: for Context::write_beside. Optimizers whose tensors are not
// known (has_known_state) are put into the form of their file now, which takes longer than a copy.
// Without copies (null) the writer reads the tensors themselves.
[[nodiscard]] CheckpointWriter checkpoint_writer(const std::filesystem::path& directory,
                                                 const torch::nn::Module& model,
                                                 const torch::optim::Optimizer& optimizer,
                                                 CheckpointCopies* copies);
[[nodiscard]] CheckpointWriter model_writer(const std::filesystem::path& directory,
                                            const torch::nn::Module& model,
                                            CheckpointCopies* copies);
[[nodiscard]] CheckpointWriter optimizer_writer(const std::filesystem::path& directory,
                                                const torch::optim::Optimizer& optimizer,
                                                CheckpointCopies* copies);
[[nodiscard]] CheckpointWriter state_writer(const std::filesystem::path& file, const Value& state);
[[nodiscard]] CheckpointWriter random_state_writer(const std::filesystem::path& directory);
// One that calls all of them in turn.
[[nodiscard]] CheckpointWriter all_of(std::vector<CheckpointWriter> writers);

}  // namespace tune
