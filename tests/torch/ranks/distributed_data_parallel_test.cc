// Training on several ranks against the same training by one process on the full batch.
#include "trainables/torch/distributed_data_parallel.h"

#include <csignal>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "ranks.h"
#include "torch/torch_doctest.h"
#include "trainables/solitude.h"
#include "trainables/torch/metrics.h"
#include "trainables/torch/sync_batch_norm.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::doubles;
using testing::greatest_difference;
using testing::is_refused;
using testing::RankEnd;
using testing::run_group;
using testing::values_of;
using torch::Tensor;

constexpr int kSteps = 20;
constexpr int kBatch = 12;  // for 1, 2, 3 and 4 ranks
constexpr int kFeatures = 6;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool shares) {
    if (shares) right->share(left->weight);
  }

  // `branch`: one of the model's branches (0, 1), or both (2).
  std::tuple<Tensor, Tensor> forward(const Tensor& x, int branch) {
    const Tensor hidden = torch::tanh(first->forward(x));
    const Tensor a = branch == 1 ? Tensor() : torch::tanh(left->forward(hidden));
    const Tensor b = branch == 0 ? Tensor() : torch::tanh(right->forward(hidden));
    return {branch == 1 ? last->forward(b) : last->forward(a), b};
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(kFeatures, 16));
  struct BranchImpl : torch::nn::Module {
    BranchImpl() = default;
    Tensor forward(const Tensor& x) { return torch::linear(x, weight, bias); }
    void share(const Tensor& other) { weight = parameters_["weight"] = other; }
    Tensor weight = register_parameter("weight", torch::randn({16, 16}) / 4);
    Tensor bias = register_parameter("bias", torch::randn({16}) / 4);
  };
  TORCH_MODULE(Branch);
  Branch left = register_module("left", Branch());
  Branch right = register_module("right", Branch());
  torch::nn::Linear last = register_module("last", torch::nn::Linear(16, 3));
};
TORCH_MODULE(Net);

enum class Branches { kFirst, kBoth, kAlternating, kOutputUnused };

struct Training {
  std::string name;
  DdpOptions options;
  Branches branches = Branches::kBoth;
  bool shares = false;       // the branches have one weight
  bool accumulates = false;  // two backwards a step
  double tolerance = 1e-6;
};

int branch_at(const Training& training, int step, int rank) {
  switch (training.branches) {
    case Branches::kFirst:
      return 0;
    case Branches::kAlternating:
      return step % 5 == 0 ? 0 : (step + rank) % 2;
    default:
      return 2;
  }
}

Tensor loss_of(const Training& training, const std::tuple<Tensor, Tensor>& output,
               const Tensor& labels) {
  const auto& [scores, other] = output;
  const Tensor loss = torch::cross_entropy_loss(scores, labels);
  const bool uses_other = other.defined() && training.branches == Branches::kBoth;
  return uses_other ? loss + other.square().mean() : loss;
}

struct Batch {
  Tensor x, y;
  // Rows rank, rank + size, ...
  Batch part(int rank, int size) const {
    return {x.slice(0, rank, {}, size), y.slice(0, rank, {}, size)};
  }
};

Batch batch_at(int step) {
  const auto generator = torch::make_generator<at::CPUGeneratorImpl>(1000u + step);
  return {torch::randn({kBatch, kFeatures}, generator),
          torch::randint(3, {kBatch}, generator, torch::kLong)};
}

std::vector<double> state_of(torch::nn::Module& model) {
  std::vector<double> values;
  for (const Tensor& parameter : model.parameters()) {
    // No gradient is worth as much as one of zeros.
    const Tensor gradient = parameter.grad().defined() ? parameter.grad() : parameter * 0;
    for (const Tensor& tensor : {parameter, gradient}) {
      const auto more = doubles(tensor);
      values.insert(values.end(), more.begin(), more.end());
    }
  }
  return values;
}

