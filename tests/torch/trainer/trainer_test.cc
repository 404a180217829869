// TorchTrainer and operators as trials, with real processes. This process itself computes nothing:
// workers are forked from it.
#include <tune/tune.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;
using testing::refusal;

constexpr std::int64_t kSamples = 96;
constexpr std::int64_t kFeatures = 6;
constexpr std::int64_t kClasses = 3;

// Points of three classes, the same every time; made in the worker.
std::shared_ptr<TensorDataset> points(std::int64_t count, std::uint64_t seed) {
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(seed);
  const torch::Tensor target = torch::arange(count).remainder(kClasses);
  const torch::Tensor data = torch::randn({count, kFeatures}, generator) +
                             torch::one_hot(target, kFeatures).to(torch::kFloat) * 3;
  return std::make_shared<TensorDataset>(data, target);
}

nn::Sequential network() {
  return nn::Sequential(nn::Linear(kFeatures, 8), nn::Tanh(), nn::Linear(8, kClasses));
}

std::shared_ptr<torch::optim::SGD> sgd(const nn::Module& module, double rate) {
  return std::make_shared<torch::optim::SGD>(module.parameters(),
                                             torch::optim::SGDOptions(rate).momentum(0.9));
}

// An operator as most users write it.
class Classifier : public TrainingOperator {
 public:
  void setup(const Config& config) override {
    nn::Sequential net = network();
    auto optimizer = sgd(*net, config.get_or("lr", 0.05));
    const auto step = config.get_or("scheduler_step", "epoch");
    register_training({.models = {net},
                       .optimizers = {optimizer},
                       .schedulers = {multi_step({2}, 0.1)},
                       .criterion = nn::CrossEntropyLoss(),
                       .scheduler_step = step == "batch"    ? SchedulerStep::kBatch
                                         : step == "manual" ? SchedulerStep::kManual
                                                            : SchedulerStep::kEpoch});
    register_data({.train = points(kSamples, 1),
                   .validation = points(31, 2),
                   .batch_size = config.get_or("batch_size", std::int64_t{16})});
    rate_ = optimizer;
  }
  Result train_epoch(DataLoader& batches) override {
    Result result = TrainingOperator::train_epoch(batches);
    result.set("lr", rate_->param_groups()[0].options().get_lr());
    return result;
  }

 private:
  std::shared_ptr<torch::optim::Optimizer> rate_;
};

// The weights of a checkpoint, read without computing.
std::vector<float> weights(const fs::path& directory) {
  nn::Sequential net = network();
  load_model(directory, *net);
  std::vector<float> all;
  for (const torch::Tensor& parameter : net->parameters()) {
    const float* values = parameter.data_ptr<float>();
    all.insert(all.end(), values, values + parameter.numel());
  }
  return all;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

TEST_CASE("two workers learn what one does from the whole batches") {
  const testing::TemporaryFolder folder;
  std::vector<Result> trained[2], validated[2];
  for (int workers : {1, 2}) {
    TorchTrainer<Classifier> trainer(
        {.num_workers = workers, .config = {{"batch_size", 16 / workers}}, .seed = 5});
    const auto at = static_cast<std::size_t>(workers - 1);
    for (int epoch = 0; epoch < 3; ++epoch) {
      trained[at].push_back(trainer.train());
      validated[at].push_back(trainer.validate());
    }
    trainer.save(folder.path() / std::to_string(workers));
    trainer.shutdown();
  }
  CHECK(largest_difference(weights(folder.path() / "1"), weights(folder.path() / "2")) < 1e-6);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    const Result& one = trained[0][epoch];
    const Result& two = trained[1][epoch];
    CHECK(one.get<std::int64_t>("num_samples") == kSamples);
    CHECK(two.get<std::int64_t>("num_samples") == kSamples);
    CHECK(one.get<std::int64_t>("batch_count") == 6);
    CHECK(two.get<std::int64_t>("batch_count") == 6);
    CHECK(one.get<std::int64_t>("epoch") == static_cast<std::int64_t>(epoch) + 1);
    CHECK(one.get<double>("train_loss") ==
          doctest::Approx(two.get<double>("train_loss")).epsilon(1e-5));
    // 31 samples on two ranks: each counts once.
    CHECK(validated[1][epoch].get<std::int64_t>("num_samples") == 31);
    CHECK(validated[0][epoch].get<double>("val_loss") ==
          doctest::Approx(validated[1][epoch].get<double>("val_loss")).epsilon(1e-5));
    CHECK(validated[0][epoch].get<double>("val_accuracy") ==
          doctest::Approx(validated[1][epoch].get<double>("val_accuracy")));
  }
  CHECK(trained[0][2].get<double>("train_loss") < 0.7 * trained[0][0].get<double>("train_loss"));
  CHECK(validated[0][2].get<double>("val_accuracy") > 0.7);
}

