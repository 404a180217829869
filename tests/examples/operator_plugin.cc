// A plugin whose trainable is a TrainingOperator: what TUNE_TRAINING_OPERATOR makes of it is a
// trainable like any other, here of a YAML sweep.
#include <tune/torch.h>

#include <memory>

namespace {

namespace nn = torch::nn;

// Points of three classes, which lie apart.
std::shared_ptr<tune::Dataset> points(std::int64_t count) {
  const torch::Tensor target = torch::arange(count).remainder(3);
  const torch::Tensor data =
      torch::randn({count, 6}) + torch::one_hot(target, 6).to(torch::kFloat) * 3;
  return std::make_shared<tune::TensorDataset>(data, target);
}

class Points : public tune::TrainingOperator {
 public:
  void setup(const tune::Config& config) override {
    nn::Linear net(6, 3);
    auto optimizer =
        std::make_shared<torch::optim::SGD>(net->parameters(), config.get<double>("lr"));
    register_training(
        {.models = {net}, .optimizers = {optimizer}, .criterion = nn::CrossEntropyLoss()});
    register_data({.train = points(97), .validation = points(31), .batch_size = 8});
  }
};

}  // namespace

TUNE_TRAINING_OPERATOR(Points)
