// The cost of Adam's step of a ResNet-18's 11.7 million parameters on the CPU, fused and as
// LibTorch's own does it, beside Python's with fused=True and by default (bench/optimizer_step.py).
#include "examples/resnet.h"

#include <ATen/Parallel.h>
#include <tune/torch.h>

#include <cstdio>
#include <string>

#include "bench/beside_python.h"
#include "bench/harness.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "Times Adam's step of a ResNet-18's parameters on one thread. Beside it, taking turns, the\n"
    "same in Python, if TUNE_BENCH_PYTHON names a Python that has torch.\n\n"
    "bench_optimizer_step [--tiny] [--runs N]";

template <class Optimizer>
double adam_step(int steps) {
  at::set_num_threads(1);
  torch::manual_seed(1);
  ResNet18 net(ResNetOptions{.classes = 1000});
  for (const torch::Tensor& parameter : net->parameters()) {
    parameter.mutable_grad() = torch::randn_like(parameter);
  }
  Optimizer optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  return milliseconds_a_step(steps, [&] { optimizer.step(); });
}

void measure(const Setting& setting) {
  const int steps = setting.tiny ? 1 : 30;
  const auto python = [&](const std::string& kind) {
    return [steps, kind] {
      return python_milliseconds("optimizer_step.py", kind + " " + std::to_string(steps));
    };
  };
  const auto fused = [&] { return adam_step<FusedAdam>(steps); };
  const BesidePython beside_fused = beside_python(setting.runs, fused, python("fused"));
  std::printf("fused            %8.2f ms   %s\n", beside_fused.ours,
              summary(beside_fused, "Python's fused=True").c_str());
  const BesidePython beside_default = beside_python(setting.runs, fused, python("default"));
  std::printf("fused            %8.2f ms   %s\n", beside_default.ours,
              summary(beside_default, "Python's default").c_str());
  std::printf("LibTorch's Adam  %8.2f ms\n", adam_step<torch::optim::Adam>(steps));
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
