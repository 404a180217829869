// Seen on a GPU only. Without one every test says "skipped: no GPU".
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/platform/node.h"
#include "skip.h"
#include "torch/ranks/ranks.h"
#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/checkpoint.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/data_loader.h"
#include "trainables/torch/dataset.h"
#include "trainables/torch/device.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/fused_optimizers.h"
#include "trainables/torch/grad_scaler.h"
#include "trainables/torch/mixed_precision.h"
#include "trainables/torch/random.h"
#include "trainables/torch/sync_batch_norm.h"
#include "trainables/torch/torch_trainer.h"
#include "trainables/torch/training_step.h"
#include "tune/run.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::doubles;
using testing::greatest_difference;
using testing::values_of;
using torch::Tensor;

const std::vector<Gpu>& machine_gpus() {
  static const std::vector<Gpu> gpus = discover_node({}).gpus;
  return gpus;
}

// The first `count` GPUs are those of the trial; false when there are fewer.
bool take_gpus(int count) {
  const std::vector<Gpu>& gpus = machine_gpus();
  if (static_cast<int>(gpus.size()) < count) {
    testing::skip("no GPU (" + std::to_string(gpus.size()) + " of " + std::to_string(count) + ")");
    return false;
  }
  std::string names;
  for (int i = 0; i < count; ++i) {
    names += (i == 0 ? "" : ",") + gpus[static_cast<std::size_t>(i)].device;
  }
  ::setenv("CUDA_VISIBLE_DEVICES", names.c_str(), 1);
  return true;
}

// A group on GPUs: each rank's own by NCCL, or all on the first by Gloo.
std::vector<testing::RankEnd> run_on_gpus(int size, bool shared,
                                          const testing::GroupFunction& function) {
  return testing::run_ranks(size, [&](const Rendezvous& place) {
    const int index = shared ? 0 : place.rank;
    ::setenv("TUNE_DEVICE_INDEX", std::to_string(index).c_str(), 1);
    ProcessGroup group(place, {.timeout = 30s, .device = own_device(), .gloo_for_gpu = shared});
    std::vector<double> values = function(group);
    group.barrier();
    return values;
  });
}

TEST_CASE("NCCL of the right version reduces on one GPU") {
  if (!take_gpus(1)) return;
  const auto ends = testing::run_ranks(1, [](const Rendezvous&) {
    const c10::Device device = own_device();
    const auto nccl = cuda_part().make_nccl(c10::make_intrusive<c10d::HashStore>(), 0, 1, 30s,
                                            [](const std::function<bool()>&) {});
    std::vector<Tensor> tensors{torch::full({4}, 3.0, device)};
    nccl->allreduce(tensors)->wait();
    nccl->shutdown();
    return doubles(tensors[0]);
  });
  CHECK(values_of(ends) == std::vector<double>{3, 3, 3, 3});
}

std::vector<double> collectives(ProcessGroup& group) {
  Tensor sum = torch::full({3}, 1.0 + group.rank(), group.device());
  group.all_reduce(sum);
  Tensor own = torch::full({1}, 1.0 * group.rank(), group.device());
  group.broadcast(own, 1);
  std::vector<double> values = doubles(sum);
  values.push_back(own.item<double>());
  return values;
}

TEST_CASE("two ranks share one GPU by Gloo") {
  if (!take_gpus(1)) return;
  const auto ends = run_on_gpus(2, true, collectives);
  CHECK(values_of(ends) == std::vector<double>{3, 3, 3, 1});
  CHECK(testing::are_equal(ends));
}

TEST_CASE("two ranks with a GPU each speak NCCL") {
  if (!take_gpus(2)) return;
  const auto ends = run_on_gpus(2, false, collectives);
  CHECK(values_of(ends) == std::vector<double>{3, 3, 3, 1});
  CHECK(testing::are_equal(ends));
}

