#include <memory>

#include "torch/torch_doctest.h"
#include "trainables/torch/training_run.h"

namespace tune {
namespace {

// Trains on bytes; keeps what its batches were.
class ImageOperator : public TrainingOperator {
 public:
  ImageOperator(bool channels_last, std::vector<at::Tensor>& seen)
      : channels_last_(channels_last), seen_(seen) {}
  void setup(const Config&) override {
    torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::AdaptiveAvgPool2d(1),
                              torch::nn::Flatten(), torch::nn::Linear(4, 2));
    weight_ = net[0]->as<torch::nn::Conv2d>()->weight;
    register_training({.models = {net},
                       .optimizers = {std::make_shared<torch::optim::SGD>(net->parameters(), 0.1)},
                       .criterion = torch::nn::CrossEntropyLoss(),
                       .channels_last = channels_last_});
    register_data({.train = std::make_shared<TensorDataset>(
                       torch::full({4, 3, 5, 5}, 255, torch::kUInt8),
                       torch::zeros({4}, torch::kLong)),
                   .batch_size = 4,
                   .prepare = transforms::normalize_batch({0.5}, {0.5})});
  }
  Result train_batch(const Batch& batch, const BatchInfo& info) override {
    seen_ = {batch.data, weight_};
    return TrainingOperator::train_batch(batch, info);
  }

 private:
  bool channels_last_;
  std::vector<at::Tensor>& seen_;
  at::Tensor weight_;
};

TEST_CASE("batches are prepared on the device, and lie as the parts ask for") {
  for (const bool channels_last : {false, true}) {
    std::vector<at::Tensor> seen;
    TrainingRun run(std::make_unique<ImageOperator>(channels_last, seen), {}, {}, {});
    CHECK(run.train().get<double>("train_loss") > 0);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].equal(torch::ones({4, 3, 5, 5})));  // 255 / 255 is a deviation above the mean
    for (const at::Tensor& tensor : seen) {
      CHECK(tensor.is_contiguous(at::MemoryFormat::ChannelsLast) == channels_last);
    }
  }
}

}  // namespace
}  // namespace tune
