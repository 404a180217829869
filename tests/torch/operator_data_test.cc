#include <array>
#include <filesystem>
#include <memory>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/training_run.h"

namespace tune {
namespace {

// Trains on bytes; keeps what its batches were.
class ImageOperator : public TrainingOperator {
 public:
  ImageOperator(bool channels_last, std::vector<at::Tensor>& seen)
      : channels_last_(channels_last), seen_(seen) {}
  void setup(const Config&) override {
    torch::nn::Sequential net(torch::nn::Conv2d(3, 4, 3), torch::nn::AdaptiveAvgPool2d(1),
                              torch::nn::Flatten(), torch::nn::Linear(4, 2));
    weight_ = net[0]->as<torch::nn::Conv2d>()->weight;
    register_training({.models = {net},
                       .optimizers = {std::make_shared<torch::optim::SGD>(net->parameters(), 0.1)},
                       .criterion = torch::nn::CrossEntropyLoss(),
                       .channels_last = channels_last_});
    register_data(
        {.train = std::make_shared<TensorDataset>(torch::full({4, 3, 5, 5}, 255, torch::kUInt8),
                                                  torch::zeros({4}, torch::kLong)),
         .batch_size = 4,
         .prepare = transforms::normalize_batch({0.5}, {0.5})});
  }
  Result train_batch(const Batch& batch, const BatchInfo& info) override {
    seen_ = {batch.data, weight_};
    return TrainingOperator::train_batch(batch, info);
  }

 private:
  bool channels_last_;
  std::vector<at::Tensor>& seen_;
  at::Tensor weight_;
};

TEST_CASE("batches are prepared on the device, and lie as the parts ask for") {
  for (const bool channels_last : {false, true}) {
    std::vector<at::Tensor> seen;
    TrainingRun run(std::make_unique<ImageOperator>(channels_last, seen), {}, {}, {});
    CHECK(run.train().get<double>("train_loss") > 0);
    REQUIRE(seen.size() == 2);
    CHECK(seen[0].equal(torch::ones({4, 3, 5, 5})));  // 255 / 255 is a deviation above the mean
    for (const at::Tensor& tensor : seen) {
      CHECK(tensor.is_contiguous(at::MemoryFormat::ChannelsLast) == channels_last);
    }
  }
}

// Of 4 batches an epoch.
class TracedOperator : public TrainingOperator {
 public:
  explicit TracedOperator(std::array<std::int64_t, 2> batches) : batches_(batches) {}
  void setup(const Config&) override {
    torch::nn::Sequential net(torch::nn::Linear(3, 2));
    register_training({.models = {net},
                       .optimizers = {std::make_shared<torch::optim::SGD>(net->parameters(), 0.1)},
                       .criterion = torch::nn::CrossEntropyLoss(),
                       .profile = {.batches = batches_}});
    register_data({.train = std::make_shared<TensorDataset>(torch::randn({8, 3}),
                                                            torch::zeros({8}, torch::kLong)),
                   .batch_size = 2});
  }

 private:
  std::array<std::int64_t, 2> batches_;
};

// The batches in the trace.
std::int64_t traced_batches(const std::filesystem::path& folder) {
  std::int64_t count = 0;
  const Value trace = load_state(folder / "trace_rank_0.json");
  for (const Value& event : trace.at("traceEvents").list()) {
    const Value* name = event.find("name");
    if (name != nullptr && name->is_string() && name->string() == "aten::cross_entropy_loss")
      ++count;
  }
  return count;
}

TEST_CASE("the batches that are asked for are in the trace, across epochs, or those there were") {
  const testing::TemporaryFolder folder;
  {
    TrainingRun run(std::make_unique<TracedOperator>(std::array<std::int64_t, 2>{2, 5}), {}, {},
                    {.directory = folder.path()});
    run.train();
    CHECK_FALSE(std::filesystem::exists(folder.path() / "trace_rank_0.json"));
    run.train();
    CHECK(traced_batches(folder.path()) == 3);
  }
  {
    TrainingRun run(std::make_unique<TracedOperator>(std::array<std::int64_t, 2>{3, 100}), {}, {},
                    {.directory = folder.path()});
    run.train();
  }
  CHECK(traced_batches(folder.path()) == 1);
}

TEST_CASE("a profile wants a range of batches") {
  for (const auto& batches : {std::array<std::int64_t, 2>{5, 5}, {-1, 3}, {7, 2}}) {
    CHECK_HAS(testing::refusal(
                  [&] { TrainingRun(std::make_unique<TracedOperator>(batches), {}, {}, {}); }),
              "the first, from 0 on, and the one after the last are wanted");
  }
}

}  // namespace
}  // namespace tune