// Parameters after 20 steps with batch normalisation over all ranks.
std::vector<double> train(ProcessGroup& group, const NormLayer& norm) {
  torch::manual_seed(1 + group.rank());
  torch::nn::Sequential net(torch::nn::Linear(6, 8), norm(8), torch::nn::ReLU(),
                            torch::nn::Linear(8, 3));
  net->to(group.device());
  DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (unsigned step = 0; step < 20; ++step) {
    const auto generator = torch::make_generator<at::CPUGeneratorImpl>(step);
    const auto part = [&](const Tensor& all) {
      return all.slice(0, group.rank(), {}, group.size()).to(group.device());
    };
    const Tensor x = part(torch::randn({12, 6}, generator));
    const Tensor y = part(torch::randint(3, {12}, generator, torch::kLong));
    model.zero_grad();
    model.backward(torch::cross_entropy_loss(model.forward(x), y));
    optimizer.step();
  }
  std::vector<double> all;
  for (const Tensor& tensor : net->parameters()) {
    for (const double value : doubles(tensor)) all.push_back(value);
  }
  for (const Tensor& tensor : net->buffers()) {
    for (const double value : doubles(tensor)) all.push_back(value);
  }
  return all;
}

TEST_CASE("ranks on GPUs train with SyncBatchNorm as one process on the CPU") {
  if (!take_gpus(1)) return;
  const auto alone =
      testing::run_group(1, [](ProcessGroup& group) { return train(group, batch_norm_1d()); });
  const auto ends = run_on_gpus(
      2, true, [](ProcessGroup& group) { return train(group, sync_batch_norm(group)); });
  CHECK(greatest_difference(values_of(ends), values_of(alone)) <= 1e-4);
  CHECK(testing::are_equal(ends));
}

TEST_CASE("autocast computes in half precision on a GPU, and leaves the weights in floats") {
  if (!take_gpus(1)) return;
  const auto ends = testing::run_ranks(1, [](const Rendezvous&) {
    const c10::Device device = own_device();
    torch::nn::Linear layer(64, 64);
    layer->to(device);
    const Tensor x = torch::randn({32, 64}, device);
    const Tensor exact = layer->forward(x);
    Tensor output;
    {
      const Autocast autocast(device.type(), at::kHalf);
      output = layer->forward(x);
    }
    const bool is_half = output.scalar_type() == at::kHalf;
    const bool is_float = layer->weight.scalar_type() == at::kFloat;
    const double difference = (output.to(at::kFloat) - exact).abs().max().item<double>();
    return std::vector<double>{is_half ? 1.0 : 0.0, is_float ? 1.0 : 0.0, difference};
  });
  const std::vector<double> seen = values_of(ends);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] == 1);
  CHECK(seen[1] == 1);
  CHECK(seen[2] > 0);
  CHECK(seen[2] < 0.02);  // sums of 64 products below 1 or so, rounded to 11 bits
}

TEST_CASE("a scaler on a GPU skips the step whose gradients are infinite") {
  if (!take_gpus(1)) return;
  const auto ends = testing::run_ranks(1, [](const Rendezvous&) {
    Tensor weight = torch::ones({4}, torch::dtype(at::kFloat).device(own_device()));
    weight.requires_grad_();
    torch::optim::SGD optimizer({weight}, 0.5);
    GradScaler scaler({.scale = 1024});
    std::vector<double> values;
    for (const double factor : {1.0, 1e38}) {  // 1e38 x 1024 is not a float
      optimizer.zero_grad();
      scaler.scale((weight * factor).sum()).backward();
      values.push_back(scaler.step(optimizer) ? 1 : 0);
      scaler.update();
      values.push_back(weight[0].item<double>());
      values.push_back(scaler.scale());
    }
    return values;
  });
  CHECK(values_of(ends) == std::vector<double>{1, 0.5, 1024, 0, 0.5, 512});
}

