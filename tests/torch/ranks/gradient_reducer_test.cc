// GradientReducer where DistributedDataParallel does not tell it the outputs.
#include <vector>

#include "ranks.h"
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

}  // namespace
}  // namespace tune
