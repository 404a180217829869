#include "fashion_mnist.h"

namespace {

constexpr std::int64_t kTestBatch = 1000;

}  // namespace

ConvNet::ConvNet()
    : conv1(register_module("conv1", torch::nn::Conv2d(1, 10, 5))),
      conv2(register_module("conv2", torch::nn::Conv2d(10, 20, 5))),
      drop(register_module("drop", torch::nn::Dropout2d())),
      fc1(register_module("fc1", torch::nn::Linear(320, 50))),
      fc2(register_module("fc2", torch::nn::Linear(50, 10))) {}

torch::Tensor ConvNet::forward(torch::Tensor x) {
  x = torch::relu(torch::max_pool2d(conv1(x), 2));
  x = torch::relu(torch::max_pool2d(drop(conv2(x)), 2));
  x = torch::relu(fc1(x.view({-1, 320})));
  x = torch::dropout(x, 0.5, is_training());
  return torch::log_softmax(fc2(x), 1);
}

void FashionMnist::setup(const tune::Config& config) {
  tune::prepare_torch(context().seed(), context().cpus());
  const auto lr = config.get<double>("lr");
  const auto momentum = config.get_or("momentum", 0.0);
  batch_size_ = config.get_or("batch_size", std::int64_t{64});
  samples_per_step_ = config.get_or("samples_per_step", std::int64_t{4096});
  train_ = load_fashion_mnist(Part::kTrain, config.get_or("train_samples", std::int64_t{20000}));
  test_ = load_fashion_mnist(Part::kTest, config.get_or("test_samples", std::int64_t{10000}));
  // The weights drawn when the model was made came before the seed.
  model_ = ConvNet();
  optimizer_ = std::make_unique<torch::optim::SGD>(
      model_.parameters(), torch::optim::SGDOptions(lr).momentum(momentum));
  order_ = torch::randperm(train_.labels.size(0));
}

torch::Tensor FashionMnist::next_batch() {
  if (position_ + batch_size_ > order_.size(0)) {
    order_ = torch::randperm(order_.size(0));
    position_ = 0;
  }
  const auto batch = order_.slice(0, position_, position_ + batch_size_);
  position_ += batch.size(0);
  return batch;
}

tune::Result FashionMnist::step() {
  model_.train();
  double loss_sum = 0;
  std::int64_t batches = 0;
  for (std::int64_t seen = 0; seen < samples_per_step_; seen += batch_size_) {
    const auto batch = next_batch();
    optimizer_->zero_grad();
    const auto output = model_.forward(train_.pixels.index_select(0, batch));
    const auto loss = torch::nll_loss(output, train_.labels.index_select(0, batch));
    loss.backward();
    optimizer_->step();
    loss_sum += loss.item<double>();
    ++batches;
  }
  const Score score = test();
  return {{"mean_accuracy", score.accuracy},
          {"mean_loss", score.loss},
          {"train_loss", loss_sum / static_cast<double>(batches)}};
}

FashionMnist::Score FashionMnist::test() {
  const torch::NoGradGuard no_gradients;
  model_.eval();
  Score score;
  const std::int64_t count = test_.labels.size(0);
  for (std::int64_t begin = 0; begin < count; begin += kTestBatch) {
    const std::int64_t end = std::min(begin + kTestBatch, count);
    const auto output = model_.forward(test_.pixels.slice(0, begin, end));
    const auto labels = test_.labels.slice(0, begin, end);
    score.loss += torch::nll_loss(output, labels, {}, at::Reduction::Sum).item<double>();
    score.accuracy += output.argmax(1).eq(labels).sum().item<double>();
  }
  score.loss /= static_cast<double>(count);
  score.accuracy /= static_cast<double>(count);
  return score;
}

void FashionMnist::save(const std::filesystem::path& directory) {
  tune::save_checkpoint(directory, model_, *optimizer_);
  torch::save(std::vector<torch::Tensor>{order_, torch::tensor(position_)},
              (directory / "sampler.pt").string());
}

void FashionMnist::load(const std::filesystem::path& directory) {
  tune::load_checkpoint(directory, model_, *optimizer_);
  std::vector<torch::Tensor> sampler;
  torch::load(sampler, (directory / "sampler.pt").string());
  order_ = sampler.at(0);
  position_ = sampler.at(1).item<std::int64_t>();
}
