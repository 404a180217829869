#include "trainables/torch/checkpoint.h"

#include <fstream>
#include <string>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

using testing::refusal;

namespace nn = torch::nn;

nn::Sequential small_network(int width) {
  return nn::Sequential(nn::Linear(4, width), nn::BatchNorm1d(width), nn::ReLU(),
                        nn::Linear(width, 2));
}

struct Training {
  explicit Training(int width = 3)
      : model(small_network(width)),
        optimizer(model->parameters(), torch::optim::AdamOptions(0.1)) {}

  double step() {
    const torch::Tensor loss = model->forward(torch::randn({8, 4})).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  }

  nn::Sequential model;
  torch::optim::Adam optimizer;
};

TEST_CASE("model, optimizer and random state are restored so that training goes on the same") {
  const testing::TemporaryFolder folder;
  seed_all(3);
  Training saved;
  saved.step();
  save_checkpoint(folder.path(), *saved.model, saved.optimizer);
  const double second = saved.step();
  const double third = saved.step();

  seed_all(99);
  Training restored;
  static_cast<torch::optim::AdamOptions&>(restored.optimizer.param_groups()[0].options()).lr(1.0);
  load_checkpoint(folder.path(), *restored.model, restored.optimizer);
  CHECK(restored.step() == second);
  CHECK(restored.step() == third);
}

// Two groups, the second with a tenth of the rate.
torch::optim::SGD sgd_of(nn::Sequential& model, double rate, double momentum) {
  using Options = torch::optim::SGDOptions;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(model[0]->parameters());
  groups.emplace_back(model[3]->parameters(), std::make_unique<Options>(rate / 10));
  static_cast<Options&>(groups[1].options()).momentum(momentum);
  return torch::optim::SGD(groups, Options(rate).momentum(momentum));
}

const torch::optim::SGDOptions& options_of(const torch::optim::Optimizer& optimizer,
                                           std::size_t group) {
  return static_cast<const torch::optim::SGDOptions&>(optimizer.param_groups()[group].options());
}

TEST_CASE("a resumed optimizer keeps the checkpoint's rates, a newly configured one its own") {
  const testing::TemporaryFolder folder;
  nn::Sequential model = small_network(3);
  torch::optim::SGD saved = sgd_of(model, 0.1, 0.9);
  model->forward(torch::randn({8, 4})).square().mean().backward();
  saved.step();
  for (auto& group : saved.param_groups()) {
    group.options().set_lr(group.options().get_lr() / 2);  // as a schedule does
  }
  save_optimizer(folder.path(), saved);

  torch::optim::SGD resumed = sgd_of(model, 0.1, 0.9);
  load_optimizer(folder.path(), resumed);
  CHECK(options_of(resumed, 0).lr() == 0.05);
  CHECK(options_of(resumed, 1).lr() == 0.005);
  CHECK(resumed.state().size() == 4);

  torch::optim::SGD replaced = sgd_of(model, 0.02, 0.9);
  load_optimizer(folder.path(), replaced);
  CHECK(options_of(replaced, 0).lr() == 0.02);
  CHECK(options_of(replaced, 1).lr() == 0.002);
  CHECK(replaced.state().size() == 4);  // momentum goes on

  torch::optim::SGD other_momentum = sgd_of(model, 0.1, 0.5);
  load_optimizer(folder.path(), other_momentum);
  CHECK(options_of(other_momentum, 0).lr() == 0.05);
  CHECK(options_of(other_momentum, 0).momentum() == 0.5);
  CHECK(options_of(other_momentum, 1).momentum() == 0.5);

  // A replaced one is saved and resumed under its own configuration.
  save_optimizer(folder.path(), replaced);
  torch::optim::SGD after = sgd_of(model, 0.02, 0.9);
  after.param_groups()[0].options().set_lr(1);
  load_optimizer(folder.path(), after);
  CHECK(options_of(after, 0).lr() == 0.02);
}

TEST_CASE("fields of other kinds than numbers are compared as well") {
  const testing::TemporaryFolder folder;
  Training saved;
  saved.step();
  save_optimizer(folder.path(), saved.optimizer);
  using Options = torch::optim::AdamOptions;
  torch::optim::Adam replaced(saved.model->parameters(), Options(0.1).betas({0.8, 0.99}));
  load_optimizer(folder.path(), replaced);
  const auto& options = static_cast<Options&>(replaced.param_groups()[0].options());
  CHECK(options.betas() == std::tuple(0.8, 0.99));
  CHECK(options.lr() == 0.1);
}

TEST_CASE("a seed gives the numbers that LibTorch's own gives") {
  seed_all(5);
  const torch::Tensor ours = torch::rand({8});
  torch::manual_seed(5);
  CHECK(torch::rand({8}).equal(ours));
}

