// A step whose forward and backward are recorded and played again. A GPU's recording is stood for:
// the work that was recorded is done again, and not when it is recorded.
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "torch/played_again.h"
#include "torch/torch_doctest.h"

namespace tune {
namespace {

using testing::PlayedAgain;
using testing::refusal;
using Way = GraphPlan::Way;

// d: directly, r: recorded, p: played.
std::string ways_of(GraphPlan& plan, const std::string& kinds) {
  std::string ways;
  for (const char kind : kinds) {
    const Way way = plan.next(std::string(1, kind), true);
    ways += way == Way::kDirect ? 'd' : way == Way::kRecord ? 'r' : 'p';
  }
  return ways;
}

TEST_CASE("a graph is recorded after three batches of a shape, and played for that shape alone") {
  GraphPlan plan;
  CHECK(ways_of(plan, "aaaaaabaa") == "dddrppdpp");
  // An epoch's rest, again and again, changes nothing; a shape that stays takes the place.
  CHECK(ways_of(plan, "baabaab") == "dppdppd");
  CHECK(ways_of(plan, "bbbbb") == "ddrpp");
  CHECK(ways_of(plan, "aba") == "dpd");
  plan.forget();
  CHECK(ways_of(plan, "bbbbb") == "dddrp");
}

TEST_CASE("a graph is recorded where an accumulation begins") {
  GraphPlan plan;
  for (int i = 0; i < 5; ++i) CHECK(plan.next("a", false) == Way::kDirect);
  CHECK(plan.next("a", true) == Way::kRecord);
  CHECK(plan.next("a", false) == Way::kReplay);
}

TEST_CASE("a graph of little use is said once, with the shapes") {
  GraphPlan varied;
  for (int i = 0; i < 99; ++i) varied.next(i % 2 == 0 ? "Float [4]" : "Float [5]", true);
  CHECK_FALSE(varied.notice());
  varied.next("Float [6]", true);
  CHECK(varied.notice().value() ==
        "cuda_graph was of use for 0 of 100 batches: no 4 in a row had the same shape, the last "
        "was (Float [6]): give batches one shape (drop_last), or leave it out");
  CHECK_FALSE(varied.notice());
  GraphPlan recorded;
  for (int i = 0; i < 4; ++i) recorded.next("Float [4]", true);
  for (int i = 0; i < 96; ++i) recorded.next(i % 2 == 0 ? "Float [5]" : "Float [6]", true);
  CHECK_HAS(recorded.notice().value(),
            "for 1 of 100 batches: recorded is (Float [4]), another was (Float [6])");
  GraphPlan useful;
  for (int i = 0; i < 200; ++i) useful.next("Float [4]", true);
  CHECK_FALSE(useful.notice());
}

// A network with all that has a state, the same every time, and a step of it.
struct GraphedNet {
  GraphedNet(TrainingStepOptions options, std::shared_ptr<PlayedAgain> graph)
      : graph(std::move(graph)),
        net((seed_all(4), torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4),
                                                torch::nn::Tanh(), torch::nn::Linear(4, 2)))),
        optimizer(std::make_shared<torch::optim::SGD>(
            net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1))),
        step(net, optimizer, {}, with(std::move(options), this->graph)) {}

  static TrainingStepOptions with(TrainingStepOptions options,
                                  const std::shared_ptr<PlayedAgain>& graph) {
    options.criterion = torch::nn::MSELoss();
    options.cuda_graph = graph != nullptr;
    options.graph = graph;
    return options;
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    for (const auto& tensors : {net->parameters(), net->buffers()}) {
      for (const at::Tensor& tensor : tensors) {
        const at::Tensor flat = tensor.detach().to(torch::kDouble).flatten();
        all.insert(all.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      }
    }
    return all;
  }

  std::shared_ptr<PlayedAgain> graph;
  torch::nn::Sequential net;
  std::shared_ptr<torch::optim::SGD> optimizer;
  TrainingStep step;
};

Batch graph_batch(std::uint64_t seed, std::int64_t size) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(seed);
  return {torch::randn({size, 3}, generator), torch::randn({size, 2}, generator)};
}

// Losses, norms and all weights are the same with a graph and without.
int trained_alike(const TrainingStepOptions& options) {
  const auto graph = std::make_shared<PlayedAgain>();
  GraphedNet played(options, graph), plain(options, nullptr);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::uint64_t i = 0; i < 7; ++i) {
      const Batch batch = graph_batch(10 * static_cast<std::uint64_t>(epoch) + i, i == 6 ? 5 : 8);
      for (GraphedNet* net : {&played, &plain}) {
        net->step.set_batches_left(7 - static_cast<std::int64_t>(i));
        net->optimizer->param_groups()[0].options().set_lr(0.1 / (epoch + 1));
      }
      const double loss = played.step.run(batch).item<double>();
      CHECK(loss == plain.step.run(batch).item<double>());
      if (played.step.gradient_norm().defined()) {
        CHECK(played.step.gradient_norm().item<double>() ==
              plain.step.gradient_norm().item<double>());
      }
    }
    CHECK(played.numbers() == plain.numbers());
  }
  CHECK(graph->records() == 1);
  return graph->replays();
}