torch::optim::SGD optimizer_of(torch::nn::Module& model) {
  return torch::optim::SGD(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
}

// Gradients and parameters after the last step.
std::vector<double> train(ProcessGroup& group, const Training& training) {
  torch::manual_seed(1 + group.rank());  // rank 0's weights are those that count
  Net net(training.shares);
  DistributedDataParallel model(net, group, training.options);
  torch::optim::SGD optimizer = optimizer_of(*net);
  const auto backward = [&](const Batch& batch, int step, double share) {
    const Batch part = batch.part(group.rank(), group.size());
    const auto output = model.forward(part.x, branch_at(training, step, group.rank()));
    model.backward(loss_of(training, output, part.y) * share);
  };
  for (int step = 0; step < kSteps; ++step) {
    model.zero_grad();
    if (training.accumulates) {
      const auto guard = model.no_sync();
      backward(batch_at(step + kSteps), step, 0.5);
    }
    backward(batch_at(step), step, training.accumulates ? 0.5 : 1);
    optimizer.step();
  }
  return state_of(*net);
}

// The same by one process. Only where ranks go different ways it takes their parts one by one.
std::vector<double> train_alone(const Training& training, int size) {
  torch::manual_seed(1);
  Net net(training.shares);
  torch::optim::SGD optimizer = optimizer_of(*net);
  const int parts = training.branches == Branches::kAlternating ? size : 1;
  const auto backward = [&](const Batch& batch, int step, double share) {
    for (int rank = 0; rank < parts; ++rank) {
      const Batch part = batch.part(rank, parts);
      const auto output = net->forward(part.x, branch_at(training, step, rank));
      (loss_of(training, output, part.y) * (share / parts)).backward();
    }
  };
  for (int step = 0; step < kSteps; ++step) {
    for (Tensor& parameter : net->parameters()) parameter.mutable_grad().reset();
    if (training.accumulates) backward(batch_at(step + kSteps), step, 0.5);
    backward(batch_at(step), step, training.accumulates ? 0.5 : 1);
    optimizer.step();
  }
  return state_of(*net);
}

void compare(const Training& training) {
  for (const int size : {1, 2, 3, 4}) {
    INFO(training.name, " on ", size, " ranks");
    const auto alone =
        testing::run_ranks(1, [&](const Rendezvous&) { return train_alone(training, size); });
    const auto ends = run_group(size, [&](ProcessGroup& g) { return train(g, training); });
    CHECK(greatest_difference(values_of(ends), values_of(alone)) <= training.tolerance);
    CHECK(testing::are_equal(ends));
  }
}

TEST_CASE("ranks train as one process on the full batch, with every option") {
  const Training trainings[] = {
      {.name = "defaults", .options = {}},
      {.name = "small buckets", .options = {.bucket_cap_mb = 0.0005}},
      {.name = "one bucket", .options = {.delay_allreduce = true}},
      {.name = "bucket views", .options = {.gradient_as_bucket_view = true}},
      {.name = "no buffers", .options = {.broadcast_buffers = false}},
      {.name = "static graph", .options = {.static_graph = true}},
      {.name = "all at once",
       .options = {.bucket_cap_mb = 0.0005,
                   .find_unused_parameters = true,
                   .static_graph = true,
                   .gradient_as_bucket_view = true}},
  };
  for (const Training& training : trainings) compare(training);
}

TEST_CASE("ranks may use different branches of the model, or leave some unused") {
  const Training trainings[] = {
      {.name = "uneven",
       .options = {.find_unused_parameters = true},
       .branches = Branches::kAlternating},
      {.name = "uneven, small buckets, views",
       .options = {.bucket_cap_mb = 0.0005,
                   .find_unused_parameters = true,
                   .gradient_as_bucket_view = true},
       .branches = Branches::kAlternating},
      {.name = "uneven, one bucket",
       .options = {.find_unused_parameters = true, .delay_allreduce = true},
       .branches = Branches::kAlternating},
      {.name = "unused", .options = {.find_unused_parameters = true}, .branches = Branches::kFirst},
      {.name = "unused in a static graph",
       .options = {.static_graph = true},
       .branches = Branches::kFirst},
      {.name = "an output the loss does not use",
       .options = {.find_unused_parameters = true},
       .branches = Branches::kOutputUnused},
  };
  for (const Training& training : trainings) compare(training);
}

TEST_CASE("gradients of several backwards are reduced once") {
  const Training trainings[] = {
      {.name = "accumulation", .options = {}, .accumulates = true},
      {.name = "accumulation in bucket views",
       .options = {.gradient_as_bucket_view = true},
       .accumulates = true},
      {.name = "accumulation, uneven",
       .options = {.find_unused_parameters = true},
       .branches = Branches::kAlternating,
       .accumulates = true},
  };
  for (const Training& training : trainings) compare(training);
}

TEST_CASE("gathering without reducing is refused for a static graph") {
  const auto ends = run_group(2, [](ProcessGroup& group) {
    DistributedDataParallel model(torch::nn::Linear(1, 1), group, {.static_graph = true});
    const auto guard = model.no_sync();
    return std::vector<double>{};
  });
  CHECK_HAS(ends[1].error, "no_sync() does not go with static_graph");
}

TEST_CASE("a parameter of two modules is reduced once") {
  compare({.name = "shared", .options = {}, .shares = true});
  compare({.name = "shared, static graph", .options = {.static_graph = true}, .shares = true});
}

TEST_CASE("compressed gradients lose digits, the same on all ranks") {
  for (const auto& [compression, tolerance] : {std::pair(GradientCompression::kFloat16, 2e-2),
                                               std::pair(GradientCompression::kBFloat16, 1e-1)}) {
    const Training exact{.name = "exact", .options = {}};
    const Training compressed{
        .name = "compressed", .options = {.compression = compression}, .tolerance = tolerance};
    compare(compressed);
    const auto with = run_group(2, [&](ProcessGroup& g) { return train(g, compressed); });
    const auto without = run_group(2, [&](ProcessGroup& g) { return train(g, exact); });
    CHECK(greatest_difference(values_of(with), values_of(without)) > 1e-6);
  }
}

TEST_CASE("sparse gradients of embeddings are averaged") {
  const auto gradients = [](ProcessGroup& group, int parts) {
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Embedding(torch::nn::EmbeddingOptions(10, 4).sparse(true)),
                              torch::nn::Linear(4, 2));
    DistributedDataParallel model(net, group);
    const Tensor words = torch::tensor({1, 2, 2, 7, 8, 1}).slice(0, group.rank(), {}, parts);
    model.backward(model.forward(words).square().mean());
    return state_of(*net);
  };
  const auto alone = run_group(1, [&](ProcessGroup& group) { return gradients(group, 1); });
  const auto ends = run_group(2, [&](ProcessGroup& group) { return gradients(group, 2); });
  CHECK(greatest_difference(values_of(ends), values_of(alone)) <= 1e-6);
  CHECK(testing::are_equal(ends));
}

