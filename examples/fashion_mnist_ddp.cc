// FashionMnistDdp: a multi-layer perceptron that learns Fashion-MNIST on all ranks of a trial, each
// with its part of every batch. Any number of ranks learns the same from the same seed, up to
// rounding; without ranks it is one process. Swept by config/fashion_mnist_ddp.yaml.
//
// Configuration:
//   lr                learning rate of SGD, > 0
//   momentum          0      its momentum
//   hidden            128    width of the hidden layer
//   batch_size        128    of all ranks together, a multiple of their number
//   samples_per_step  4096   training images a step goes through
//   test_samples      5000   images to judge on, at most
#include <tune/torch.h>
#include <tune/tune.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fashion_mnist_tensors.h"

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

constexpr std::int64_t kPixels = LabelledImages::kSide * LabelledImages::kSide;

nn::Sequential make_network(std::int64_t hidden, torch::Device device) {
  nn::Sequential network(nn::Linear(kPixels, hidden), nn::ReLU(), nn::Linear(hidden, 10));
  network->to(device);
  return network;
}

// This rank's batches of the order that seed and epoch give, the same on all ranks: each takes
// every group.size()-th image of it.
tune::DataLoader batches_of_rank(const tune::ProcessGroup& group, std::int64_t batch_size,
                                 std::uint64_t seed) {
  const tune::Batch train = to_tensors(fashion_mnist_training());
  // Refuses a batch that ranks cannot share equally: they would not learn what one rank does.
  const std::int64_t own = tune::batch_of_rank(batch_size, group.size());
  return {
      std::make_shared<tune::TensorDataset>(train.data, train.target),
      std::make_shared<tune::DistributedSampler>(
          train.size(),
          tune::DistributedSamplerOptions{
              .rank = group.rank(), .world_size = group.size(), .drop_last = true, .seed = seed}),
      {.batch_size = own, .drop_last = true}};
}

struct Training {
  Training(const tune::Config& config, tune::ProcessGroup ranks, std::uint64_t seed)
      : group(std::move(ranks)),
        batch_size(config.get_or("batch_size", 128)),
        batches_per_step(config.get_or("samples_per_step", 4096) / std::max(1, batch_size)),
        batches(batches_of_rank(group, batch_size, seed)),
        test(to_tensors(
            fashion_mnist_test(static_cast<std::size_t>(config.get_or("test_samples", 5000))))),
        network(make_network(config.get_or("hidden", 128), group.device())),
        model(network, group),
        optimizer(network->parameters(), torch::optim::SGDOptions(config.get<double>("lr"))
                                             .momentum(config.get_or("momentum", 0.0))) {
    if (batches_per_step > 0) return;
    throw tune::Error(tune::ErrorCode::kBadInput, "batch_size is " + std::to_string(batch_size) +
                                                      ": no more than samples_per_step is wanted");
  }

  torch::Tensor to_input(const torch::Tensor& images) const {
    return ::to_input(images.flatten(1).to(group.device()));
  }

  tune::ProcessGroup group;
  int batch_size;
  int batches_per_step;
  tune::DataLoader batches;
  tune::Batch test;
  nn::Sequential network;
  tune::DistributedDataParallel<nn::SequentialImpl> model;
  torch::optim::SGD optimizer;
};

class FashionMnistDdp : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    tune::set_threads(context().cpus());
    tune::seed_all(context().seed());
    tune::ProcessGroup group(tune::Rendezvous::from_environment(), {.device = context().device()});
    training_ = std::make_unique<Training>(config, group, context().seed());
  }

  tune::Result step() override {
    Training& t = *training_;
    for (int left = t.batches_per_step; left > 0;) {
      const std::optional<tune::Batch> own = t.batches.next();
      if (!own) continue;  // an epoch is over, the next one follows
      --left;
      t.model.zero_grad();
      t.model.backward(torch::cross_entropy_loss(t.model.forward(t.to_input(own->data)),
                                                 own->target.to(t.group.device())));
      t.optimizer.step();
    }
    return judge();
  }

  // Rank 0 writes what is the same on all ranks.
  void save(const fs::path& directory) override {
    if (context().rank() != 0) return;
    tune::save_checkpoint(directory, *training_->network, training_->optimizer);
    tune::save_state(directory / "batches.json", training_->batches.state());
  }
  void load(const fs::path& directory) override {
    tune::load_checkpoint(directory, *training_->network, training_->optimizer);
    training_->batches.load_state(tune::load_state(directory / "batches.json"));
  }

 private:
  // Each rank judges its own part; the means are over all images.
  tune::Result judge() {
    Training& t = *training_;
    const torch::NoGradGuard no_gradients;
    const auto own_part = [&](const torch::Tensor& all) {
      return all.slice(0, t.group.rank(), {}, t.group.size());
    };
    const torch::Tensor labels = own_part(t.test.target).to(t.group.device());
    const torch::Tensor output = t.network->forward(t.to_input(own_part(t.test.data)));
    tune::Metrics metrics;
    const std::int64_t count = labels.size(0);
    metrics.add("mean_accuracy",
                output.argmax(1).eq(labels).to(torch::kFloat64).mean().item<double>(), count);
    metrics.add("mean_loss", torch::cross_entropy_loss(output, labels).item<double>(), count);
    return metrics.over(t.group).result();
  }

  std::unique_ptr<Training> training_;
};

}  // namespace

TUNE_TRAINABLE(FashionMnistDdp)
