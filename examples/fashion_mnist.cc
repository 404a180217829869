#include "fashion_mnist.h"

#include <tune/torch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fashion_mnist_tensors.h"

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

constexpr std::int64_t kTestBatch = 500;

struct ConvNetImpl : nn::Module {
  // (n, 1, 28, 28) float to (n, 10) log-probabilities.
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(drop2d->forward(conv2->forward(x)), 2));
    x = torch::relu(fc1->forward(x.flatten(1)));
    x = fc2->forward(drop->forward(x));
    return torch::log_softmax(x, 1);
  }

  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(1, 10, 5));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(10, 20, 5));
  nn::Dropout2d drop2d = register_module("drop2d", nn::Dropout2d());
  nn::Linear fc1 = register_module("fc1", nn::Linear(320, 50));
  nn::Dropout drop = register_module("drop", nn::Dropout());
  nn::Linear fc2 = register_module("fc2", nn::Linear(50, 10));
};
TORCH_MODULE(ConvNet);

tune::Batch slice(const tune::Batch& set, std::int64_t begin, std::int64_t end) {
  return {set.data.slice(0, begin, end), set.target.slice(0, begin, end)};
}

std::int64_t at_least(const tune::Config& config, const char* key, std::int64_t low,
                      std::int64_t fallback) {
  const std::int64_t value = config.get_or(key, fallback);
  if (value < low) {
    throw tune::Error(tune::ErrorCode::kBadInput, std::string(key) + " is " +
                                                      std::to_string(value) + ", at least " +
                                                      std::to_string(low) + " is wanted");
  }
  return value;
}

}  // namespace

struct FashionMnist::Training {
  Training(const tune::Config& config, std::uint64_t seed)
      : samples_per_step(at_least(config, "samples_per_step", 1, 4096)),
        train(to_tensors(fashion_mnist_training())),
        test(images_to_judge(config)),
        batches(std::make_shared<tune::TensorDataset>(train.data, train.target),
                std::make_shared<tune::DistributedSampler>(
                    train.size(), tune::DistributedSamplerOptions{.seed = seed}),
                {.batch_size = at_least(config, "batch_size", 1, 64)}),
        optimizer(model->parameters(), torch::optim::SGDOptions(config.get<double>("lr"))
                                           .momentum(config.get_or("momentum", 0.0))) {}

  // Takes the images held out away from those to train with.
  tune::Batch images_to_judge(const tune::Config& config) {
    const std::int64_t held_out = at_least(config, "held_out", 0, 0);
    const std::int64_t limit = at_least(config, "test_samples", 1, 5000);
    if (held_out == 0) return to_tensors(fashion_mnist_test(static_cast<std::size_t>(limit)));
    if (held_out >= train.size()) {
      throw tune::Error(tune::ErrorCode::kBadInput, "held_out is " + std::to_string(held_out) +
                                                        " of " + std::to_string(train.size()) +
                                                        " images, which leaves none to learn");
    }
    const std::int64_t rest = train.size() - held_out;
    const tune::Batch kept = slice(train, rest, rest + std::min(held_out, limit));
    train = slice(train, 0, rest);
    return kept;
  }

  const std::int64_t samples_per_step;
  tune::Batch train;
  tune::Batch test;
  tune::DataLoader batches;  // each epoch in an order of its own, drawn from the seed
  ConvNet model;
  torch::optim::SGD optimizer;
};

FashionMnist::FashionMnist() = default;
FashionMnist::~FashionMnist() = default;

void FashionMnist::setup(const tune::Config& config) {
  tune::set_threads(context().cpus());
  tune::seed_all(context().seed());
  training_ = std::make_unique<Training>(config, context().seed());
}

tune::Result FashionMnist::step() {
  Training& t = *training_;
  t.model->train();
  for (std::int64_t left = t.samples_per_step; left > 0;) {
    const std::optional<tune::Batch> batch = t.batches.next();
    if (!batch) continue;  // an epoch is over, the next one follows
    left -= batch->size();
    t.optimizer.zero_grad();
    torch::nll_loss(t.model->forward(to_input(batch->data)), batch->target).backward();
    t.optimizer.step();
  }
  return evaluate();
}

tune::Result FashionMnist::evaluate() {
  Training& t = *training_;
  const torch::NoGradGuard no_gradients;
  t.model->eval();
  std::int64_t correct = 0;
  double loss = 0;
  for (std::int64_t begin = 0; begin < t.test.size(); begin += kTestBatch) {
    const tune::Batch batch = slice(t.test, begin, begin + kTestBatch);
    const torch::Tensor output = t.model->forward(to_input(batch.data));
    loss += torch::nll_loss(output, batch.target, {}, at::Reduction::Sum).item<double>();
    correct += output.argmax(1).eq(batch.target).sum().item<std::int64_t>();
  }
  const auto count = static_cast<double>(t.test.size());
  return {{"mean_accuracy", static_cast<double>(correct) / count}, {"mean_loss", loss / count}};
}

void FashionMnist::save(const fs::path& directory) {
  tune::save_checkpoint(directory, *training_->model, training_->optimizer);
  tune::save_state(directory / "batches.json", training_->batches.state());
}

void FashionMnist::load(const fs::path& directory) {
  tune::load_checkpoint(directory, *training_->model, training_->optimizer);
  training_->batches.load_state(tune::load_state(directory / "batches.json"));
}

TUNE_TRAINABLE(FashionMnist)
