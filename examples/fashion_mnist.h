// FashionMnist: a small convolutional network that learns Fashion-MNIST. The class that sweeps load
// from libfashion_mnist.so (config/fashion_mnist.yaml) and programs link; free of torch headers.
//
// Configuration:
//   lr                learning rate of SGD, > 0
//   momentum          0      its momentum
//   batch_size        64
//   samples_per_step  4096   training images a step goes through, up to a whole batch
//   held_out          0      training images kept aside and judged on; 0: the test set
//   test_samples      5000   how many of those to judge on, at most
#pragma once

#include <tune/tune.h>

#include <filesystem>
#include <memory>

class FashionMnist : public tune::Trainable {
 public:
  FashionMnist();
  ~FashionMnist() override;
  void setup(const tune::Config& config) override;
  // Trains a part of an epoch. mean_accuracy and mean_loss are of the images to judge on.
  tune::Result step() override;
  // Everything that a restored trial needs to go on as if it had never stopped.
  void save(const std::filesystem::path& directory) override;
  void load(const std::filesystem::path& directory) override;

  // The judgement of the network as it stands: what the next result would report without training.
  tune::Result evaluate();

 private:
  struct Training;
  std::unique_ptr<Training> training_;
};