TEST_CASE("a model is loaded into the tensors it has, so that others who hold them see it") {
  const testing::TemporaryFolder folder;
  Training saved;
  Training other;
  save_model(folder.path(), *saved.model);
  const torch::Tensor held = other.model->parameters()[0];
  const void* storage = held.data_ptr();
  load_model(folder.path(), *other.model);
  CHECK(held.equal(saved.model->parameters()[0]));
  CHECK(other.model->parameters()[0].data_ptr() == storage);
}

TEST_CASE("an optimizer that has not stepped yet can be saved and loaded") {
  const testing::TemporaryFolder folder;
  Training saved;
  save_optimizer(folder.path(), saved.optimizer);
  Training restored;
  CHECK_NOTHROW(load_optimizer(folder.path(), restored.optimizer));
}

TEST_CASE("a checkpoint that does not fit is refused, and says where") {
  const testing::TemporaryFolder folder;
  Training saved(3);
  saved.step();
  save_checkpoint(folder.path(), *saved.model, saved.optimizer);

  Training wider(5);
  const torch::Tensor before = wider.model->parameters()[0].detach().clone();
  const std::string shapes = refusal([&] { load_model(folder.path(), *wider.model); });
  CHECK_HAS(shapes, "0.weight is Float [3, 4] in the file and Float [5, 4] in the model");
  CHECK(wider.model->parameters()[0].equal(before));

  nn::Sequential less(nn::Linear(4, 3), nn::BatchNorm1d(3));
  CHECK_HAS(refusal([&] { load_model(folder.path(), *less); }),
            "the file has 9 tensors, the model 7");
  nn::Sequential more = small_network(3);
  more->push_back(nn::Linear(2, 2));
  const std::string missing = refusal([&] { load_model(folder.path(), *more); });
  CHECK_HAS(missing, "the file has no 4.weight");
  CHECK(missing.find("but") == std::string::npos);
  torch::optim::Adam fewer(less->parameters());
  CHECK_HAS(refusal([&] { load_optimizer(folder.path(), fewer); }), "optimizer.pt");
}

TEST_CASE("weights with the prefix of Python's DistributedDataParallel are refused with the cure") {
  const testing::TemporaryFolder folder;
  nn::Module parallel;
  parallel.register_module("module", small_network(3).ptr());
  save_model(folder.path(), parallel);
  CHECK_HAS(refusal([&] { load_model(folder.path(), *small_network(3)); }),
            "the file has no 0.weight, but module.0.weight: save model.module.state_dict()");
}

TEST_CASE("files that are missing, cut or cannot be written are refused by name") {
  const testing::TemporaryFolder folder;
  Training training;
  const auto load = [&] { load_checkpoint(folder.path(), *training.model, training.optimizer); };
  CHECK_HAS(refusal(load, ErrorCode::kIo), "cannot read");
  CHECK_HAS(refusal([&] { load_optimizer(folder.path(), training.optimizer); }, ErrorCode::kIo),
            "optimizer.pt");

  save_checkpoint(folder.path(), *training.model, training.optimizer);
  for (const char* name : {"model.safetensors", "optimizer.pt", "random.pt"}) {
    const auto file = folder.path() / name;
    const auto size = std::filesystem::file_size(file);
    const std::string whole = testing::read_text(file);
    std::filesystem::resize_file(file, size / 2);
    CHECK_HAS(refusal(load, ErrorCode::kIo), name);
    std::ofstream(file, std::ios::binary) << whole;
  }
  CHECK_NOTHROW(load());

  const std::filesystem::path nowhere = folder.path() / "nowhere";
  CHECK_HAS(refusal([&] { save_model(nowhere, *training.model); }, ErrorCode::kIo),
            "model.safetensors");
  CHECK_HAS(refusal([&] { save_optimizer(nowhere, training.optimizer); }, ErrorCode::kIo),
            "optimizer.pt");
}

TEST_CASE("a state is read back from its file as it was, a broken one is refused") {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "batches.json";
  const Value state = {{"epoch", 2}, {"position", 37}, {"names", list({"a", "b"})}};
  save_state(file, state);
  CHECK(load_state(file) == state);
  std::filesystem::resize_file(file, 5);
  CHECK_HAS(refusal([&] { load_state(file); }), "batches.json");
  CHECK_HAS(refusal([&] { load_state(folder.path() / "none.json"); }, ErrorCode::kIo), "none.json");
}

TEST_CASE("threads are set to what is asked, at least one") {
  set_threads(2);
  CHECK(torch::get_num_threads() == 2);
  set_threads(0);
  CHECK(torch::get_num_threads() == 1);
}

}  // namespace
}  // namespace tune
