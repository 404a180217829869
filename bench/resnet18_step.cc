// The cost of training a ResNet-18 beside Python with the same LibTorch (bench/resnet18_step.py):
// two ranks on CPUs by Gloo, forward and backward; and, with a GPU, one rank's whole step on it, in
// floats and in mixed precision.
#include "examples/resnet.h"

#include <ATen/Parallel.h>
#include <tune/torch.h>

#include <cstdio>
#include <string>

#include "bench/beside_python.h"
#include "bench/harness.h"
#include "core/platform/node.h"
#include "tune/distributor.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times a ResNet-18: two ranks on CPUs, of one thread each; one rank on a GPU. Beside it, "
    "taking\n"
    "turns, the same in Python, if TUNE_BENCH_PYTHON names a Python that has torch.\n\n"
    "bench_resnet18_step [--tiny] [--runs N]";

constexpr std::int64_t kClasses = 1000;

// Batch and side of the images: as bench/resnet18_step.py has them.
constexpr std::int64_t kCpuBatch = 8;
constexpr std::int64_t kCpuSide = 64;
constexpr std::int64_t kGpuBatch = 128;
constexpr std::int64_t kGpuSide = 224;

double cpu_step(int steps) {
  return Distributor{.num_processes = 2, .use_gpu = false}.run([steps] {
    at::set_num_threads(1);
    torch::manual_seed(1);
    ProcessGroup group(Rendezvous::from_environment());
    ResNet18 net(ResNetOptions{.classes = kClasses});
    DistributedDataParallel model(net, group);
    const torch::Tensor x = torch::randn({kCpuBatch, 3, kCpuSide, kCpuSide});
    const torch::Tensor y = torch::randint(kClasses, {kCpuBatch}, torch::kLong);
    const double ms = milliseconds_a_step(steps, [&] {
      model.zero_grad();
      model.backward(torch::cross_entropy_loss(model.forward(x), y));
    });
    group.barrier();
    return ms;
  });
}

double gpu_step(int steps, bool mixed) {
  return Distributor{.num_processes = 1, .use_gpu = true}.run([steps, mixed] {
    const torch::Device device = own_device();
    torch::manual_seed(1);
    ResNet18 net(ResNetOptions{.classes = kClasses});
    net->to(device);
    ProcessGroup group(Rendezvous::from_environment(), {.device = device});
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    MixedPrecision precision(
        {net.get()}, {&optimizer},
        {.level = mixed ? PrecisionLevel::kO1 : PrecisionLevel::kO0, .dtype = torch::kHalf});
    DistributedDataParallel model(net, group);
    const torch::Tensor x = torch::randn({kGpuBatch, 3, kGpuSide, kGpuSide}, device);
    const torch::Tensor y =
        torch::randint(kClasses, {kGpuBatch}, torch::device(device).dtype(torch::kLong));
    // Ten at a time: the GPU has work while the next is prepared, as in a training.
    return milliseconds_a_step(steps,
                               [&] {
                                 for (int i = 0; i < 10; ++i) {
                                   model.zero_grad();
                                   torch::Tensor loss;
                                   {
                                     const Autocast autocast = precision.autocast(device.type());
                                     loss = torch::cross_entropy_loss(model.forward(x), y);
                                   }
                                   precision.backward(loss);
                                   precision.step();
                                 }
                                 torch::cuda::synchronize();
                               }) /
           10;
  });
}

void measure(const Setting& setting) {
  const int steps = setting.tiny ? 1 : 20;
  const auto python = [&](const std::string& kind) {
    return [&setting, steps, kind] {
      return python_milliseconds("resnet18_step.py", kind + " " + std::to_string(steps));
    };
  };
  const BesidePython cpu = beside_python(
      setting.runs, [&] { return cpu_step(steps); }, python("cpu"));
  std::printf("two ranks, 8 of 64 x 64  %8.1f ms forward and backward   %s\n", cpu.ours,
              summary(cpu, "Python's DDP").c_str());
  if (gpu_count() == 0) {
    std::printf("one rank on a GPU: skipped: no GPU\n");
    return;
  }
  for (const bool mixed : {false, true}) {
    const BesidePython gpu = beside_python(
        setting.runs, [&] { return gpu_step(steps, mixed); }, python(mixed ? "autocast" : "gpu"));
    std::printf("a GPU, 128 of 224 x 224, %s  %8.0f images/s   %s\n",
                mixed ? "autocast" : "fp32    ", 1e3 * kGpuBatch / gpu.ours,
                summary(gpu, "Python's step").c_str());
  }
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