TEST_CASE("a trainer that loads a checkpoint goes on as if it had never stopped") {
  const testing::TemporaryFolder folder;
  const TrainerOptions options{.num_workers = 2, .seed = 3};
  std::string undisturbed;
  {
    TorchTrainer<Classifier> trainer(options);
    trainer.train();
    trainer.save(folder.path() / "model");
    undisturbed = trainer.train().dump();
    trainer.save(folder.path() / "end");
  }
  TorchTrainer<Classifier> trainer(options);
  trainer.load(folder.path() / "model");
  CHECK(trainer.train().dump() == undisturbed);
  trainer.save(folder.path() / "model");  // in the place of the old one
  CHECK(weights(folder.path() / "model") == weights(folder.path() / "end"));
  CHECK_FALSE(fs::exists(folder.path() / "model.tmp"));
}

TEST_CASE("learning rates move on by epoch, by batch, or when the operator says so") {
  const auto rate_after = [](const std::string& when, int epochs) {
    TorchTrainer<Classifier> trainer({.config = {{"scheduler_step", when}}});
    double rate = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) rate = trainer.train().get<double>("lr");
    return rate;
  };
  CHECK(rate_after("epoch", 2) == doctest::Approx(0.05));  // of the epoch just trained
  CHECK(rate_after("epoch", 3) == doctest::Approx(0.005));
  CHECK(rate_after("batch", 1) == doctest::Approx(0.005));
  CHECK(rate_after("manual", 3) == doctest::Approx(0.05));
}

// Two models and two optimizers, as for a GAN.
class Adversaries : public TrainingOperator {
 public:
  void setup(const Config& config) override {
    maker_ = nn::Sequential(nn::Linear(2, kFeatures));
    judge_ = nn::Sequential(nn::Linear(kFeatures, 1));
    register_training(
        {.models = {maker_, judge_}, .optimizers = {sgd(*maker_, 0.01), sgd(*judge_, 0.01)}});
    register_data({.train = points(kSamples, 1), .batch_size = 8});
    own_ = config.get_or("own_train_batch", true);
    counts_ = config.get_or("num_samples", true);
  }
  Result train_batch(const Batch& batch, const BatchInfo& info) override {
    if (!own_) return TrainingOperator::train_batch(batch, info);
    const torch::Tensor made = model(0).forward(torch::randn({batch.size(), 2}));
    const torch::Tensor judged =
        model(1)
            .call([&] {
              return std::pair(judge_->forward(batch.data), judge_->forward(made.detach()));
            })
            .first;
    const torch::Tensor loss = judged.square().mean();
    step(loss, 1);
    const torch::Tensor maker_loss =
        judge_->forward(model(0).forward(torch::randn({4, 2}))).square().mean();
    step(maker_loss, 0);
    if (!counts_) return {{"judge_loss", loss.item<double>()}};
    return {{"judge_loss", loss.item<double>()}, {"num_samples", batch.size()}};
  }

 private:
  nn::Sequential maker_, judge_;
  bool own_ = true, counts_ = true;
};

