#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/optimizer_state.h"
#include "trainables/torch/training_run.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;
namespace optim = torch::optim;

// Contents by path below the folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), folder)] = {std::istreambuf_iterator<char>(in), {}};
  }
  return files;
}

// Of a class that CheckpointCopies does not know: its tensors may be anywhere.
class UnknownSgd : public optim::SGD {
 public:
  using optim::SGD::SGD;
  void save(torch::serialize::OutputArchive& archive) const override {
    optim::SGD::save(archive);
    archive.write("more", param_groups()[0].params()[0].detach());
  }
};

at::Tensor more_in(const fs::path& folder) {
  torch::serialize::InputArchive archive;
  archive.load_from((folder / "optimizer.pt").string());
  at::Tensor more;
  archive.read("more", more);
  return more;
}

std::unique_ptr<optim::Optimizer> optimizer_named(const std::string& name,
                                                  const std::vector<at::Tensor>& parameters) {
  if (name == "SGD") {
    return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(0.1).momentum(0.9));
  }
  if (name == "Adam") {
    return std::make_unique<optim::Adam>(parameters, optim::AdamOptions(0.1).amsgrad(true));
  }
  if (name == "AdamW") return std::make_unique<optim::AdamW>(parameters);
  if (name == "FusedAdam") return std::make_unique<FusedAdam>(parameters);
  if (name == "FusedAdamW") return std::make_unique<FusedAdamW>(parameters);
  if (name == "FusedSgd") {
    return std::make_unique<FusedSgd>(parameters, optim::SGDOptions(0.1).momentum(0.9));
  }
  if (name == "RMSprop") {
    return std::make_unique<optim::RMSprop>(
        parameters, optim::RMSpropOptions(0.1).momentum(0.9).centered(true));
  }
  if (name == "Adagrad") return std::make_unique<optim::Adagrad>(parameters);
  return std::make_unique<UnknownSgd>(parameters, optim::SGDOptions(0.1).momentum(0.9));
}

TEST_CASE(
    "a copied checkpoint is that of its moment, though training goes on before it is written") {
  CheckpointCopies copies;
  for (const char* name : {"SGD", "Adam", "AdamW", "FusedAdam", "FusedAdamW", "FusedSgd", "RMSprop",
                           "Adagrad", "unknown"}) {
    CAPTURE(name);
    const testing::TemporaryFolder then;
    const testing::TemporaryFolder later;
    nn::Sequential model(nn::Conv2d(nn::Conv2dOptions(3, 4, 3)), nn::BatchNorm2d(4));
    model->to(at::kFloat);
    model[0]->as<nn::Conv2d>()->weight.set_data(
        model[0]->as<nn::Conv2d>()->weight.detach().to(at::MemoryFormat::ChannelsLast));
    const auto optimizer = optimizer_named(name, model->parameters());
    const auto step = [&] {
      optimizer->zero_grad();
      model->forward(torch::randn({2, 3, 5, 5})).square().mean().backward();
      optimizer->step();
    };
    step();
    save_checkpoint(then.path(), *model, *optimizer);
    const CheckpointWriter write = checkpoint_writer(later.path(), *model, *optimizer, &copies);
    CHECK(files_in(later.path()).empty());
    step();
    write();
    if (name == std::string("unknown")) {  // its archive has another name within the file
      CHECK(more_in(later.path()).equal(more_in(then.path())));
      fs::remove(then.path() / "optimizer.pt");
      fs::remove(later.path() / "optimizer.pt");
    }
    CHECK(files_in(later.path()) == files_in(then.path()));
    CHECK(has_known_state(*optimizer) == (std::string(name) != "unknown"));
  }
}

TEST_CASE("memory of a copy is used again when nobody holds the copy") {
  CheckpointCopies copies;
  const at::Tensor weights = torch::randn({3, 4});
  at::Tensor first = copies.copy(weights);
  const void* place = first.const_data_ptr();
  CHECK(first.equal(weights));
  CHECK(copies.copy(weights).const_data_ptr() != place);
  at::Tensor view = first.view({12});
  first.reset();
  CHECK(copies.copy(weights).const_data_ptr() != place);
  view.reset();
  CHECK(copies.copy(weights).const_data_ptr() == place);
  CHECK(copies.copy(weights.t()).strides() == weights.t().strides());
}

class CopiedOperator : public TrainingOperator {
 public:
  explicit CopiedOperator(bool asynchronous) : asynchronous_(asynchronous) {}
  void setup(const Config&) override {
    nn::Sequential net(nn::Linear(4, 2));
    register_training({.models = {net},
                       .optimizers = {std::make_shared<optim::Adam>(net->parameters())},
                       .schedulers = {cosine(5)},
                       .criterion = nn::CrossEntropyLoss(),
                       .ema_decay = 0.9,
                       .asynchronous_checkpoints = asynchronous_});
    register_data({.train = std::make_shared<TensorDataset>(torch::randn({16, 4}),
                                                            torch::zeros({16}, torch::kLong)),
                   .batch_size = 4});
  }

 private:
  bool asynchronous_;
};

TEST_CASE("an operator's asynchronous checkpoint is the one that save would have written") {
  const testing::TemporaryFolder then;
  const testing::TemporaryFolder later;
  TrainingRun run(std::make_unique<CopiedOperator>(true), {}, {}, {});
  run.train();
  run.save(then.path());
  CheckpointWriter write;
  run.save(later.path(), [&](CheckpointWriter writer) { write = std::move(writer); });
  REQUIRE(write);
  run.train();
  write();
  CHECK(files_in(later.path()) == files_in(then.path()));
  CHECK(files_in(then.path()).size() == 7);
}

TEST_CASE("an operator that does not ask for asynchronous checkpoints writes them at once") {
  const testing::TemporaryFolder folder;
  TrainingRun run(std::make_unique<CopiedOperator>(false), {}, {}, {});
  run.save(folder.path(), [&](CheckpointWriter) { FAIL("a copy was made"); });
  CHECK(fs::exists(folder.path() / kProgressFile));
}

}  // namespace
}  // namespace tune
