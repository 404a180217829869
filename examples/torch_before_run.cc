// Uses LibTorch before tune::run: asks for CUDA and trains a step. The program can then not be forked
// where it stands (LibTorch runs threads), so it is executed again for the trials; nothing else changes.
#include <tune/torch.h>
#include <tune/tune.h>

#include <iostream>

namespace {

// Fits y = 3x with one weight.
class Line : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    tune::prepare_torch(context().seed(), context().cpus());
    optimizer_ = std::make_unique<torch::optim::SGD>(layer_->parameters(), config.get<double>("lr"));
  }
  tune::Result step() override {
    const auto x = torch::randn({256, 16});
    const auto loss = torch::mse_loss(layer_->forward(x), 3 * x.sum(1, true));
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    return {{"mean_loss", loss.item<double>()}};
  }

 private:
  torch::nn::Linear layer_{16, 1};
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

}  // namespace

int main(int argc, char** argv) {
  std::cout << "CUDA is " << (torch::cuda::is_available() ? "there" : "not there") << "\n";
  const auto weights = torch::randn({512, 512}, torch::requires_grad());
  torch::matmul(weights, weights).sum().backward();  // wakes LibTorch's threads

  const auto analysis = tune::run<Line>(tune::options_from_args(argc, argv, {
      .config = {{"lr", tune::loguniform(1e-3, 1e-1)}},
      .num_samples = 4,
      .metric = "mean_loss", .mode = tune::Mode::kMin,
      .stop = {{"training_iteration", 5}},
  }));
  std::cout << "Best config is: " << analysis.best_config().dump() << "\n";
}
