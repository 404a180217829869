// Refusals of operators and trainers, and a worker's own errors.
#include <tune/torch.h>
#include <tune/tune.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"
// After LibTorch.
#include "core/platform/process.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

std::shared_ptr<TensorDataset> samples(std::int64_t count) {
  return std::make_shared<TensorDataset>(torch::ones({count, 2}), torch::zeros({count, 1}));
}

struct TwoInputs : nn::Module {
  TwoInputs() { weight = register_parameter("weight", torch::ones({1})); }
  at::Tensor forward(const at::Tensor& a, const at::Tensor& b) { return (a + b) * weight; }
  at::Tensor weight;
};

struct Parts {
  nn::Linear net{2, 1};
  TrainingParts training = {.models = {net}, .optimizers = {sgd()}, .criterion = nn::MSELoss()};
  DataParts data = {.train = samples(8), .validation = samples(4), .batch_size = 4};
  bool registers_data = true;

  std::shared_ptr<torch::optim::Optimizer> sgd() {
    return std::make_shared<torch::optim::SGD>(net->parameters(), 0.1);
  }
};

const std::map<std::string, std::function<void(Parts&)>> kMistakes = {
    {"nothing", [](Parts&) {}},
    {"no models", [](Parts& p) { p.training.models.clear(); }},
    {"null model", [](Parts& p) { p.training.models = {std::shared_ptr<TwoInputs>()}; }},
    {"no optimizers", [](Parts& p) { p.training.optimizers.clear(); }},
    {"null optimizer", [](Parts& p) { p.training.optimizers.push_back(nullptr); }},
    {"two optimizers", [](Parts& p) { p.training.optimizers.push_back(p.sgd()); }},
    {"null scheduler", [](Parts& p) { p.training.schedulers = {LearningRate()}; }},
    {"scheduler", [](Parts& p) { p.training.schedulers = {constant_rate()}; }},
    {"two schedulers",
     [](Parts& p) {
       p.training.schedulers = {constant_rate(), constant_rate()};
     }},
    {"no criterion", [](Parts& p) { p.training.criterion = {}; }},
    {"two inputs",
     [](Parts& p) {
       const auto model = std::make_shared<TwoInputs>();
       p.training.models = {model};
       p.training.optimizers = {std::make_shared<torch::optim::SGD>(model->parameters(), 0.1)};
     }},
    {"two models",
     [](Parts& p) {
       p.training.models = {p.net, nn::Linear(2, 1)};
     }},
    {"level for nothing", [](Parts& p) { p.training.opt_level = "O2"; }},
    {"no such level", [](Parts& p) { p.training.opt_level = "O9"; }},
    {"no train", [](Parts& p) { p.data.train = nullptr; }},
    {"no data", [](Parts& p) { p.registers_data = false; }},
    {"one sample", [](Parts& p) { p.data.train = samples(1); }},
};

// Does what its configuration says wrong.
class Mistaken : public TrainingOperator {
 public:
  void setup(const Config& config) override {
    how_ = config.get<std::string>("how");
    Parts parts;
    if (const auto found = kMistakes.find(how_); found != kMistakes.end()) found->second(parts);
    register_training(parts.training);
    if (how_ == "registers training twice") register_training(parts.training);
    if (parts.registers_data) register_data(parts.data);
    if (how_ == "registers data twice") register_data(parts.data);
  }
  Result train_batch(const Batch& batch, const BatchInfo& info) override {
    if (how_ == "no gradient" && rank() == 1) step(torch::zeros({}));
    Result result = TrainingOperator::train_batch(batch, info);
    if (how_ == "samples as float") result.set("num_samples", 4.0);
    if (how_ == "no samples") result.erase("num_samples");
    return result;
  }

 private:
  std::string how_;
};

