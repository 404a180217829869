// Fashion-MNIST as a TrainingOperator: searches a learning rate in trials of two ranks, then goes
// on training the best of them with a TorchTrainer.
//
//   fashion_mnist_trainer [options of tune::options_from_args, such as --num-samples 4]
#include <tune/torch.h>
#include <tune/tune.h>

#include <cstdint>
#include <iostream>
#include <memory>

#include "fashion_mnist_tensors.h"

namespace {

namespace nn = torch::nn;

std::shared_ptr<tune::Dataset> to_dataset(const LabelledImages& set) {
  const tune::Batch all = to_tensors(set);
  return std::make_shared<tune::TensorDataset>(to_input(all.data), all.target);
}

class FashionOperator : public tune::TrainingOperator {
 public:
  void setup(const tune::Config& config) override {
    nn::Sequential net(nn::Conv2d(1, 10, 5), nn::MaxPool2d(2), nn::ReLU(), nn::Conv2d(10, 20, 5),
                       nn::MaxPool2d(2), nn::ReLU(), nn::Flatten(), nn::Linear(320, 50), nn::ReLU(),
                       nn::Dropout(0.2), nn::Linear(50, 10));
    auto optimizer = std::make_shared<torch::optim::SGD>(
        net->parameters(), torch::optim::SGDOptions(config.get<double>("lr")).momentum(0.9));
    register_training({.models = {net},
                       .optimizers = {optimizer},
                       .schedulers = {tune::cosine(config.get_or("epochs", 10))},
                       .criterion = nn::CrossEntropyLoss()});
    const auto limit = static_cast<std::size_t>(config.get_or("samples", 4096));
    register_data({.train = to_dataset(fashion_mnist_training(limit)),
                   .validation = to_dataset(fashion_mnist_test(limit)),
                   .batch_size = config.get_or("batch_size", std::int64_t{32})});
  }
};

}  // namespace

int main(int argc, char** argv) {
  using Trainer = tune::TorchTrainer<FashionOperator>;
  const tune::TrainerOptions workers{.num_workers = 2};
  const auto analysis = tune::run(
      Trainer::as_trainable(workers),
      tune::options_from_args(
          argc, argv,
          {.config = {{"lr", tune::loguniform(1e-3, 0.3)}},
           .num_samples = 4,
           .metric = "val_accuracy",
           .scheduler = tune::asha({.max_t = 4, .grace_period = 1, .reduction_factor = 2})}));

  tune::TrainerOptions best = workers;
  best.config = analysis.best_config();
  Trainer trainer(best);
  trainer.load(analysis.best_checkpoint().path);
  for (int epoch = 0; epoch < 2; ++epoch) {
    trainer.train();
    std::cout << trainer.validate().dump() << "\n";
  }
  trainer.save("fashion_mnist_model");
}
