// The cost of training on two ranks: a step of a small model by DistributedDataParallel, through
// shared memory or, with TUNE_GROUP_SPEAKS=gloo in the environment, over Gloo, beside Python's class
// of that name with the same LibTorch (bench/ddp_step.py); the same by TrainingStep with a fused
// optimizer; and the time from fork to the first finished all_reduce.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/beside_python.h"
#include "bench/harness.h"
#include "bench/torch_ranks.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/fused_optimizers.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/training_step.h"

namespace tune::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
namespace nn = torch::nn;

constexpr const char* kHelp =
    "Times two ranks on CPUs, of one thread each. Beside them, taking turns, Python's "
    "DDP, if\n"
    "TUNE_BENCH_PYTHON names a Python that has torch.\n\n"
    "bench_ddp_step [--tiny] [--runs N]";

constexpr int kBatch = 64;

double milliseconds_since(SteadyClock::time_point began) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - began).count();
}

double first_all_reduce() {
  const auto began = SteadyClock::now();
  return in_two_ranks([&](const Rendezvous& place) {
    ProcessGroup group(place);
    group.all_reduce(torch::ones({1}));
    const double ms = milliseconds_since(began);
    group.barrier();
    return ms;
  });
}

nn::Sequential small_net() {
  torch::manual_seed(1);
  return nn::Sequential(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 256), nn::ReLU(),
                        nn::Linear(256, 10));
}

// Milliseconds a step. The same as bench/ddp_step.py does.
double train(const Rendezvous& place, int steps) {
  ProcessGroup group(place);
  nn::Sequential net = small_net();
  DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  const torch::Tensor x = torch::randn({kBatch, 64});
  const torch::Tensor y = torch::randint(10, {kBatch}, torch::kLong);
  const double ms = milliseconds_a_step(steps, [&] {
    model.zero_grad();
    model.backward(torch::cross_entropy_loss(model.forward(x), y));
    optimizer.step();
  });
  group.barrier();
  return ms;
}

// The same with what tune has for it.
double train_by_steps(const Rendezvous& place, int steps) {
  ProcessGroup group(place);
  nn::Sequential net = small_net();
  const auto optimizer =
      std::make_shared<FusedSgd>(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  TrainingStep step(net, optimizer, group, {.criterion = nn::CrossEntropyLoss()});
  const Batch batch{torch::randn({kBatch, 64}), torch::randint(10, {kBatch}, torch::kLong)};
  const double ms = milliseconds_a_step(steps, [&] { step.run(batch); });
  group.barrier();
  return ms;
}

void measure(const Setting& setting) {
  const int steps = setting.tiny ? 5 : 500;
  const int starts = setting.tiny ? 1 : 20;
  const auto step = [&] {
    return in_two_ranks([&](const auto& place) { return train(place, steps); });
  };
  const auto whole_step = [&] {
    return in_two_ranks([&](const auto& place) { return train_by_steps(place, steps); });
  };
  const auto python = [&] { return python_milliseconds("ddp_step.py", std::to_string(steps)); };
  const double start_ms = medians(setting.runs * starts, {first_all_reduce}).front();
  const BesidePython times = beside_python(setting.runs, step, python);
  const BesidePython whole = beside_python(setting.runs, whole_step, python);
  std::printf("fork to the first all_reduce  %7.2f ms\n", start_ms);
  std::printf("a step of 64-256-256-10, 64   %7.3f ms   %s\n", times.ours,
              summary(times, "Python's DDP").c_str());
  std::printf("by TrainingStep and FusedSgd  %7.3f ms   %s\n", whole.ours,
              summary(whole, "Python's DDP").c_str());
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 7);
  be_like_a_zygote();
  return guarded([&] { measure(setting); });
}
