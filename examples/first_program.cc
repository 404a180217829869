// The README's first program: a Trainable, a search space, tune::run.
#include <tune/tune.h>

#include <cmath>
#include <fstream>
#include <iostream>

// Stands for a model: its accuracy rises with each step, fastest near lr 0.1.
class Mnist : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    lr_ = config.get<double>("lr");
    layers_ = config.get<int>("model/layers");
  }
  tune::Result step() override {
    const double rate = std::exp(-std::pow(std::log10(lr_ / 0.1), 2)) * (layers_ == 2 ? 1.0 : 0.8);
    accuracy_ += (1 - accuracy_) * 0.3 * rate;
    return {{"mean_accuracy", accuracy_}, {"mean_loss", 1 - accuracy_}};
  }
  void save(const std::filesystem::path& directory) override {
    std::ofstream(directory / "accuracy") << std::hexfloat << accuracy_;
  }
  void load(const std::filesystem::path& directory) override {
    std::string text;
    std::ifstream(directory / "accuracy") >> text;
    accuracy_ = std::stod(text);
  }

 private:
  double lr_ = 0, accuracy_ = 0.1;
  int layers_ = 1;
};

int main(int argc, char** argv) {
  const auto analysis = tune::run<Mnist>(tune::options_from_args(argc, argv, {
      .config = {{"lr", tune::loguniform(1e-3, 1.0)},
                 {"model", {{"layers", tune::grid_search({1, 2})}}}},
      .num_samples = 8,
      .metric = "mean_accuracy",
      .scheduler = tune::asha({.max_t = 27, .grace_period = 1, .reduction_factor = 3}),
  }));
  std::cout << "Best config is: " << analysis.best_config().dump() << "\n";
  analysis.write_csv("result.csv");
}
