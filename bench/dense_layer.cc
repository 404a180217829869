// The products of a dense layer, which are nearly all of the time of a surrogate's training curve.
#include <vector>

#include <Eigen/Core>

#include <fmt/format.h>

#include "bench/harness.h"
#include "tune/simulate/dense_kernel.h"

namespace tune::bench {
namespace {

constexpr const char* kHelp =
    "CPU time of a dense layer for 32 rows, by its width: a curve of 51 steps takes two of each\n"
    "layer. Bare limit: Eigen's product for the instruction set that everything is built for;\n"
    "ours chooses the machine's, but fuses no products, and keeps the order of the sums.\n\n"
    "bench_dense_layer [--tiny] [--runs N]";

struct Layer {
  explicit Layer(std::size_t its_width) : width(its_width) {}

  std::size_t width;
  std::vector<float> weights = std::vector<float>(width * width, 0.5f);
  std::vector<float> bias = std::vector<float>(width, 0.25f);
  std::vector<float> source = std::vector<float>(width * kLanes, 0.125f);
  std::vector<float> target = std::vector<float>(width * kLanes);
};

double by_kernel(Layer& layer, int calls) {
  const double start = cpu_time();
  for (int i = 0; i < calls; ++i) {
    dense_layer(layer.weights.data(), layer.bias.data(), layer.source.data(), layer.target.data(),
                layer.width, layer.width);
  }
  return (cpu_time() - start) / calls;
}

double by_eigen(Layer& layer, int calls) {
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto width = static_cast<Eigen::Index>(layer.width);
  const Eigen::Map<const Rows> weights(layer.weights.data(), width, width);
  const Eigen::Map<const Eigen::VectorXf> bias(layer.bias.data(), width);
  const Eigen::Map<const Rows> source(layer.source.data(), width, kLanes);
  Eigen::Map<Rows> target(layer.target.data(), width, kLanes);
  const double start = cpu_time();
  for (int i = 0; i < calls; ++i) {
    target.noalias() = weights * source;
    target.colwise() += bias;
  }
  return (cpu_time() - start) / calls;
}

void measure(const Setting& setting) {
  Table table("a dense layer of a surrogate, CPU time");
  for (const std::size_t width : {64u, 256u, 512u}) {
    Layer layer(width);
    const int calls = setting.tiny ? 1 : static_cast<int>((1u << 26) / (width * width));
    const std::vector<double> seconds =
        medians(setting.runs,
                {[&] { return by_kernel(layer, calls); }, [&] { return by_eigen(layer, calls); }});
    table.seconds(fmt::format("{} inputs and outputs", width), seconds[0], "by Eigen", seconds[1]);
    const double products = static_cast<double>(width * width * kLanes);
    table.note(fmt::format("{:.1f} billion products a second", products / seconds[0] / 1e9));
  }
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  const Setting setting = parse_setting(argc, argv, kHelp, 5);
  return guarded([&] { measure(setting); });
}
