// FashionMnist: a small ConvNet (two convolutions, two fully connected layers) on Fashion-MNIST, trained
// with SGD. One step trains on some thousand images, then tests.
//
//   lr                            learning rate
//   momentum           0          of SGD
//   batch_size         64
//   samples_per_step   4096       training images a step
//   train_samples      20000      of 60,000
//   test_samples       10000      of 10,000
#pragma once

#include <tune/torch.h>
#include <tune/tune.h>

#include "fashion_mnist_data.h"

struct ConvNet : torch::nn::Module {
  ConvNet();
  torch::Tensor forward(torch::Tensor images);  // [n, 1, 28, 28] -> log-probabilities [n, 10]

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout2d drop;
  torch::nn::Linear fc1, fc2;
};

class FashionMnist : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override;
  tune::Result step() override;
  void save(const std::filesystem::path& directory) override;
  void load(const std::filesystem::path& directory) override;

  struct Score {
    double accuracy = 0;
    double loss = 0;  // mean negative log-likelihood
  };
  Score test();

 private:
  torch::Tensor next_batch();  // indices of training images

  ConvNet model_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  Images train_, test_;
  torch::Tensor order_;        // this epoch's permutation
  std::int64_t position_ = 0;  // in it
  std::int64_t batch_size_ = 0;
  std::int64_t samples_per_step_ = 0;
};
