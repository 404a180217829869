#include <tune/torch.h>
#include <tune/tune.h>

#include <iostream>

int main() {
  tune::set_threads(1);
  tune::seed_all(1);
  const torch::Tensor first = torch::rand({3});
  tune::seed_all(1);
  std::cout << "same numbers " << torch::rand({3}).equal(first) << "\n";
  try {
    std::cout << "computes on " << tune::own_device() << "\n";
  } catch (const tune::Error& error) {
    std::cout << error.what() << "\n";
  }
}