// Before and after the GPU is asked for, and after a checkpoint.
TEST_CASE("a GPU's random numbers follow from the seed, and go on where a checkpoint was made") {
  if (!take_gpus(1)) return;
  const auto numbers = [] { return torch::rand({2}, torch::device(own_device())); };
  const auto ends = testing::run_ranks(1, [&](const Rendezvous&) {
    const testing::TemporaryFolder folder;
    seed_all(7);  // CUDA is not loaded yet
    const Tensor first = numbers();
    save_random_state(folder.path());
    const Tensor second = numbers();
    seed_all(7);
    const bool again = numbers().equal(first);
    seed_all(8);
    const bool differs = !numbers().equal(first);
    load_random_state(folder.path());
    const bool goes_on = numbers().equal(second);
    return std::vector<double>{again ? 1.0 : 0.0, differs ? 1.0 : 0.0, goes_on ? 1.0 : 0.0};
  });
  CHECK(values_of(ends) == std::vector<double>{1, 1, 1});
}

class Seeded : public Trainable {
 public:
  void setup(const Config&) override {
    torch::manual_seed(static_cast<std::uint64_t>(context().seed()));
    device_ = context().device();
  }
  Result step() override {
    return {{"on_gpu", device_.is_cuda()},
            {"number", torch::rand({1}, torch::device(device_)).item<double>()}};
  }

 private:
  torch::Device device_ = torch::kCPU;
};

class OneLayer : public TrainingOperator {
 public:
  void setup(const Config&) override {
    torch::nn::Linear net(4, 1);
    auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.1);
    register_training(
        {.models = {net}, .optimizers = {optimizer}, .criterion = torch::nn::MSELoss()});
    register_data(
        {.train = std::make_shared<TensorDataset>(torch::ones({8, 4}), torch::ones({8, 1})),
         .batch_size = 4});
  }
};

TEST_CASE("trials and trainers get their GPU from a program that is told of none") {
  if (!take_gpus(1)) return;
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  const testing::TemporaryFolder folder;
  const Analysis analysis = run<Seeded>({.name = "s",
                                         .metric = "number",
                                         .stop = {{"training_iteration", 1}},
                                         .resources_per_trial = {.cpu = 1, .gpu = 1},
                                         .storage = folder.path(),
                                         .quiet = true});
  CHECK(analysis.best_result().get<bool>("on_gpu"));
  TorchTrainer<OneLayer> trainer({.use_gpu = true});
  const double first = trainer.train().get<double>("train_loss");
  for (int epoch = 0; epoch < 10; ++epoch) trainer.train();
  CHECK(trainer.train().get<double>("train_loss") < first / 10);
}

TEST_CASE("half gradients and batches in pinned memory train on a GPU") {
  if (!take_gpus(1)) return;
  const auto ends = run_on_gpus(2, true, [](ProcessGroup& group) {
    torch::nn::Linear net(4, 1);
    net->to(group.device());
    DistributedDataParallel model(net, group, {.compression = GradientCompression::kFloat16});
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    const auto data = std::make_shared<TensorDataset>(torch::ones({8, 4}), torch::ones({8, 1}));
    DataLoader loader(
        data, std::make_shared<DistributedSampler>(8, DistributedSamplerOptions{.shuffle = false}),
        {.batch_size = 4, .pin_memory = true});
    std::vector<double> losses;
    double pinned = 1;
    for (int epoch = 0; epoch < 20; ++epoch) {
      for (const tune::Batch& batch : loader) {
        if (!batch.data.is_pinned()) pinned = 0;
        model.zero_grad();
        const Tensor loss = torch::mse_loss(model.forward(batch.data.to(group.device(), true)),
                                            batch.target.to(group.device(), true));
        model.backward(loss);
        optimizer.step();
        losses.push_back(loss.item<double>());
      }
    }
    return std::vector<double>{pinned, losses.back() < losses.front() / 10 ? 1.0 : 0.0};
  });
  CHECK(values_of(ends) == std::vector<double>{1, 1});
}

