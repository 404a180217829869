// Checkpoints of a model, its optimizer and the random state of the CPU: what a Trainable's save and load
// need to go on exactly where they stood. Files: model.pt, optimizer.pt, random.pt. The framework flushes
// and renames the folder.
#pragma once

#include <torch/torch.h>

#include <filesystem>

namespace tune {

// Throws std::exception when a file cannot be written.
void save_checkpoint(const std::filesystem::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer);
// Parameters and buffers are loaded in place; the CPU generator is set back. Throws std::exception naming
// the file that is missing or does not fit.
void load_checkpoint(const std::filesystem::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer);

// Seeds torch's generators and sets the threads of one rank: call it first in setup, with
// context().seed() and context().cpus().
void prepare_torch(std::uint64_t seed, int threads);

}  // namespace tune