struct CounterImpl : torch::nn::Module {
  Tensor forward(const Tensor& x, double amount) {
    const torch::NoGradGuard no_gradients;
    count += amount;
    const torch::AutoGradMode gradients(true);
    return linear->forward(x);
  }
  Tensor count = register_buffer("count", torch::zeros({1}));
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 1));
};
TORCH_MODULE(Counter);

TEST_CASE("buffers are rank 0's before each forward, unless they are not wanted") {
  // Adds 1 on rank 0, 2 on rank 1. Step 1: 1 and 2. Step 2: 2 and 1 + 2 = 3, or 2 + 2 = 4.
  for (const bool wanted : {true, false}) {
    const auto ends = run_group(2, [&](ProcessGroup& group) {
      Counter net;
      DistributedDataParallel model(net, group, {.broadcast_buffers = wanted});
      for (int step = 0; step < 2; ++step) {
        model.backward(model.forward(torch::ones({1, 2}), 1.0 + group.rank()).sum());
      }
      return doubles(net->count);
    });
    CHECK(values_of(ends) == std::vector<double>{2});
    CHECK(ends[1].values == std::vector<double>{wanted ? 3.0 : 4.0});
  }
}

std::vector<RankEnd> differ(const std::function<void(ProcessGroup&)>& make) {
  return run_group(3, [&](ProcessGroup& group) {
    make(group);
    return std::vector<double>{};
  });
}

