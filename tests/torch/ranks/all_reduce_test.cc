// When gradients travel, and in how many pieces: a backend that writes down what is asked of it
// stands before the real one.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "ranks.h"
#include "torch/torch_doctest.h"
#include "trainables/torch/distributed_data_parallel.h"

namespace tune {
namespace {

using torch::Tensor;

class RecordingBackend : public c10d::Backend {
 public:
  RecordingBackend(c10::intrusive_ptr<Backend> real, std::ostream& log)
      : Backend(real->getRank(), real->getSize()), real_(std::move(real)), log_(log) {}

  const std::string getBackendName() const override { return "recording"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    log_ << '[' << tensors[0].scalar_type() << ' ' << tensors[0].numel() << ']';
    return real_->allreduce(tensors, options);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return real_->broadcast(tensors, options);
  }
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<Tensor>>& outputs,
                                           std::vector<Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override {
    return real_->allgather(outputs, inputs, options);
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override {
    return real_->barrier(options);
  }

 private:
  c10::intrusive_ptr<Backend> real_;
  std::ostream& log_;
};

constexpr int kLayers = 6;
constexpr int kNarrow = 64;  // layers of 4096 floats, 16 KiB
constexpr int kWide = 256;   // of 65536 floats, 256 KiB

struct Layers {
  int width = kNarrow;
  DdpOptions options = {};
  int gathering_steps = 0;  // the first ones reduce nothing
};

// A line for each of three steps: a "g" for each gradient as it comes, and what is reduced.
std::string log_of(const Layers& layers) {
  const auto ends = testing::run_group(2, [&](ProcessGroup& group) {
    torch::nn::Sequential net;
    for (int i = 0; i < kLayers; ++i) {
      net->push_back(
          torch::nn::Linear(torch::nn::LinearOptions(layers.width, layers.width).bias(false)));
    }
    std::ostringstream log;
    c10d::ProcessGroup& backends = *group.c10d();
    backends.setBackend(c10::kCPU, c10d::ProcessGroup::BackendType::UCC,
                        c10::make_intrusive<RecordingBackend>(backends.getBackend(c10::kCPU), log));
    DistributedDataParallel model(net, group, layers.options);
    for (const Tensor& parameter : net->parameters()) {
      parameter.register_hook([&log](const Tensor&) { log << 'g'; });
    }
    const auto train = [&] { model.backward(model.forward(torch::ones({2, layers.width})).sum()); };
    for (int step = 0; step < 3; ++step) {
      model.zero_grad();
      if (step < layers.gathering_steps) {
        const auto guard = model.no_sync();
        train();
      } else {
        train();
      }
      log << '\n';
    }
    const std::string text = log.str();
    return std::vector<double>(text.begin(), text.end());
  });
  const std::vector<double> values = testing::values_of(ends);
  CHECK(testing::are_equal(ends));
  std::string text;
  for (const double value : values) text += static_cast<char>(value);
  return text;
}

std::string lines(const std::string& first, const std::string& second, const std::string& third) {
  return first + '\n' + second + '\n' + third + '\n';
}

std::string each_time(const std::string& line) {
  return lines(line, line, line);
}

// Which gradient comes when is not known before the first step: all are in one bucket then.
std::string after_the_first(const std::string& first, const std::string& line) {
  return lines(first, line, line);
}

TEST_CASE("gradients travel in buckets that are closed when they reach their limit") {
  const std::string narrow = "gggggg[Float 24576]";
  const std::string wide = "gggggg[Float 393216]";
  // Two layers of 16 KiB reach 32 KiB, and 20 KiB as well.
  for (const double cap : {0.03125, 0.02}) {
    CHECK(log_of({.options = {.bucket_cap_mb = cap}}) ==
          after_the_first(narrow, "gg[Float 8192]gg[Float 8192]gg[Float 8192]"));
  }
  std::string one_by_one;
  for (int i = 0; i < kLayers; ++i) one_by_one += "g[Float 4096]";
  CHECK(log_of({.options = {.bucket_cap_mb = 1e-9}}) == after_the_first(narrow, one_by_one));
  // By default the first is closed at 1 MiB, which is four layers of 256 KiB, others at 25.
  CHECK(log_of({.width = kWide}) == after_the_first(wide, "gggg[Float 262144]gg[Float 131072]"));
  // A limit holds for the first as well, as in Python.
  CHECK(log_of({.width = kWide, .options = {.bucket_cap_mb = 25}}) == each_time(wide));
  CHECK(log_of({.width = kWide, .options = {.bucket_cap_mb = 1e30}}) == each_time(wide));
  CHECK(log_of({.width = kWide, .options = {.bucket_cap_mb = 1.25}}) ==
        after_the_first(wide, "ggggg[Float 327680]g[Float 65536]"));
}

TEST_CASE("a delayed all-reduce is one, when the last gradient is there") {
  for (const double cap : {1e-9, 25.0}) {
    CHECK(log_of({.options = {.bucket_cap_mb = cap, .delay_allreduce = true}}) ==
          each_time("gggggg[Float 24576]"));
  }
  CHECK(log_of({.options = {.bucket_cap_mb = 1e-9,
                            .find_unused_parameters = true,
                            .delay_allreduce = true}}) == each_time("gggggg[Float 24576][Int 6]"));
}

TEST_CASE("finding unused parameters reduces one more tensor: which rank used which") {
  // Buckets stay as they are: filled from the first parameter on, used from the last on.
  CHECK(log_of({.width = kWide, .options = {.find_unused_parameters = true}}) ==
        each_time("gg[Float 131072]gggg[Float 262144][Int 6]"));
  CHECK(log_of(
            {.width = kWide, .options = {.bucket_cap_mb = 1.25, .find_unused_parameters = true}}) ==
        each_time("g[Float 65536]ggggg[Float 327680][Int 6]"));
}

TEST_CASE("a static graph's used parameters are told once, after the first backward") {
  // Only the second one shows in which order gradients come.
  CHECK(log_of({.options = {.bucket_cap_mb = 0.03125, .static_graph = true}}) ==
        lines("gggggg[Int 6][Float 24576]", "gggggg[Float 24576]",
              "gg[Float 8192]gg[Float 8192]gg[Float 8192]"));
}

TEST_CASE("what is gathered without reducing costs no collective") {
  const std::string none = "gggggg";
  const std::string reduced = "gggggg[Float 24576]";
  CHECK(log_of({.gathering_steps = 2}) == lines(none, none, reduced));
  CHECK(log_of({.options = {.find_unused_parameters = true}, .gathering_steps = 2}) ==
        lines(none, none, reduced + "[Int 6]"));
}

TEST_CASE("compressed gradients travel in their short type") {
  CHECK(log_of({.options = {.compression = GradientCompression::kFloat16}}) ==
        each_time("gggggg[Half 24576]"));
  CHECK(
      log_of({.options = {.bucket_cap_mb = 0.04, .compression = GradientCompression::kBFloat16}}) ==
      after_the_first("gggggg[BFloat16 24576]", "ggg[BFloat16 12288]ggg[BFloat16 12288]"));
}

TEST_CASE("one rank alone reduces nothing") {
  const auto ends = testing::run_group(1, [](ProcessGroup& group) {
    DistributedDataParallel model(torch::nn::Linear(2, 1), group, {.find_unused_parameters = true});
    model.backward(model.forward(torch::ones({1, 2})).sum());
    return std::vector<double>{group.c10d() ? 1.0 : 0.0};
  });
  CHECK(testing::values_of(ends) == std::vector<double>{0});
}

}  // namespace
}  // namespace tune
