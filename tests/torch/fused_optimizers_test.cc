// Optimizers of one operation a step, beside LibTorch's own.
#include <memory>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace nn = torch::nn;
using testing::refusal;

// The weights after so many steps of an optimizer on the same gradients. Half of the steps leave
// out the second layer.
template <class Optimizer, class Options>
struct FusedTraining {
  explicit FusedTraining(const Options& options)
      : net((seed_all(2), nn::Sequential(nn::Linear(5, 7), nn::Linear(7, 3)))),
        optimizer(net->parameters(), options) {}

  at::Tensor gradients(int step) {
    auto generator = torch::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
    const at::Tensor x = torch::randn({4, 5}, generator);
    optimizer.zero_grad();
    const at::Tensor hidden = net[0]->as<nn::Linear>()->forward(x);
    const at::Tensor output = step % 2 == 0 ? hidden : net[1]->as<nn::Linear>()->forward(hidden);
    return output.square().mean();
  }
  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      gradients(step).backward();
      optimizer.step();
    }
  }
  at::Tensor weights() {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : net->parameters()) all.push_back(parameter.flatten());
    return torch::cat(all).detach().clone();
  }

  nn::Sequential net;
  Optimizer optimizer;
};

template <class Fused, class Plain, class Options>
void check_equal(const Options& options) {
  const testing::TemporaryFolder folder;
  FusedTraining<Fused, Options> fused(options);
  FusedTraining<Plain, Options> plain(options);
  fused.train(6);
  plain.train(6);
  CHECK(fused.weights().allclose(plain.weights(), 1e-5, 1e-6));

  // A checkpoint of one is loaded by the other.
  save_checkpoint(folder.path(), *fused.net, fused.optimizer);
  FusedTraining<Plain, Options> plain_after(options);
  load_checkpoint(folder.path(), *plain_after.net, plain_after.optimizer);
  FusedTraining<Fused, Options> fused_after(options);
  load_checkpoint(folder.path(), *fused_after.net, fused_after.optimizer);
  fused.train(3);
  plain_after.train(3);
  fused_after.train(3);
  CHECK(fused_after.weights().equal(fused.weights()));
  CHECK(plain_after.weights().allclose(fused.weights(), 1e-5, 1e-6));
}

TEST_CASE("fused optimizers make the steps of LibTorch's own, and share its checkpoints") {
  using torch::optim::AdamOptions, torch::optim::AdamWOptions, torch::optim::SGDOptions;
  check_equal<FusedAdam, torch::optim::Adam>(AdamOptions(0.01));
  check_equal<FusedAdam, torch::optim::Adam>(
      AdamOptions(0.01).betas({0.8, 0.95}).weight_decay(0.1).amsgrad(true));
  check_equal<FusedAdamW, torch::optim::AdamW>(AdamWOptions(0.01).weight_decay(0.1));
  check_equal<FusedSgd, torch::optim::SGD>(SGDOptions(0.05));
  check_equal<FusedSgd, torch::optim::SGD>(SGDOptions(0.05).momentum(0.9).dampening(0.3));
  check_equal<FusedSgd, torch::optim::SGD>(
      SGDOptions(0.05).momentum(0.9).weight_decay(0.01).nesterov(true));
}

// Steps 0 to 3, of which the scaler finds an infinite gradient in the second.
template <class Optimizer, class Options>
at::Tensor weights_of_a_scaled_training(const Options& options) {
  FusedTraining<Optimizer, Options> training(options);
  GradScaler scaler({.scale = 8});
  for (int step = 0; step < 4; ++step) {
    scaler.scale(training.gradients(step)).backward();
    if (step == 1) training.net->parameters()[0].mutable_grad()[0][0] = INFINITY;
    scaler.step(training.optimizer);
    scaler.update();
  }
  CHECK(scaler.scale() == 4);
  const testing::TemporaryFolder folder;  // the steps that count are the ones that were made
  save_checkpoint(folder.path(), *training.net, training.optimizer);
  load_checkpoint(folder.path(), *training.net, training.optimizer);
  training.train(1);
  return training.weights();
}

TEST_CASE("a fused step with an infinite gradient changes nothing, and is not counted") {
  const auto adam = torch::optim::AdamOptions(0.01);
  CHECK(weights_of_a_scaled_training<FusedAdam>(adam).allclose(
      weights_of_a_scaled_training<torch::optim::Adam>(adam), 1e-5, 1e-6));
  const auto adam_w = torch::optim::AdamWOptions(0.01);
  CHECK(weights_of_a_scaled_training<FusedAdamW>(adam_w).allclose(
      weights_of_a_scaled_training<torch::optim::AdamW>(adam_w), 1e-5, 1e-6));
  const auto sgd = torch::optim::SGDOptions(0.05).momentum(0.9);
  CHECK(weights_of_a_scaled_training<FusedSgd>(sgd).allclose(
      weights_of_a_scaled_training<torch::optim::SGD>(sgd), 1e-5, 1e-6));
}

TEST_CASE("fused optimizers refuse sparse gradients") {
  nn::Embedding table(nn::EmbeddingOptions(4, 2).sparse(true));
  FusedAdam optimizer(table->parameters());
  table->forward(torch::tensor({1})).sum().backward();
  CHECK_HAS(refusal([&] { optimizer.step(); }), "do not take sparse gradients");
}

}  // namespace
}  // namespace tune