TEST_CASE("models that differ between ranks are refused on all of them, by parameter") {
  const auto linear = [](int inputs, bool bias) {
    return torch::nn::Linear(torch::nn::LinearOptions(inputs, 2).bias(bias));
  };
  for (const RankEnd& end : differ([&](ProcessGroup& group) {
         DistributedDataParallel model(
             torch::nn::Sequential(linear(3, true), linear(group.rank() == 2 ? 5 : 4, true)),
             group);
       })) {
    CHECK(end.error ==
          "the models of a group of ranks must be alike: parameter 1.weight is Float [2, 4] on "
          "rank 0, Float [2, 5] on rank 2");
  }
  for (const RankEnd& end : differ([&](ProcessGroup& group) {
         DistributedDataParallel model(linear(3, group.rank() == 0), group);
       })) {
    CHECK_HAS(end.error,
              "parameter bias (Float [2]) is on rank 0, but not at that place on "
              "rank 1");
  }
  for (const RankEnd& end : differ([&](ProcessGroup& group) {
         auto frozen = linear(group.rank() == 1 ? 5 : 4, false);
         frozen->weight.set_requires_grad(false);
         DistributedDataParallel model(torch::nn::Sequential(linear(3, true), frozen), group);
       })) {
    CHECK_HAS(end.error,
              "frozen parameter 1.weight is Float [2, 4] on rank 0, Float [2, 5] on rank 1");
  }
  for (const RankEnd& end : differ([&](ProcessGroup& group) {
         auto model = linear(3, true);
         model->register_buffer("seen", torch::zeros({group.rank() + 1}, torch::kLong));
         DistributedDataParallel parallel(model, group);
       })) {
    CHECK_HAS(end.error, "buffer seen is Long [1] on rank 0, Long [2] on rank 1");
  }
  for (const RankEnd& end : differ([&](ProcessGroup& group) {
         DistributedDataParallel model(linear(3, true), group, {.static_graph = group.rank() == 1});
       })) {
    CHECK_HAS(end.error, "option static_graph is 0 on rank 0, 1 on rank 1");
  }
}

TEST_CASE("a model or an option that cannot be trained with is refused") {
  const auto refusal = [](const std::function<void(ProcessGroup&)>& make) {
    return run_group(1,
                     [&](ProcessGroup& group) {
                       make(group);
                       return std::vector<double>{};
                     })[0]
        .error;
  };
  CHECK_HAS(refusal([](ProcessGroup& group) {
              DistributedDataParallel model(torch::nn::Sequential(torch::nn::ReLU()), group);
            }),
            "no parameter with a gradient");
  CHECK_HAS(refusal([](ProcessGroup& group) {
              DistributedDataParallel model(torch::nn::Linear(1, 1), group, {.bucket_cap_mb = 0});
            }),
            "bucket_cap_mb is 0.0");
}

TEST_CASE("a rank that dies or skips a step: the others' backward says what it waited for") {
  const auto end_of_rank_0 = [](const std::function<void()>& instead) {
    return run_group(
               2,
               [&](ProcessGroup& group) {
                 DistributedDataParallel model(torch::nn::Linear(4, 2), group);
                 for (int step = 0; step < 3; ++step) {
                   const Tensor loss = model.forward(torch::ones({2, 4})).sum();
                   if (step == 2 && group.rank() == 1) {
                     instead();
                     break;
                   }
                   model.backward(loss);
                 }
                 group.barrier("end of the epoch");
                 return std::vector<double>{};
               },
               2s)[0]
        .error;
  };
  CHECK_HAS(end_of_rank_0([] { ::raise(SIGKILL); }),
            "rank 0 of 2: all_reduce of the gradients, call ");
  const std::string skipped = end_of_rank_0([] {});
  CHECK_HAS(skipped, "rank 0 of 2: all_reduce of the gradients");
}

