// Restores the best model of a finished sweep and tests it again:
//
//   predict [FOLDER]      default: results/latest
//
// Exits with 1 when the accuracy is not the recorded one.
#include <iostream>

#include "fashion_mnist.h"

int main(int argc, char** argv) try {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "results/latest";
  const auto analysis = tune::Analysis::load(folder);
  const auto checkpoint = analysis.best_checkpoint();
  const auto model = tune::restore<FashionMnist>(folder);
  const double accuracy = model->test().accuracy;
  std::cout << "checkpoint:        " << checkpoint.path.string() << "\n"
            << "test accuracy:     " << accuracy << "\n"
            << "recorded accuracy: " << checkpoint.value << "\n";
  return accuracy == checkpoint.value ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
