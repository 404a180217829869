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
#include <string>

#include "fashion_mnist_data.h"

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

constexpr std::int64_t kPixels = LabelledImages::kSide * LabelledImages::kSide;

struct ImageSet {
  torch::Tensor images;  // (n, 784) bytes
  torch::Tensor labels;  // (n) int64
};

ImageSet to_tensors(const LabelledImages& set) {
  const auto count = static_cast<std::int64_t>(set.count());
  // from_blob takes no constant pointer; both are copied at once.
  const auto tensor = [](const std::vector<std::uint8_t>& bytes, at::IntArrayRef shape) {
    return torch::from_blob(const_cast<std::uint8_t*>(bytes.data()), shape, torch::kUInt8).clone();
  };
  return {tensor(set.pixels, {count, kPixels}), tensor(set.labels, {count}).to(torch::kInt64)};
}

nn::Sequential make_network(std::int64_t hidden, torch::Device device) {
  nn::Sequential network(nn::Linear(kPixels, hidden), nn::ReLU(), nn::Linear(hidden, 10));
  network->to(device);
  return network;
}

struct Training {
  Training(const tune::Config& config, tune::ProcessGroup ranks, std::uint64_t trial_seed)
      : group(std::move(ranks)),
        seed(trial_seed),
        batch_size(config.get_or("batch_size", 128)),
        batches_per_step(config.get_or("samples_per_step", 4096) / std::max(1, batch_size)),
        train(to_tensors(fashion_mnist_training())),
        test(to_tensors(
            fashion_mnist_test(static_cast<std::size_t>(config.get_or("test_samples", 5000))))),
        network(make_network(config.get_or("hidden", 128), group.device())),
        model(network, group),
        optimizer(network->parameters(), torch::optim::SGDOptions(config.get<double>("lr"))
                                             .momentum(config.get_or("momentum", 0.0))) {
    tune::batch_of_rank(batch_size, group.size());  // else ranks would not learn what one does
    if (batches_per_step > 0 && batch_size <= train.labels.size(0)) return;
    throw tune::Error(tune::ErrorCode::kBadInput,
                      "batch_size is " + std::to_string(batch_size) +
                          ": no more than samples_per_step and the training images are wanted");
  }

  // This rank's rows of `set`: every group.size()-th.
  ImageSet own_part(const ImageSet& set) const {
    return {set.images.slice(0, group.rank(), {}, group.size()),
            set.labels.slice(0, group.rank(), {}, group.size())};
  }

  torch::Tensor to_input(const torch::Tensor& images) const {
    return images.to(group.device()).to(torch::kFloat32).div_(255);
  }

  // Batches of the permutations that seed and epoch give, the same on all ranks.
  torch::Tensor batch(std::uint64_t number) const {
    const std::int64_t size = train.labels.size(0);
    const auto batches = static_cast<std::uint64_t>(size / batch_size);
    const torch::Tensor order =
        torch::randperm(size, torch::make_generator<at::CPUGeneratorImpl>(seed + number / batches));
    const auto begin = static_cast<std::int64_t>(number % batches) * batch_size;
    return order.slice(0, begin, begin + batch_size);
  }

  tune::ProcessGroup group;
  std::uint64_t seed;
  int batch_size;
  int batches_per_step;
  ImageSet train;
  ImageSet test;
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
    const auto first = context().iteration() * static_cast<std::uint64_t>(t.batches_per_step);
    for (int i = 0; i < t.batches_per_step; ++i) {
      const torch::Tensor rows = t.batch(first + static_cast<std::uint64_t>(i));
      const ImageSet own =
          t.own_part({t.train.images.index_select(0, rows), t.train.labels.index_select(0, rows)});
      t.model.zero_grad();
      t.model.backward(torch::cross_entropy_loss(t.model.forward(t.to_input(own.images)),
                                                 own.labels.to(t.group.device())));
      t.optimizer.step();
    }
    return judge();
  }

  // Rank 0 writes what is the same on all ranks.
  void save(const fs::path& directory) override {
    if (context().rank() != 0) return;
    tune::save_checkpoint(directory, *training_->network, training_->optimizer);
  }
  void load(const fs::path& directory) override {
    tune::load_checkpoint(directory, *training_->network, training_->optimizer);
  }

 private:
  // Each rank judges its own part; the means are over all images.
  tune::Result judge() {
    Training& t = *training_;
    const torch::NoGradGuard no_gradients;
    const ImageSet own = t.own_part(t.test);
    const torch::Tensor labels = own.labels.to(t.group.device());
    const torch::Tensor output = t.network->forward(t.to_input(own.images));
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