TEST_CASE("an operator's mistakes are refused with the words to write instead") {
  struct Row {
    const char* how;
    const char* says;
    int workers = 1;
  };
  const std::vector<Row> rows = {
      {"registers training twice", "register_training was called twice"},
      {"no models", ".models is empty, give at least one"},
      {"null model", "register_training: .models[0] is null"},
      {"no optimizers", ".optimizers is empty, give at least one"},
      {"null optimizer", "register_training: .optimizers[1] is null"},
      {"two optimizers", "there are 2 optimizers of one model: give one optimizer with several"},
      {"null scheduler", "register_training: .schedulers[0] is null"},
      {"two schedulers", "2 schedulers for 1 optimizers: one each at most"},
      {"no criterion", "no criterion is registered: give .criterion to register_training"},
      {"two inputs", "the model's forward does not take one tensor"},
      {"two models", "there are 2 models: override train_batch"},
      {"no such level", "opt_level is O9: O0, O1, O2 or O3 is wanted"},
      {"registers data twice", "register_data was called twice"},
      {"no train", "register_data: .train is missing"},
      {"no data", "setup registered no data: call register_data"},
      {"one sample", "the training set has 1 samples, less than one for each of 2 ranks", 2},
      {"samples as float", "train_batch returned 4.0 as num_samples, a whole number is wanted"},
      {"no samples", "train_batch returned no num_samples"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.how);
    const std::string said = testing::refusal([&] {
      TorchTrainer<Mistaken>({.num_workers = row.workers, .config = {{"how", row.how}}}).train();
    });
    CHECK_HAS(said, row.says);
    CHECK_HAS(said, "rank ");
  }
}

