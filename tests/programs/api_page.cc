// The program of the API page, with a body for the omitted parts.
#include <tune/tune.h>

#include <fstream>
#include <iostream>

class Mnist : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    lr_ = config.get<double>("lr");
    layers_ = config.at("model").get<int>("layers");
    act_ = config.get_or("model/act", "relu");
  }
  tune::Result step() override {
    accuracy += (1 - accuracy) * 0.2 * lr_ * layers_ * (act_ == "relu" ? 1 : 0.5);
    a = 1 - accuracy;
    b = 1.1 - accuracy;
    return {{"mean_accuracy", accuracy}, {"loss", {{"train", a}, {"test", b}}}};
  }
  void save(const std::filesystem::path& directory) override {
    std::ofstream(directory / "state") << accuracy;
  }
  void load(const std::filesystem::path& directory) override {
    std::ifstream(directory / "state") >> accuracy;
  }

 private:
  double lr_ = 0, accuracy = 0.1, a = 0, b = 0;
  int layers_ = 1;
  std::string act_;
};
TUNE_TRAINABLE(Mnist)   // only for plugins: makes the class known to YAML sweeps as "Mnist"

int main(int argc, char** argv) {
  auto analysis = tune::run<Mnist>(tune::options_from_args(argc, argv, {
      .config = {{"lr", tune::loguniform(1e-3, 1.0)},
                 {"model", {{"act", tune::choice({"relu", "tanh"})}, {"layers", tune::grid_search({1, 2})}}},
                 {"batch_size", 64}},
      .num_samples = 16,
      .metric = "mean_accuracy", .mode = tune::Mode::kMax,
      .scheduler = tune::asha({.max_t = 27, .grace_period = 1, .reduction_factor = 3}),
      .stop = {{"mean_accuracy", 0.99}},
      .resources_per_trial = {.cpu = 2, .gpu = 1}}));
  std::cout << "Best config is: " << analysis.best_config().dump() << "\n";
  analysis.write_csv("result.csv");

  // The saved state, as a Trainable of this process.
  const auto model = tune::restore<Mnist>("results/latest");
  const tune::Result next = model->step();
  std::cout << (next.get<double>("loss/train") < 0.9 ? "restored" : "fresh") << " on "
            << tune::gpu_count() << " GPUs\n";
}