TEST_CASE("a graph trains as the direct way, with every policy") {
  // Of three epochs of six equal batches and a rest all but the first three and the rests.
  CHECK(trained_alike({}) == 15);
  CHECK(trained_alike({.clip = {.norm = 0.1, .value = 0.05}, .ema_decay = 0.9}) == 15);
  // Steps of 3, 3 and a rest of 1, whose share is another.
  CHECK(trained_alike({.accumulate = 3}) == 15);
  CHECK(trained_alike({.precision = {.level = PrecisionLevel::kO1, .dtype = at::kHalf}}) == 15);
}

TEST_CASE("a played batch with an infinite gradient is left out, as without a graph") {
  const auto graph = std::make_shared<PlayedAgain>();
  GraphedNet net({.precision = {.level = PrecisionLevel::kO1, .dtype = at::kHalf}}, graph);
  for (std::uint64_t i = 0; i < 5; ++i) net.step.run(graph_batch(i, 8));
  REQUIRE(graph->replays() == 2);
  const at::Tensor before = net.net->parameters()[0].detach().clone();
  const double scale = net.step.precision().scaler().scale();
  Batch batch = graph_batch(9, 8);
  batch.data[0][0] = std::numeric_limits<float>::infinity();
  net.step.run(batch);
  CHECK(net.net->parameters()[0].equal(before));
  CHECK(net.step.precision().scaler().scale() == scale / 2);
}

TEST_CASE("a parameter without a gradient has none in a graph, and a loss is the caller's own") {
  const auto graph = std::make_shared<PlayedAgain>();
  GraphedNet net({}, graph);
  const at::Tensor unused =
      net.net[0]->as<torch::nn::Linear>()->register_parameter("unused", torch::ones({2}));
  TrainingStep step(net.net, net.optimizer, {}, GraphedNet::with({}, graph));
  std::vector<at::Tensor> losses;
  for (std::uint64_t i = 0; i < 6; ++i) losses.push_back(step.run(graph_batch(i, 8)));
  CHECK(graph->replays() == 3);
  CHECK_FALSE(unused.grad().defined());
  CHECK(losses[4].item<double>() != losses[5].item<double>());
}

TEST_CASE("phases that are called one by one go on beside a graph") {
  const auto graph = std::make_shared<PlayedAgain>();
  GraphedNet played({}, graph), plain({}, nullptr);
  for (std::uint64_t i = 0; i < 8; ++i) {
    const Batch batch = graph_batch(i, 8);
    for (GraphedNet* net : {&played, &plain}) {
      if (i != 5) {
        net->step.run(batch);
      } else {
        net->step.learn(torch::mse_loss(net->step.forward(batch.data), batch.target));
      }
    }
  }
  CHECK(played.numbers() == plain.numbers());
  CHECK(graph->replays() == 4);
}

TEST_CASE("what was frozen is recorded again when that is asked for") {
  const auto graph = std::make_shared<PlayedAgain>();
  GraphedNet net({}, graph);
  for (std::uint64_t i = 0; i < 5; ++i) net.step.run(graph_batch(i, 8));
  net.step.record_again();
  for (std::uint64_t i = 0; i < 5; ++i) net.step.run(graph_batch(i, 8));
  CHECK(graph->records() == 2);
  CHECK(graph->replays() == 4);
}

struct NotRecorded : PlayedAgain {
  void record(const std::function<void()>&) override {
    throw std::runtime_error("operation not permitted when stream is capturing\nmore");
  }
};

TEST_CASE("what cannot be recorded, or does not go with a graph, is refused in words") {
  GraphedNet net({}, std::make_shared<NotRecorded>());
  for (std::uint64_t i = 0; i < 3; ++i) net.step.run(graph_batch(i, 8));
  const std::string words = refusal([&] { net.step.run(graph_batch(3, 8)); });
  CHECK_HAS(words, "(operation not permitted when stream is capturing): what waits for the GPU");
  CHECK_HAS(words, "or cuda_graph");
  const auto made = [](TrainingStepOptions options) {
    return refusal([&] { GraphedNet(options, std::make_shared<PlayedAgain>()); });
  };
  CHECK_HAS(made({.split_when_out_of_memory = true}),
            "cuda_graph does not go with split_when_out_of_memory");
  CHECK_HAS(made({.ddp = {.static_graph = true}}), "cuda_graph does not go with static_graph");
  CHECK_HAS(made({.ddp = {.find_unused_parameters = true}}), "with find_unused_parameters");
  CHECK_HAS(made({.ddp = {.compression = GradientCompression::kFloat16}}), "with compression");

  torch::nn::Embedding table(torch::nn::EmbeddingOptions(4, 2).sparse(true));
  const auto optimizer = std::make_shared<torch::optim::SGD>(table->parameters(), 0.1);
  TrainingStep sparse(table, optimizer, {}, GraphedNet::with({}, std::make_shared<PlayedAgain>()));
  const Batch batch = {torch::tensor({1, 2}), torch::zeros({2, 2})};
  for (int i = 0; i < 3; ++i) sparse.run(batch);
  CHECK_HAS(refusal([&] { sparse.run(batch); }), "sparse gradients");
}

TEST_CASE("a graph does nothing on a CPU") {
  GraphedNet plain({}, nullptr);
  TrainingStep step(plain.net, plain.optimizer, {},
                    {.criterion = torch::nn::MSELoss(), .cuda_graph = true});
  for (std::uint64_t i = 0; i < 6; ++i) CHECK(step.run(graph_batch(i, 8)).item<double>() > 0);
}

}  // namespace
}  // namespace tune