TEST_CASE("the others' backward waits for a rank that is alone beyond the timeout") {
  const auto ends = run_group(
      2,
      [](ProcessGroup& group) {
        DistributedDataParallel model(torch::nn::Linear(4, 2), group);
        for (int step = 0; step < 3; ++step) {
          if (step == 1 && group.rank() == 1) {
            const Solitude solitude;
            std::this_thread::sleep_for(3s);
          }
          model.backward(model.forward(torch::ones({2, 4})).sum());
        }
        return std::vector<double>{};
      },
      1s);
  for (const RankEnd& end : ends) CHECK(end.error == "");
}

TEST_CASE("an exception of the model's own backward is not blamed on the group") {
  struct Thrower : torch::autograd::Function<Thrower> {
    static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                   const torch::autograd::variable_list&) {
      throw std::runtime_error("division of apples");
    }
  };
  const auto ends = run_group(2, [](ProcessGroup& group) {
    DistributedDataParallel model(torch::nn::Linear(1, 1), group);
    model.backward(Thrower::apply(model.forward(torch::ones({1, 1}))).sum());
    return std::vector<double>{};
  });
  for (const RankEnd& end : ends) CHECK_HAS(end.error, "division of apples");
  CHECK_FALSE(testing::has(ends[0].error, "all_reduce"));
}

// Batch normalisation of 12 samples, of which each rank has those from its number in `cuts` on.
struct NormCase {
  std::string name;
  std::vector<std::int64_t> shape;  // of all ranks' batches together
  std::vector<std::int64_t> cuts;
  at::ScalarType type = at::kFloat;
  double mean = 3, deviation = 1;
  double tolerance = 1e-6;
};

std::vector<double> normalise(torch::nn::AnyModule layer, ProcessGroup& group,
                              const NormCase& one) {
  torch::manual_seed(5);
  const Tensor x = (torch::randn(one.shape) * one.deviation + one.mean).to(one.type);
  const Tensor factors = (torch::randn(one.shape) / 4).to(one.type);
  const auto module = layer.ptr();
  const torch::NoGradGuard no_gradients;
  module->named_parameters()["weight"].uniform_(0.5, 2);
  module->named_parameters()["bias"].normal_();
  const torch::AutoGradMode gradients(true);
  const auto rank = static_cast<std::size_t>(group.rank());
  const bool alone = group.size() == 1;
  const std::int64_t begin = alone ? 0 : one.cuts[rank];
  const std::int64_t end = alone ? one.shape[0] : one.cuts[rank + 1];
  Tensor output, own;
  for (int step = 0; step < 2; ++step) {
    module->zero_grad();
    own = x.slice(0, begin, end).clone().requires_grad_();
    output = layer.forward(own);
    (output * factors.slice(0, begin, end)).sum().backward();
  }
  // Each rank's part is put where it belongs, so that the sum over ranks is the whole.
  std::vector<double> all;
  for (const Tensor& part : {output.detach(), own.grad()}) {
    Tensor whole = torch::zeros(one.shape);
    whole.slice(0, begin, end).copy_(part);
    group.all_reduce(whole);
    const auto more = doubles(whole);
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const char* name : {"weight", "bias"}) {
    Tensor gradient = module->named_parameters()[name].grad().clone();
    group.all_reduce(gradient);
    const auto more = doubles(gradient);
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const Tensor& buffer : module->buffers()) {
    const auto more = doubles(buffer);
    all.insert(all.end(), more.begin(), more.end());
  }
  module->eval();
  const auto more = doubles(layer.forward(x));
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("batches of all ranks are normalised as one, even when a rank has none") {
  const NormCase cases[] = {
      {"two ranks", {12, 5, 4, 4}, {0, 5, 12}},
      {"one without samples", {12, 5, 4, 4}, {0, 0, 7, 12}},
      {"four ranks", {12, 5, 4, 4}, {0, 3, 6, 9, 12}},
      {"two values each", {2, 5, 2, 1}, {0, 1, 2}},
      // Rounded once, at the end: the tolerance is the last digit of the largest outputs.
      {"half precision", {12, 5, 4, 4}, {0, 5, 12}, at::kBFloat16, 100, 8, 0.032},
  };
  for (const NormCase& one : cases) {
    INFO(one.name);
    const auto alone = run_group(
        1, [&](ProcessGroup& group) { return normalise(batch_norm_2d()(5), group, one); });
    const int size = static_cast<int>(one.cuts.size()) - 1;
    const auto ends = run_group(size, [&](ProcessGroup& group) {
      return normalise(sync_batch_norm(group)(5), group, one);
    });
    CHECK(greatest_difference(values_of(ends), values_of(alone)) <= one.tolerance);
    CHECK(testing::are_equal(ends));
  }
}

TEST_CASE("inputs that batch normalisation cannot take are refused") {
  const auto ends = run_group(2, [](ProcessGroup& group) {
    SyncBatchNorm layer(torch::nn::BatchNormOptions(3), group.duplicate());
    std::vector<double> said;
    for (const auto& shape : {std::vector<std::int64_t>{4, 2}, {group.rank() == 0 ? 1 : 0, 3}}) {
      said.push_back(is_refused(
          [&] { layer->forward(torch::ones(shape)); },
          said.empty() ? "the input's shape is [4, 2]" : "they hold 1 values a feature"));
    }
    return said;
  });
  CHECK(values_of(ends) == std::vector<double>{1, 1});
}

struct NormedImpl : torch::nn::Module {
  explicit NormedImpl(const NormLayer& make) : norm(make(8)) {
    register_module("norm", norm.ptr());
  }
  Tensor forward(const Tensor& x) {
    return last->forward(torch::relu(norm.forward(first->forward(x))));
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(kFeatures, 8));
  torch::nn::AnyModule norm;
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 3));
};
TORCH_MODULE(Normed);

