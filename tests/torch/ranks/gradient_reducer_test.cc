// GradientReducer where DistributedDataParallel does not tell it the outputs.
#include <vector>

#include "ranks.h"
#include "torch/played_again.h"
#include "torch/torch_doctest.h"

namespace tune {
namespace {

TEST_CASE("a static graph reduces from its first step on, whatever outputs are listed") {
  enum class Listed { kNone, kOther, kLoss };
  for (const Listed listed : {Listed::kNone, Listed::kOther, Listed::kLoss}) {
    CAPTURE(static_cast<int>(listed));
    const auto ends = testing::run_group(2, [&](ProcessGroup& group) {
      torch::nn::Linear net(torch::nn::LinearOptions(1, 1).bias(false));
      GradientReducer reducer(*net, group, {.static_graph = true});
      std::vector<double> gradients;
      for (int step = 0; step < 3; ++step) {
        reducer.before_forward();
        torch::Tensor loss = net->forward(torch::full({1, 1}, 1.0 + group.rank())).sum();
        torch::Tensor other = net->weight.square();
        std::vector<torch::Tensor*> outputs;
        if (listed == Listed::kOther) outputs = {&other};
        if (listed == Listed::kLoss) outputs = {&loss};
        reducer.after_forward(outputs);
        reducer.zero_grad();
        if (step == 1) {
          loss.backward();
        } else {
          reducer.backward(loss);
        }
        gradients.push_back(net->weight.grad().item<double>());
      }
      return gradients;
    });
    // The inputs are 1 and 2, the mean of the gradients is 1.5.
    CHECK(testing::values_of(ends) == std::vector<double>{1.5, 1.5, 1.5});
    CHECK(testing::are_equal(ends));
  }
}

// Weights and buffers after ten batches of 6 samples for both ranks, of which the eighth has 4.
std::vector<double> trained_with(ProcessGroup& group, std::shared_ptr<DeviceGraph> graph,
                                 std::int64_t accumulate) {
  torch::manual_seed(1 + group.rank());
  torch::nn::Sequential net(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4), torch::nn::Tanh(),
                            torch::nn::Linear(4, 1));
  auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(),
                                                       torch::optim::SGDOptions(0.1).momentum(0.9));
  TrainingStep step(net, optimizer, group,
                    {.criterion = torch::nn::MSELoss(),
                     .clip = {.norm = 0.5},
                     .accumulate = accumulate,
                     .cuda_graph = graph != nullptr,
                     .graph = graph});
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto generator = torch::make_generator<at::CPUGeneratorImpl>(i);
    const std::int64_t size = i == 7 ? 4 : 6;
    const auto part = [&](const torch::Tensor& all) {
      return all.slice(0, group.rank(), {}, group.size());
    };
    const torch::Tensor x = part(torch::randn({size, 3}, generator));
    step.run({x, part(torch::randn({size, 1}, generator))});
  }
  // The buffers are each rank's own since the last forward, and were rank 0's before it.
  for (const torch::Tensor& tensor : net->buffers()) group.broadcast(tensor, 1);
  std::vector<double> all;
  for (const auto& tensors : {net->parameters(), net->buffers()}) {
    for (const torch::Tensor& tensor : tensors) {
      for (const double value : testing::doubles(tensor)) all.push_back(value);
    }
  }
  return all;
}

TEST_CASE("ranks train with a graph as without, also with batches that do not fit it") {
  for (const std::int64_t accumulate : {1, 2}) {
    CAPTURE(accumulate);
    const auto plain = testing::run_group(
        2, [&](ProcessGroup& group) { return trained_with(group, nullptr, accumulate); });
    const auto played = testing::run_group(2, [&](ProcessGroup& group) {
      const auto graph = std::make_shared<testing::PlayedAgain>();
      std::vector<double> values = trained_with(group, graph, accumulate);
      // All but the first three or four, where an accumulation begins, and the one of another
      // shape.
      if (graph->replays() != (accumulate == 1 ? 6 : 5)) values.clear();
      return values;
    });
    REQUIRE(testing::values_of(played).size() == testing::values_of(plain).size());
    CHECK(testing::greatest_difference(testing::values_of(played), testing::values_of(plain)) <=
          1e-6);
    CHECK(testing::are_equal(played));
  }
}

}  // namespace
}  // namespace tune
