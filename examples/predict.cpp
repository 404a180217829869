// Restores the best model of a finished sweep and judges it again:
//
//   predict [FOLDER]      default: results/latest
//
// Exits with 1 when its accuracy is not the recorded one.
#include <iostream>

#include "fashion_mnist.h"

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "results/latest";
  const tune::BestCheckpoint best = tune::Analysis::load(folder).best_checkpoint();
  const auto model = tune::restore<FashionMnist>(folder);
  const double accuracy = model->evaluate().get<double>("mean_accuracy");
  std::cout << "checkpoint:        " << best.path.string() << "\n"
            << "test accuracy:     " << accuracy << "\n"
            << "recorded accuracy: " << best.value.value() << "\n";
  return accuracy == best.value ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
