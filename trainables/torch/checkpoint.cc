#include "trainables/torch/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <mutex>
#include <stdexcept>
#include <string>

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.pt";
constexpr const char* kOptimizerFile = "optimizer.pt";
constexpr const char* kRandomFile = "random.pt";

template <class Object>
void load_from(Object& object, const fs::path& file) {
  if (!fs::exists(file)) throw std::runtime_error("restoring: there is no " + file.string());
  torch::serialize::InputArchive archive;
  archive.load_from(file.string());
  object.load(archive);
}

template <class Object>
void save_to(const Object& object, const fs::path& file) {
  torch::serialize::OutputArchive archive;
  object.save(archive);
  archive.save_to(file.string());
}

}  // namespace

void save_checkpoint(const fs::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer) {
  save_to(model, directory / kModelFile);
  save_to(optimizer, directory / kOptimizerFile);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  torch::save(generator.get_state(), (directory / kRandomFile).string());
}

void load_checkpoint(const fs::path& directory, torch::nn::Module& model,
                     torch::optim::Optimizer& optimizer) {
  load_from(model, directory / kModelFile);
  load_from(optimizer, directory / kOptimizerFile);
  torch::Tensor state;
  torch::load(state, (directory / kRandomFile).string());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void prepare_torch(std::uint64_t seed, int threads) {
  torch::manual_seed(static_cast<std::int64_t>(seed >> 1));  // torch wants a signed number
  at::set_num_threads(threads);
}

}  // namespace tune
