#include "fashion_mnist.h"

#include <tune/torch.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "fashion_mnist_data.h"

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

// Grey values over the training set, scaled to [0, 1].
constexpr double kMean = 0.2860;
constexpr double kDeviation = 0.3530;
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

struct ImageSet {
  torch::Tensor images;  // (n, 1, 28, 28) bytes
  torch::Tensor labels;  // (n) int64

  std::int64_t size() const { return labels.size(0); }
  ImageSet slice(std::int64_t begin, std::int64_t end) const {
    return {images.slice(0, begin, end), labels.slice(0, begin, end)};
  }
};

ImageSet to_tensors(const LabelledImages& set) {
  const auto count = static_cast<std::int64_t>(set.count());
  const auto side = static_cast<std::int64_t>(LabelledImages::kSide);
  // from_blob takes no constant pointer; both are copied at once.
  const auto tensor = [](const std::vector<std::uint8_t>& bytes, at::IntArrayRef shape) {
    return torch::from_blob(const_cast<std::uint8_t*>(bytes.data()), shape, torch::kUInt8).clone();
  };
  return {tensor(set.pixels, {count, 1, side, side}),
          tensor(set.labels, {count}).to(torch::kInt64)};
}

torch::Tensor to_input(const torch::Tensor& images) {
  return images.to(torch::kFloat32).div_(255).sub_(kMean).div_(kDeviation);
}

// Batches of a permutation that is drawn anew for every epoch, from the seed and the epoch alone:
// its state is two numbers.
class Sampler {
 public:
  Sampler(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) { shuffle(); }

  torch::Tensor next(std::int64_t count) {
    if (position_ == size_) {
      ++epoch_;
      position_ = 0;
      shuffle();
    }
    const std::int64_t end = std::min(position_ + count, size_);
    const torch::Tensor batch = order_.slice(0, position_, end);
    position_ = end;
    return batch;
  }

  void save(const fs::path& file) const {
    std::ofstream out(file);
    out << epoch_ << ' ' << position_ << '\n';
    out.close();
    if (!out) throw tune::Error(tune::ErrorCode::kIo, "cannot write " + file.string());
  }

  void load(const fs::path& file) {
    std::ifstream in(file);
    if (!(in >> epoch_ >> position_) || position_ < 0 || position_ > size_) {
      throw tune::Error(tune::ErrorCode::kBadInput, "reading " + file.string() +
                                                        ": no epoch and position within " +
                                                        std::to_string(size_) + " images");
    }
    shuffle();
  }

 private:
  void shuffle() {
    order_ = torch::randperm(size_, torch::make_generator<at::CPUGeneratorImpl>(seed_ + epoch_));
  }

  std::int64_t size_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
  torch::Tensor order_;
};

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
      : batch_size(at_least(config, "batch_size", 1, 64)),
        samples_per_step(at_least(config, "samples_per_step", 1, 4096)),
        train(to_tensors(fashion_mnist_training())),
        test(images_to_judge(config)),
        sampler(train.size(), seed),
        optimizer(model->parameters(), torch::optim::SGDOptions(config.get<double>("lr"))
                                           .momentum(config.get_or("momentum", 0.0))) {}

  // Takes the images held out away from those to train with.
  ImageSet images_to_judge(const tune::Config& config) {
    const std::int64_t held_out = at_least(config, "held_out", 0, 0);
    const std::int64_t limit = at_least(config, "test_samples", 1, 5000);
    if (held_out == 0) return to_tensors(fashion_mnist_test(static_cast<std::size_t>(limit)));
    if (held_out >= train.size()) {
      throw tune::Error(tune::ErrorCode::kBadInput, "held_out is " + std::to_string(held_out) +
                                                        " of " + std::to_string(train.size()) +
                                                        " images, which leaves none to learn");
    }
    const std::int64_t rest = train.size() - held_out;
    const ImageSet kept = train.slice(rest, rest + std::min(held_out, limit));
    train = train.slice(0, rest);
    return kept;
  }

  const std::int64_t batch_size;
  const std::int64_t samples_per_step;
  ImageSet train;
  ImageSet test;
  Sampler sampler;
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
    const torch::Tensor batch = t.sampler.next(std::min(t.batch_size, left));
    left -= batch.size(0);
    const torch::Tensor input = to_input(t.train.images.index_select(0, batch));
    t.optimizer.zero_grad();
    torch::nll_loss(t.model->forward(input), t.train.labels.index_select(0, batch)).backward();
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
    const ImageSet batch = t.test.slice(begin, begin + kTestBatch);
    const torch::Tensor output = t.model->forward(to_input(batch.images));
    loss += torch::nll_loss(output, batch.labels, {}, at::Reduction::Sum).item<double>();
    correct += output.argmax(1).eq(batch.labels).sum().item<std::int64_t>();
  }
  const auto count = static_cast<double>(t.test.size());
  return {{"mean_accuracy", static_cast<double>(correct) / count}, {"mean_loss", loss / count}};
}

void FashionMnist::save(const fs::path& directory) {
  tune::save_checkpoint(directory, *training_->model, training_->optimizer);
  training_->sampler.save(directory / "sampler.txt");
}

void FashionMnist::load(const fs::path& directory) {
  tune::load_checkpoint(directory, *training_->model, training_->optimizer);
  training_->sampler.load(directory / "sampler.txt");
}

TUNE_TRAINABLE(FashionMnist)