TEST_CASE("several models are trained by the operator's own train_batch and saved each by itself") {
  const testing::TemporaryFolder folder;
  TorchTrainer<Adversaries> trainer({.num_workers = 2});
  const Result result = trainer.train();
  CHECK(result.contains("judge_loss"));
  CHECK(result.get<std::int64_t>("num_samples") == kSamples);
  trainer.save(folder.path() / "gan");
  for (const char* part :
       {"0/model.safetensors", "0/optimizer.pt", "1/model.safetensors", "1/optimizer.pt"}) {
    CHECK(fs::exists(folder.path() / "gan" / part));
  }
  trainer.load(folder.path() / "gan");
  CHECK_HAS(refusal([&] { trainer.validate(); }), "give .validation to register_data");
}

TEST_CASE("what an operator must say is asked for with the words to write") {
  const auto trained = [](Config config) {
    return refusal([&] { TorchTrainer<Adversaries>({.config = std::move(config)}).train(); });
  };
  CHECK_HAS(trained({{"own_train_batch", false}}),
            "there are 2 models: override train_batch, or train_epoch");
  const std::string uncounted = trained({{"num_samples", false}});
  CHECK_HAS(uncounted, "train_batch returned no num_samples");
  CHECK_HAS(uncounted, "{\"num_samples\", batch.size()}");
}