TEST_CASE("a model with batch normalisation over all ranks trains as one process") {
  for (const int size : {2, 3, 4}) {
    const auto train_normed = [](ProcessGroup& group, const NormLayer& norm) {
      torch::manual_seed(1 + group.rank());
      Normed net(norm);
      DistributedDataParallel model(net, group);
      torch::optim::SGD optimizer(net->parameters(), 0.1);
      for (int step = 0; step < kSteps; ++step) {
        const Batch part = batch_at(step).part(group.rank(), group.size());
        model.zero_grad();
        model.backward(torch::cross_entropy_loss(model.forward(part.x), part.y));
        optimizer.step();
      }
      std::vector<double> all = state_of(*net);
      for (const Tensor& buffer : net->buffers()) all.push_back(buffer.sum().item<double>());
      return all;
    };
    const auto alone =
        run_group(1, [&](ProcessGroup& group) { return train_normed(group, batch_norm_1d()); });
    const auto ends = run_group(
        size, [&](ProcessGroup& group) { return train_normed(group, sync_batch_norm(group)); });
    INFO(size, " ranks");
    CHECK(greatest_difference(values_of(ends), values_of(alone)) <= 5e-6);
    CHECK(testing::are_equal(ends));
  }
}

TEST_CASE("metrics of all ranks are means over all samples, and may be of some ranks only") {
  const auto ends = run_group(3, [](ProcessGroup& group) {
    Metrics own;
    own.add("loss", 1.0 + group.rank(), group.rank() + 1);  // 1, 2 2, 3 3 3
    own.add("empty", std::nan(""), 0);
    if (group.rank() == 1) own.add("rare", 0.5, 4);
    const Metrics all = own.over(group);
    const Result result = all.result();
    return std::vector<double>{result.get<double>("loss"), all.mean("rare"),
                               static_cast<double>(all.samples("loss")), 1.0 * result.map().size()};
  });
  CHECK(values_of(ends) == std::vector<double>{14.0 / 6.0, 0.5, 6, 2});
  CHECK(testing::are_equal(ends));
  Metrics none;
  CHECK_THROWS_WITH_AS(none.mean("loss"), "nothing was measured as loss; there is nothing", Error);
  CHECK_THROWS_AS(none.add("loss", 1, -1), Error);
}

}  // namespace
}  // namespace tune