// Losses and weights of twelve batches, the last but one smaller; the rate falls on the way.
std::vector<double> train_in_steps(ProcessGroup& group, bool with_graph) {
  seed_all(3);
  torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), batch_norm_2d()(4), torch::nn::ReLU(),
                            torch::nn::Flatten(), torch::nn::Linear(4 * 6 * 6, 3));
  net->to(group.device());
  auto optimizer =
      std::make_shared<FusedSgd>(net->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  TrainingStep step(net, optimizer, group,
                    {.criterion = torch::nn::CrossEntropyLoss(),
                     .precision = {.level = PrecisionLevel::kO1},
                     .clip = {.norm = 1},
                     .ema_decay = 0.9,
                     .cuda_graph = with_graph});
  std::vector<double> values;
  for (std::uint64_t i = 0; i < 12; ++i) {
    optimizer->param_groups()[0].options().set_lr(i < 8 ? 1e-2 : 1e-3);
    const auto generator = torch::make_generator<at::CPUGeneratorImpl>(i);
    const std::int64_t size = i == 10 ? 4 : 8;
    const Tensor x = torch::randn({size, 1, 8, 8}, generator).to(group.device());
    const Tensor y = torch::randint(3, {size}, generator, torch::kLong).to(group.device());
    values.push_back(step.run({x, y}).item<double>());
  }
  for (const Tensor& tensor : net->parameters()) {
    for (const double value : doubles(tensor)) values.push_back(value);
  }
  return values;
}

TEST_CASE("a CUDA graph trains as the direct way, on one GPU and on two") {
  for (const int gpus : {1, 2}) {
    if (!take_gpus(gpus)) return;
    const auto direct =
        run_on_gpus(gpus, false, [](ProcessGroup& group) { return train_in_steps(group, false); });
    const auto played =
        run_on_gpus(gpus, false, [](ProcessGroup& group) { return train_in_steps(group, true); });
    CHECK(greatest_difference(values_of(played), values_of(direct)) <= 1e-3);
  }
}

TEST_CASE("a forward that waits for the GPU is not recorded, and the error says why") {
  if (!take_gpus(1)) return;
  const auto ends = testing::run_ranks(1, [](const Rendezvous&) {
    ProcessGroup group(Rendezvous(), {.device = own_device()});
    torch::nn::Linear net(4, 1);
    net->to(group.device());
    const auto optimizer = std::make_shared<torch::optim::SGD>(net->parameters(), 0.1);
    const auto waits = [](const Tensor& output, const Tensor& target) {
      return output.sum().item<double>() > 1e9 ? output.sum() : torch::mse_loss(output, target);
    };
    TrainingStep step(net, optimizer, group, {.criterion = waits, .cuda_graph = true});
    const tune::Batch batch = {torch::ones({8, 4}, torch::device(group.device())),
                               torch::ones({8, 1}, torch::device(group.device()))};
    for (int i = 0; i < GraphPlan::kWarmUps; ++i) step.run(batch);
    const bool refused = testing::is_refused([&] { step.run(batch); }, "what waits for the GPU");
    return std::vector<double>{refused ? 1.0 : 0.0};
  });
  CHECK(values_of(ends) == std::vector<double>{1});
}

TEST_CASE("what a trial took of a GPU's memory is there for the next") {
  if (!take_gpus(1)) return;
  const std::int64_t bytes = machine_gpus()[0].memory_bytes;
  if (bytes == 0) {  // a part of a GPU
    testing::skip("how much memory the GPU has is not known");
    return;
  }
  for (int trial = 0; trial < 3; ++trial) {
    const auto ends = testing::run_ranks(1, [&](const Rendezvous&) {
      const Tensor most =
          torch::zeros({bytes / 5 * 3}, torch::dtype(torch::kByte).device(own_device()));
      return std::vector<double>{most.sum().item<double>()};
    });
    CHECK(values_of(ends) == std::vector<double>{0});
  }
}

}  // namespace
}  // namespace tune
