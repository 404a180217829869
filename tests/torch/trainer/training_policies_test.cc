// The policies of a training's step, and reports within an epoch, with real workers. This process
// itself computes nothing: workers are forked from it.
#include <tune/tune.h>

#include <cmath>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace nn = torch::nn;
namespace fs = std::filesystem;

constexpr std::int64_t kPolicySamples = 100;

// A classifier whose policies come from the configuration.
class Policies : public TrainingOperator {
 public:
  void setup(const Config& config) override {
    nn::Sequential net(nn::Linear(4, 8), nn::Dropout(config.get_or("dropout", 0.0)), nn::Tanh(),
                       nn::Linear(8, 2));
    optimizer_ = std::make_shared<torch::optim::SGD>(
        net->parameters(), torch::optim::SGDOptions(config.get_or("lr", 0.1)).momentum(0.9));
    TrainingParts parts = {.models = {net},
                           .optimizers = {optimizer_},
                           .schedulers = {multi_step({1}, 0.5)},
                           .criterion = nn::CrossEntropyLoss(),
                           .accumulate = config.get_or("accumulate", std::int64_t{1})};
    if (config.contains("clip")) parts.clip.norm = config.get<double>("clip");
    if (config.contains("ema_decay")) parts.ema_decay = config.get<double>("ema_decay");
    if (config.contains("precision")) {
      parts.precision = precision_named(config.get<std::string>("precision"));
    }
    register_training(parts);
    const torch::Tensor target = torch::arange(kPolicySamples).remainder(2);
    const torch::Tensor data = torch::randn({kPolicySamples, 4}) + target.unsqueeze(1);
    const auto samples = std::make_shared<TensorDataset>(data, target);
    register_data({.train = samples,
                   .validation = samples,
                   .batch_size = config.get_or("batch_size", std::int64_t{8}),
                   .report_every = config.get_or("report_every", std::int64_t{0})});
  }
  Result train_epoch(DataLoader& batches) override {
    Result result = TrainingOperator::train_epoch(batches);
    result.set("lr", optimizer_->param_groups()[0].options().get_lr());
    return result;
  }

 private:
  std::shared_ptr<torch::optim::Optimizer> optimizer_;
};

// The weights of a checkpoint, read without computing.
std::vector<float> saved_weights(const fs::path& file) {
  std::vector<float> all;
  for (const auto& [name, tensor] : read_safetensors(file)) {
    const float* values = tensor.const_data_ptr<float>();
    all.insert(all.end(), values, values + tensor.numel());
  }
  return all;
}

TEST_CASE("two workers that gather gradients learn what one does from large batches") {
  const testing::TemporaryFolder folder;
  const auto train = [&](int workers, const Config& config, const char* name) {
    TorchTrainer<Policies> trainer({.num_workers = workers, .config = config, .seed = 5});
    trainer.train();
    trainer.train();
    trainer.save(folder.path() / name);
    return saved_weights(folder.path() / name / "model.safetensors");
  };
  // Of each rank's 50 samples batches of 4, and one of 2: 24 samples a step, and 4.
  const std::vector<float> many =
      train(2, {{"batch_size", 4}, {"accumulate", 3}, {"clip", 0.5}}, "many");
  const std::vector<float> one = train(1, {{"batch_size", 24}, {"clip", 0.5}}, "one");
  REQUIRE(many.size() == one.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(static_cast<double>(many[i]) == doctest::Approx(one[i]).epsilon(1e-4));
  }
}

TEST_CASE("a training reports within its epochs and is resumed there") {
  const testing::TemporaryFolder folder;
  const TrainerOptions options{
      .num_workers = 2,
      .config = {{"report_every", 4}, {"dropout", 0.2}, {"ema_decay", 0.9}, {"clip", 1.0}},
      .seed = 3};
  std::vector<std::string> undisturbed;
  {
    TorchTrainer<Policies> trainer(options);
    const Result first = trainer.train();
    CHECK(first.get<std::int64_t>("batch_count") == 4);  // of 7: 50 samples, 8 a batch
    CHECK(first.get<std::int64_t>("epoch") == 1);
    CHECK(first.get<std::int64_t>("num_samples") == 64);
    CHECK(first.get<double>("gradient_norm") > 0);
    trainer.save(folder.path() / "within");
    CHECK(fs::exists(folder.path() / "within" / "average.safetensors"));
    for (int i = 0; i < 3; ++i) {
      undisturbed.push_back(trainer.train().dump());
      undisturbed.push_back(trainer.validate().dump());
    }
  }
  TorchTrainer<Policies> trainer(options);
  trainer.load(folder.path() / "within");
  for (std::size_t i = 0; i < undisturbed.size(); i += 2) {
    const Result result = trainer.train();
    CHECK(result.dump() == undisturbed[i]);
    CHECK(trainer.validate().dump() == undisturbed[i + 1]);
    CHECK(result.get<std::int64_t>("batch_count") == (i == 0 ? 3 : i == 2 ? 4 : 3));
    CHECK(result.get<std::int64_t>("epoch") == (i == 0 ? 1 : 2));
    CHECK(result.get<double>("lr") == (i == 0 ? 0.1 : 0.05));
  }
  trainer.shutdown();

  // 64 samples of the epoch are done, 36 are left to a worker alone: 5 batches.
  TorchTrainer<Policies> alone({.config = options.config, .seed = 3});
  alone.load(folder.path() / "within");
  CHECK(alone.train().get<std::int64_t>("batch_count") == 4);
  const Result rest = alone.train();
  CHECK(rest.get<std::int64_t>("batch_count") == 1);
  CHECK(rest.get<std::int64_t>("num_samples") == 4);
  CHECK(rest.get<std::int64_t>("epoch") == 1);
  CHECK(alone.train().get<std::int64_t>("epoch") == 2);
}

TEST_CASE("a trial is judged within its first epoch") {
  const testing::TemporaryFolder folder;
  const Analysis analysis =
      run(TorchTrainer<Policies>::as_trainable(
              {.config = {{"report_every", 3}, {"precision", "bf16"}}}),
          {.name = "early",
           .config = {{"lr", grid_search({0.05, 0.001})}},
           .metric = "val_accuracy",
           .scheduler = asha({.max_t = 4, .grace_period = 1, .reduction_factor = 2}),
           .storage = folder.path(),
           .quiet = true});
  const Result best = analysis.best_result();
  CHECK(best.get<std::int64_t>("epoch") == 1);  // 12 of 13 batches
  CHECK(best.get<std::int64_t>("batch_count") == 3);
  CHECK(best.contains("val_accuracy"));
}

TEST_CASE("a trainer with another rate goes on from a checkpoint with its own rate") {
  const testing::TemporaryFolder folder;
  {
    TorchTrainer<Policies> trainer({.config = {{"lr", 0.1}}});
    trainer.train();
    trainer.save(folder.path() / "model");
  }
  const auto rate_from = [&](double lr) {
    TorchTrainer<Policies> trainer({.config = {{"lr", lr}}});
    trainer.load(folder.path() / "model");
    return trainer.train().get<double>("lr");
  };
  CHECK(rate_from(0.1) == doctest::Approx(0.05));  // halved after the first epoch
  CHECK(rate_from(0.02) == doctest::Approx(0.01));
}

}  // namespace
}  // namespace tune
