// One step of a training, its phases and its policies.
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace nn = torch::nn;
using testing::refusal;

// A small network, the same every time, and a step of it.
struct SteppedNet {
  explicit SteppedNet(TrainingStepOptions options = {})
      : net((seed_all(4), nn::Linear(3, 2))),
        optimizer(std::make_shared<torch::optim::SGD>(net->parameters(), 0.1)),
        step(net, optimizer, {}, with_loss(std::move(options))) {}

  static TrainingStepOptions with_loss(TrainingStepOptions options) {
    options.criterion = nn::MSELoss();
    return options;
  }
  at::Tensor weight() const { return net->weight.detach().clone(); }

  nn::Linear net;
  std::shared_ptr<torch::optim::SGD> optimizer;
  TrainingStep step;
};

Batch step_samples(std::int64_t count) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(std::uint64_t{9});
  return {torch::randn({count, 3}, generator), torch::randn({count, 2}, generator)};
}

Batch part_of(const Batch& batch, std::int64_t begin, std::int64_t end) {
  return {batch.data.slice(0, begin, end), batch.target.slice(0, begin, end)};
}

TEST_CASE("a step runs the phases that LibTorch's own calls are") {
  const Batch batch = step_samples(8);
  SteppedNet whole, phases, plain;
  for (int i = 0; i < 3; ++i) {
    const at::Tensor loss = whole.step.run(batch);
    CHECK_FALSE(loss.requires_grad());

    phases.step.zero();
    const at::Tensor output = phases.step.forward(batch.data);
    const at::Tensor same = torch::mse_loss(output, batch.target);
    phases.step.backward(same);
    phases.step.unscale();
    phases.step.clip();
    CHECK(phases.step.step());
    CHECK(same.item<float>() == loss.item<float>());

    plain.optimizer->zero_grad();
    torch::mse_loss(plain.net->forward(batch.data), batch.target).backward();
    plain.optimizer->step();
  }
  CHECK(whole.weight().equal(plain.weight()));
  CHECK(phases.weight().equal(plain.weight()));
}

TEST_CASE("batches that are gathered move the weights as one large batch, a shorter rest as well") {
  const Batch batch = step_samples(20);
  SteppedNet large, small({.accumulate = 3});
  large.step.run(part_of(batch, 0, 12));
  large.step.run(part_of(batch, 12, 20));
  const at::Tensor before = small.weight();
  std::int64_t left = 5;
  for (std::int64_t begin = 0; begin < 20; begin += 4, --left) {
    small.step.set_batches_left(left);
    CHECK(small.step.is_due() == (left == 3 || left == 1));  // after 3, and with the epoch
    small.step.run(part_of(batch, begin, begin + 4));
    if (left == 4) CHECK(small.weight().equal(before));
  }
  CHECK(small.weight().allclose(large.weight(), 1e-5, 1e-6));
}

