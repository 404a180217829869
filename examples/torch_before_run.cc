// Uses LibTorch before tune::run: asks for CUDA and trains a step. LibTorch may then run threads of
// its own, and a program with threads cannot be forked for the trials: it is executed again for them,
// up to tune::run, and one warning says so. Nothing else changes, as these trials have no GPUs: one with
// a GPU would end and say that CUDA was asked for too early.
#include <tune/torch.h>
#include <tune/tune.h>

#include <iostream>

namespace {

// Learns the sum of 16 numbers with one linear layer.
class Sum : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    tune::set_threads(context().cpus());
    tune::seed_all(context().seed());
    model_ = torch::nn::Linear(16, 1);
    optimizer_ = std::make_unique<torch::optim::SGD>(model_->parameters(), config.get<double>("lr"));
  }

  tune::Result step() override {
    const auto x = torch::randn({512, 16});
    const auto loss = torch::mse_loss(model_->forward(x), x.sum(1, true));
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    return {{"mean_loss", loss.item<double>()}};
  }

  void save(const std::filesystem::path& directory) override {
    tune::save_checkpoint(directory, *model_, *optimizer_);
  }
  void load(const std::filesystem::path& directory) override {
    tune::load_checkpoint(directory, *model_, *optimizer_);
  }

 private:
  torch::nn::Linear model_{nullptr};
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

void train_a_step() {
  const auto weights = torch::randn({512, 512}, torch::requires_grad());
  torch::matmul(weights, weights).sum().backward();
}

}  // namespace

int main(int argc, char** argv) {
  std::cout << "CUDA is " << (torch::cuda::is_available() ? "there" : "not there") << "\n";
  train_a_step();
  const auto analysis = tune::run<Sum>(tune::options_from_args(argc, argv, {
      .config = {{"lr", tune::loguniform(1e-3, 1e-1)}},
      .num_samples = 4,
      .metric = "mean_loss",
      .mode = tune::Mode::kMin,
      .stop = {{"training_iteration", 5}},
  }));
  std::cout << "Best config is: " << analysis.best_config().dump() << "\n";
}