// Fails in the way and on the rank that its configuration says.
class Failing : public Classifier {
 public:
  void setup(const Config& config) override {
    Classifier::setup(config);
    how_ = config.get<std::string>("how");
    where_ = config.get<int>("rank");
    if (how_ == "setup" && rank() == where_) throw std::runtime_error("no such data");
  }
  Result train_batch(const Batch& batch, const BatchInfo& info) override {
    if (rank() == where_ && info.batch == 1) {
      if (how_ == "throw") throw std::runtime_error("bad batch");
      if (how_ == "kill") std::raise(SIGKILL);
      if (how_ == "exit") std::_Exit(7);
      if (how_ == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    }
    return Classifier::train_batch(batch, info);
  }

 private:
  std::string how_;
  int where_ = 0;
};

TEST_CASE("a worker that fails ends the trainer with its rank and the cause") {
  struct Case {
    const char* how;
    const char* says;
  };
  for (int rank : {0, 1}) {
    for (const Case& c :
         {Case{"setup", ": no such data"}, Case{"throw", ": bad batch"},
          Case{"kill", "killed by signal 9 (SIGKILL)"}, Case{"exit", "exited with code 7"}}) {
      CAPTURE(c.how);
      CAPTURE(rank);
      const std::string said = refusal(
          [&] {
            TorchTrainer<Failing> trainer({.num_workers = 2,
                                           .config = {{"how", c.how}, {"rank", rank}},
                                           .group_timeout_s = 20});
            trainer.train();
          },
          ErrorCode::kProcess);
      CHECK_HAS(said, "rank " + std::to_string(rank));
      CHECK_HAS(said, c.says);
    }
  }
}

TEST_CASE("a worker that hangs is waited for until the group's timeout") {
  const std::string said = refusal(
      [&] {
        TorchTrainer<Failing> trainer(
            {.num_workers = 2, .config = {{"how", "hang"}, {"rank", 1}}, .group_timeout_s = 1});
        trainer.train();
      },
      ErrorCode::kProcess);
  CHECK_HAS(said, "rank 0: ");
  CHECK_HAS(said, "rank 1 waits for nothing");
  const std::string mark = "failed after ";
  REQUIRE(testing::has(said, mark));
  const double waited = std::stod(said.substr(said.find(mark) + mark.size()));
  CHECK(waited >= 0.9);
  CHECK(waited < 20);  // of the 60 s that are the default
}

// Leaves a mark where it is set up.
class Marking : public Classifier {
 public:
  void setup(const Config& config) override {
    std::ofstream(config.get<std::string>("mark")) << rank();
    Classifier::setup(config);
  }
};

TEST_CASE("a trainer that cannot be is refused before a worker begins") {
  const testing::TemporaryFolder folder;
  const fs::path mark = folder.path() / "mark";
  const auto made = [&](TrainerOptions options) {
    options.config = {{"mark", mark.string()}};
    TorchTrainer<Marking> trainer(options);
  };
  CHECK_HAS(refusal([&] { made({.num_workers = 0}); }), "num_workers is 0");
  const int gpus = gpu_count();
  CHECK_HAS(refusal([&] { made({.num_workers = gpus + 1, .use_gpu = true}); }),
            "needs " + std::to_string(gpus + 1) + " GPUs, this node has " + std::to_string(gpus));
  {
    std::promise<void> over;
    std::thread other([&] { over.get_future().wait(); });
    CHECK_HAS(refusal([&] { made({}); }, ErrorCode::kProcess), "threads");
    over.set_value();
    other.join();
  }
  CHECK(!fs::exists(mark));
  made({});
  CHECK(fs::exists(mark));  // as it does where none is refused
  TorchTrainer<Classifier> trainer;
  CHECK_HAS(refusal([&] { trainer.load("/nowhere"); }), "is not a checkpoint of a TorchTrainer");
  trainer.train();  // still there
  trainer.shutdown();
  CHECK_HAS(refusal([&] { trainer.train(); }), "after shutdown()");
}

TEST_CASE("an operator is a trial whose resources follow from its workers") {
  const testing::TemporaryFolder folder;
  const RunOptions options = {.name = "s",
                              .config = {{"lr", grid_search({0.05, 0.001})}},
                              .metric = "val_accuracy",
                              .stop = {{"training_iteration", 2}},
                              .storage = folder.path(),
                              .quiet = true,
                              .cpus = 2};
  const auto trainable =
      TorchTrainer<Classifier>::as_trainable({.num_workers = 2, .config = {{"batch_size", 8}}});
  const Analysis analysis = run(trainable, options);
  CHECK(analysis.best_config().get<double>("lr") == 0.05);
  const Result best = analysis.best_result();
  for (const char* key : {"train_loss", "val_loss", "val_accuracy"}) {
    CHECK(best.at(key).is_number());
  }
  CHECK(best.get<std::int64_t>("num_samples") == kSamples);
  CHECK(best.get<std::int64_t>("val_num_samples") == 31);
  CHECK(best.get<std::int64_t>("epoch") == 2);
  CHECK(best.get<std::int64_t>("batch_count") == 6);  // 48 samples of each rank, 8 a batch
  const fs::path checkpoint = analysis.best_checkpoint().path;
  CHECK(fs::exists(checkpoint / "rank_1" / "random.pt"));

  TorchTrainer<Classifier> trainer({.num_workers = 2, .config = {{"batch_size", 8}}});
  trainer.load(checkpoint);
  CHECK(trainer.validate().get<double>("val_accuracy") == best.get<double>("val_accuracy"));

  RunOptions twice = options;
  twice.resources_per_trial = {.cpu = 4};
  CHECK_HAS(refusal([&] { run(trainable, twice); }),
            "leave it out, and set num_workers, num_cpus_per_worker and use_gpu");
}

class SlowToSave : public Classifier {
 public:
  void save(const fs::path& directory) override {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    Classifier::save(directory);
  }
};

TEST_CASE("an operator's save may last longer than the ranks of its trial wait for each other") {
  const testing::TemporaryFolder folder;
  RunOptions options = {.name = "s",
                        .metric = "val_accuracy",
                        .stop = {{"training_iteration", 3}},
                        .storage = folder.path(),
                        .quiet = true,
                        .cpus = 2};
  options.checkpoint.frequency = 1;
  options.group_timeout_s = 1;
  const Analysis analysis =
      run(TorchTrainer<SlowToSave>::as_trainable({.num_workers = 2}), options);
  REQUIRE(analysis.trials().size() == 1);
  CHECK(analysis.trials()[0].status == TrialStatus::kTerminated);
  CHECK(analysis.best_result().get<int>("iterations_since_restore") == 3);  // in one attempt
}

}  // namespace
}  // namespace tune