TEST_CASE("gradients are limited by value and by norm") {
  const auto clipped = [](const GradientClip& clip) {
    const at::Tensor a = torch::zeros({2}).requires_grad_();
    const at::Tensor b = torch::zeros({1}).requires_grad_();
    a.mutable_grad() = torch::tensor({3.0F, -1.0F});
    b.mutable_grad() = torch::tensor({-12.0F});
    const torch::optim::SGD optimizer({a, b}, 0.1);
    const at::Tensor norm = clip_gradients(optimizer, clip);
    return std::tuple(torch::cat({a.grad(), b.grad()}), norm);
  };
  const auto [by_value, no_norm] = clipped({.value = 2});
  CHECK(by_value.equal(torch::tensor({2.0F, -1.0F, -2.0F})));
  CHECK_FALSE(no_norm.defined());
  const auto [by_norm, norm] = clipped({.norm = 1});
  const double expected = std::sqrt(9.0 + 1 + 144);
  CHECK(norm.item<double>() == doctest::Approx(expected).epsilon(1e-6));
  CHECK(by_norm.norm().item<double>() == doctest::Approx(1).epsilon(1e-5));
  CHECK(by_norm[0].item<double>() == doctest::Approx(3 / expected).epsilon(1e-5));
  CHECK(std::get<0>(clipped({.norm = 100})).equal(torch::tensor({3.0F, -1.0F, -12.0F})));
  // Values first: 2, -1, -2 have a norm of 3.
  const auto [by_both, rest] = clipped({.norm = 1.5, .value = 2});
  CHECK(rest.item<double>() == doctest::Approx(3));
  CHECK(by_both[0].item<double>() == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("rows that a sparse gradient names twice are limited as their sum") {
  nn::Embedding table(nn::EmbeddingOptions(4, 1).sparse(true));
  table->forward(torch::tensor({1, 1, 2})).sum().backward();
  const torch::optim::SGD optimizer(table->parameters(), 0.1);
  const at::Tensor norm = clip_gradients(optimizer, {.norm = 1});
  CHECK(norm.item<double>() == doctest::Approx(std::sqrt(5.0)));  // 2 and 1
  CHECK(table->weight.grad().to_dense().norm().item<double>() == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("a step limits the gradients and tells the norm that they had") {
  SteppedNet limited({.clip = {.norm = 1e-3}});
  const at::Tensor before = torch::cat({limited.weight().flatten(), limited.net->bias.detach()});
  limited.step.run(step_samples(8));
  const at::Tensor after = torch::cat({limited.weight().flatten(), limited.net->bias.detach()});
  CHECK(limited.step.gradient_norm().item<double>() > 1e-2);
  // The rate of 0.1 times the limit.
  CHECK((after - before).norm().item<double>() == doctest::Approx(1e-4).epsilon(1e-2));
}

TEST_CASE("half precision leaves a step out whose gradients are not finite, and says so") {
  SteppedNet half({.precision = {.level = PrecisionLevel::kO1, .dtype = at::kHalf},
                   .clip = {.norm = 1},
                   .ema_decay = 0.9});
  const at::Tensor before = half.weight();
  Batch batch = step_samples(4);
  batch.data[0][0] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(half.step.learn(torch::mse_loss(half.step.forward(batch.data), batch.target)));
  CHECK(half.weight().equal(before));
  CHECK(half.step.precision().scaler().scale() == 32768);
  half.step.run(step_samples(4));
  CHECK_FALSE(half.weight().equal(before));
}

TEST_CASE("an average of weights follows them, is put in their place, and is restored") {
  const testing::TemporaryFolder folder;
  nn::Linear net(1, 1);
  const at::NoGradGuard no_gradients;
  const auto set = [&](double value) { net->weight.fill_(value), net->bias.fill_(0); };
  set(1);
  WeightAverage average(*net, 0.9);
  set(2);
  average.update();  // keeps 2/11: 2 - 2/11
  set(3);
  average.update();  // keeps 3/12
  const double expected = 0.25 * (2 - 2.0 / 11) + 0.75 * 3;
  {
    const WeightAverage::InUse in_use(average);
    CHECK(net->weight.item<double>() == doctest::Approx(expected));
  }
  CHECK(net->weight.item<double>() == 3);
  average.save(folder.path());
  CHECK(read_safetensors(folder.path() / "average.safetensors").size() == 2);

  set(7);
  WeightAverage restored(*net, 0.9);
  restored.load(folder.path());
  restored.update();  // the third: keeps 4/13
  const WeightAverage::InUse in_use(restored);
  CHECK(net->weight.item<double>() == doctest::Approx(expected * 4 / 13 + 7 * 9.0 / 13));
  const nn::Linear other(2, 1);
  CHECK_HAS(refusal([&] { WeightAverage(*other, 0.9).load(folder.path()); }),
            "weight is Float [1, 1] in the file and Float [1, 2] in the model");
}

TEST_CASE("policies of a step that cannot be are refused") {
  const auto made = [](const TrainingStepOptions& options) {
    return refusal([&] { SteppedNet net(options); });
  };
  CHECK_HAS(made({.clip = {.norm = 0}}), "clip.norm is 0.000000, above 0 is wanted");
  CHECK_HAS(made({.clip = {.value = -1}}), "clip.value is -1.000000");
  CHECK_HAS(made({.accumulate = 0}), "accumulate is 0, at least 1 is wanted");
  CHECK_HAS(made({.accumulate = 2, .ddp = {.static_graph = true}}), "static_graph");
  CHECK_HAS(made({.ema_decay = 1}), "ema_decay is 1.000000, between 0 and 1 is wanted");
  CHECK(precision_named("bf16") == Precision::kBFloat16);
  CHECK_HAS(refusal([] { precision_named("half"); }), "fp32, fp16 or bf16 is wanted");
  nn::Linear net(1, 1);
  TrainingStep bare(net, nullptr);
  CHECK_HAS(refusal([&] { bare.run({torch::ones({1, 1}), {}}); }), "without a criterion");
  CHECK_HAS(refusal([&] {
              bare.learn(net->forward(torch::ones({1, 1})).sum());
            }),
            "without an optimizer");
}

TEST_CASE("means that lie on a device are summed there as numbers are") {
  Metrics metrics;
  metrics.add("loss", torch::tensor(2.0F), 3);
  metrics.add("loss", torch::tensor({4.0F}), 1);
  metrics.add("loss", 6.5, 4);
  metrics.add("none", torch::tensor(NAN), 0);
  CHECK(metrics.mean("loss") == (2.0 * 3 + 4 + 6.5 * 4) / 8);
  CHECK(metrics.samples("loss") == 8);
  CHECK_FALSE(metrics.contains("none"));
  ProcessGroup alone;
  CHECK(metrics.over(alone).mean("loss") == 4.5);
  CHECK_HAS(refusal([&] { metrics.add("loss", torch::ones({2}), 1); }), "a tensor of 2 numbers");
}

TEST_CASE("loops that end within an epoch go on there, with and without workers") {
  const auto data = std::make_shared<TensorDataset>(torch::arange(10));
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    const auto made = [&] {
      return DataLoader(
          data,
          std::make_shared<DistributedSampler>(10, DistributedSamplerOptions{.shuffle = false}),
          {.batch_size = 2, .workers = workers});
    };
    DataLoader loader = made();
    loader.set_batches_per_loop(2);
    const auto loop = [](DataLoader& batches) {
      std::vector<std::int64_t> firsts;
      for (const Batch& batch : batches) firsts.push_back(batch.data[0].item<std::int64_t>());
      return firsts;
    };
    CHECK(loop(loader) == std::vector<std::int64_t>{0, 2});
    CHECK(loader.batches_given() == 2);
    const Value state = loader.state();
    CHECK(loop(loader) == std::vector<std::int64_t>{4, 6});
    CHECK(loader.batches_left() == 1);
    CHECK(loop(loader) == std::vector<std::int64_t>{8});
    CHECK(loader.epoch() == 1);
    CHECK(loader.batches_left() == 2);
    DataLoader restored = made();
    restored.load_state(state);
    CHECK(loop(restored) == std::vector<std::int64_t>{4, 6, 8});
    CHECK_HAS(refusal([&] { loader.set_batches_per_loop(-1); }), "batches_per_loop");
  }
}

// A linear layer on a device that has memory for so many samples, and says how many it was given.
struct SmallMemoryImpl : nn::Module {
  explicit SmallMemoryImpl(std::int64_t room) : room(room) {
    seed_all(4);
    linear = register_module("linear", nn::Linear(3, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    given.push_back(x.size(0));
    if (x.size(0) > room) throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "injected");
    return linear->forward(x);
  }
  nn::Linear linear{nullptr};
  std::int64_t room;
  std::vector<std::int64_t> given;
};
TORCH_MODULE(SmallMemory);

TEST_CASE("a batch that is too large for the memory is tried again, then in parts") {
  const Batch batch = step_samples(10);
  SteppedNet whole;
  SmallMemory net(3);
  auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.1);
  TrainingStep step(net, optimizer, {},
                    {.criterion = nn::MSELoss(), .split_when_out_of_memory = true});
  const at::Tensor loss = step.run(batch);
  // Once more as it is, in halves, in quarters: of 2, 3, 2 and 3 samples.
  CHECK(net->given == std::vector<std::int64_t>{10, 10, 5, 2, 3, 2, 3});
  CHECK(step.parts() == 4);
  CHECK(loss.item<double>() == doctest::Approx(whole.step.run(batch).item<double>()));
  CHECK(net->linear->weight.allclose(whole.weight(), 1e-5, 1e-6));
  // From now on at once.
  net->given.clear();
  step.run(batch);
  whole.step.run(batch);
  CHECK(net->given == std::vector<std::int64_t>{2, 3, 2, 3});
  CHECK(net->linear->weight.allclose(whole.weight(), 1e-5, 1e-6));
  step.run(step_samples(2));  // fewer samples than parts
  CHECK(net->given.size() == 6);
}

TEST_CASE("memory that not even one sample has is an error, as it is without the option") {
  const auto run = [](bool splits) {
    SmallMemory net(0);
    auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.1);
    TrainingStep step(net, optimizer, {},
                      {.criterion = nn::MSELoss(), .split_when_out_of_memory = splits});
    CHECK_THROWS_AS(step.run(step_samples(3)), c10::OutOfMemoryError);
    return net->given;
  };
  CHECK(run(true) == std::vector<std::int64_t>{3, 3, 1, 1});
  CHECK(run(false) == std::vector<std::int64_t>{3});
  CHECK_HAS(refusal([] { SteppedNet net({.accumulate = 2, .split_when_out_of_memory = true}); }),
            "split_when_out_of_memory is for one rank and accumulate = 1, here are 1 and 2");
}

}  // namespace
}  // namespace tune