// All that is written to stderr, here and in workers, while `call` runs.
template <class Call>
std::string printed(Call&& call) {
  const testing::TemporaryFolder folder;
  const fs::path file = folder.path() / "stderr";
  const FileDescriptor before(dup(STDERR_FILENO));
  const FileDescriptor into(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  dup2(into.get(), STDERR_FILENO);
  call();
  dup2(before.get(), STDERR_FILENO);
  return testing::read_text(file);
}

TEST_CASE("a level of precision that nobody asked to use is warned about") {
  const auto made = [](bool use_fp16) {
    return printed([&] {
      TorchTrainer<Mistaken>(
          {.num_workers = 2, .use_fp16 = use_fp16, .config = {{"how", "level for nothing"}}})
          .shutdown();
    });
  };
  CHECK(made(false) ==
        "[rank 0] warning: opt_level O2 does nothing without use_fp16: this trains in floats\n");
  CHECK(made(true).empty());
}

TEST_CASE("several models are judged by the operator's own validate_batch") {
  TorchTrainer<Mistaken> trainer({.config = {{"how", "two models"}}});
  CHECK_HAS(testing::refusal([&] { trainer.validate(); }),
            "there are 2 models: override validate_batch, or validate");
}

TEST_CASE("options of a trainer that cannot hold are refused") {
  struct Row {
    TrainerOptions options;
    const char* says;
  };
  const std::vector<Row> rows = {
      {{.num_workers = 0}, "num_workers is 0, 1 to 4096 are wanted"},
      {{.num_workers = 4097}, "num_workers is 4097, 1 to 4096 are wanted"},
      {{.num_cpus_per_worker = 0}, "num_cpus_per_worker is 0.000000, more than 0 is wanted"},
      {{.group_timeout_s = 0}, "group_timeout_s is 0.000000, more than 0 is wanted"},
  };
  for (Row row : rows) {
    row.options.config = {{"how", "nothing"}};
    CHECK_HAS(testing::refusal([&] { TorchTrainer<Mistaken> trainer(row.options); }), row.says);
    CHECK_HAS(testing::refusal([&] { TorchTrainer<Mistaken>::as_trainable(row.options); }),
              row.says);
  }
  const std::string many = testing::refusal([] {
    TorchTrainer<Mistaken>(
        {.num_workers = 2, .num_cpus_per_worker = 1e6, .config = {{"how", "nothing"}}});
  });
  CHECK_HAS(many, "num_workers 2 with num_cpus_per_worker 1e+06 needs 2e+06 CPUs, this node has ");
  CHECK_HAS(many, ": lower one of them");
}

TEST_CASE(
    "more workers than GPUs are refused, and what to change depends on whether there are any") {
  // Loaded already, it is what stands for the driver's library of that name.
  const std::unique_ptr<void, int (*)(void*)> nvml(dlopen(TUNE_FAKE_NVML, RTLD_NOW), dlclose);
  REQUIRE(nvml);
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::optional<std::string> visible = before ? std::optional(before) : std::nullopt;
  unsetenv("CUDA_VISIBLE_DEVICES");
  const auto said = [](const char* gpus) {
    setenv("FAKE_GPUS", gpus, 1);
    return testing::refusal([] {
      TorchTrainer<Mistaken>({.num_workers = 3, .use_gpu = true, .config = {{"how", "nothing"}}});
    });
  };
  CHECK_HAS(said("2"),
            "use_gpu with num_workers 3 needs 3 GPUs, this node has 2: lower num_workers");
  CHECK_HAS(said("0"), "this node has 0: leave use_gpu out to train on CPUs");
  unsetenv("FAKE_GPUS");
  if (visible) setenv("CUDA_VISIBLE_DEVICES", visible->c_str(), 1);
}

TEST_CASE("a checkpoint of another number of schedules is refused") {
  const testing::TemporaryFolder folder;
  TorchTrainer<Mistaken>({.config = {{"how", "scheduler"}}}).save(folder.path() / "one");
  TorchTrainer<Mistaken> trainer({.config = {{"how", "nothing"}}});
  CHECK_HAS(testing::refusal([&] { trainer.load(folder.path() / "one"); }),
            "it holds 1 schedules, the operator registered 0");
}

TEST_CASE("a trainer saves only to a folder of its own") {
  const testing::TemporaryFolder folder;
  TorchTrainer<Mistaken> trainer({.config = {{"how", "nothing"}}});
  trainer.save(folder.path() / "model" / "");
  trainer.train();
  trainer.save(folder.path() / "model" / "");
  trainer.load(folder.path() / "model");
  CHECK_HAS(testing::refusal([&] { trainer.save(folder.path()); }), "it holds other things");
  trainer.train();  // still there
}

TEST_CASE("what backward throws on one of two ranks is not taken for a lost peer") {
  const std::string said = testing::refusal(
      [] {
        TorchTrainer<Mistaken>({.num_workers = 2, .config = {{"how", "no gradient"}}}).train();
      },
      ErrorCode::kProcess);
  CHECK_HAS(said, "rank 1: ");
  CHECK_HAS(said, "does not require grad");
  CHECK_FALSE(testing::has(said, "did a rank end?"));
}

// Judges by more than its loss.
class Judge : public Mistaken {
 public:
  void setup(const Config& config) override {
    Mistaken::setup({{"how", "nothing"}});
    metrics_ = config.get<int>("metrics");
  }
  Result validate_batch(const Batch& batch, const BatchInfo& info) override {
    Result result = Mistaken::validate_batch(batch, info);
    for (int i = 0; i < metrics_; ++i) result.set("metric_" + std::to_string(i), 10.0 + i);
    return result;
  }

 private:
  int metrics_ = 0;
};

TEST_CASE("a trial reports all that its operator judges by") {
  const testing::TemporaryFolder folder;
  const Analysis analysis =
      run(TorchTrainer<Judge>::as_trainable(), {.name = "judges",
                                                .config = {{"metrics", grid_search({2, 3, 4, 5})}},
                                                .metric = "val_loss",
                                                .stop = {{"training_iteration", 1}},
                                                .storage = folder.path(),
                                                .quiet = true});
  REQUIRE(analysis.trials().size() == 4);
  for (const TrialSummary& trial : analysis.trials()) {
    const int metrics = trial.config().get<int>("metrics");
    const Result result = trial.last_result();
    CAPTURE(result.dump());
    CHECK(result.contains("val_loss"));
    CHECK(result.get<std::int64_t>("val_num_samples") == 4);
    for (int i = 0; i < metrics; ++i) {
      CHECK(result.get_or("metric_" + std::to_string(i), 0.0) == 10.0 + i);
    }
    CHECK_FALSE(result.contains("metric_" + std::to_string(metrics)));
  }
}

}  // namespace
}  // namespace tune
