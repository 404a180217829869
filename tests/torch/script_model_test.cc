// Models that Python wrote as TorchScript: data/script_model.py.
#include "trainables/torch/script_model.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/python_file.h"
#include "trainables/torch/training_run.h"

namespace tune {
namespace {

using testing::refusal;

std::string script_file(const std::string& name) {
  return std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/script_model/" + name;
}

std::vector<double> numbers_in(const std::string& file) {
  std::ifstream in(file);
  std::vector<double> numbers;
  for (double number = 0; in >> number;) numbers.push_back(number);
  return numbers;
}

Batch script_samples() {
  return {torch::sin(torch::arange(24.0)).view({6, 4}), torch::arange(6, torch::kLong) % 2};
}

TEST_CASE("a script trains as in Python, which reads what was trained") {
  ScriptModel net(script_file("net.ts"));
  auto optimizer =
      std::make_shared<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.5));
  TrainingStep step(net, optimizer, {}, {.criterion = torch::nn::CrossEntropyLoss()});
  std::vector<double> losses;
  for (int i = 0; i < 5; ++i) losses.push_back(step.run(script_samples()).item<double>());
  const std::vector<double> wanted = numbers_in(script_file("trained.txt"));
  REQUIRE(wanted.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(losses[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  }
  const testing::TemporaryFolder folder;
  save_model(folder.path(), *net);
  std::map<std::string, at::Tensor> saved;
  for (const auto& [name, tensor] : read_safetensors(folder.path() / "model.safetensors")) {
    saved[name] = tensor;
  }
  const NamedTensors python = read_torch_save(script_file("trained.pt"));
  CHECK(saved.size() == python.size());
  for (const auto& [name, tensor] : python) {
    CAPTURE(name);
    REQUIRE(saved.contains(name));
    CHECK(saved[name].allclose(tensor, 1e-3, 1e-4));
  }
}

TEST_CASE("a script takes the weights of a checkpoint, and is evaluated as it is trained") {
  const testing::TemporaryFolder folder;
  std::filesystem::copy_file(script_file("trained.pt"), folder.path() / "model.pt");
  ScriptModel net(script_file("net.ts"));
  load_model(folder.path(), *net);
  const at::Tensor x = script_samples().data;
  net->eval();
  // Without the batch's own statistics a sample's output does not depend on the others.
  CHECK(net->forward(x)[2].allclose(net->forward(x.slice(0, 2, 3))[0], 1e-5, 1e-6));
  CHECK_FALSE(net->is_training());
  net->train();
  CHECK_FALSE(net->forward(x)[2].allclose(net->forward(x.slice(0, 2, 4))[0], 1e-3, 1e-4));
}

class ScriptOperator : public TrainingOperator {
 public:
  void setup(const Config&) override {
    ScriptModel net(script_file("net.ts"));
    register_training({.models = {net},
                       .optimizers = {std::make_shared<torch::optim::Adam>(net->parameters())},
                       .criterion = torch::nn::CrossEntropyLoss(),
                       .ema_decay = 0.9});
    const Batch samples = script_samples();
    const auto data = std::make_shared<TensorDataset>(samples.data, samples.target);
    register_data({.train = data, .validation = data, .batch_size = 3});
  }
};

TEST_CASE("an operator trains a script, and goes on from its checkpoint") {
  const testing::TemporaryFolder folder;
  TrainingRun run(std::make_unique<ScriptOperator>(), {}, {}, {});
  run.train();
  run.save(folder.path());
  const double next = run.train().get<double>("train_loss");
  const double judged = run.validate().get<double>("val_loss");
  TrainingRun resumed(std::make_unique<ScriptOperator>(), {}, {}, {});
  resumed.load(folder.path());
  CHECK(resumed.train().get<double>("train_loss") == next);
  CHECK(resumed.validate().get<double>("val_loss") == judged);
}

TEST_CASE("a script of several inputs and outputs is called by its tensors") {
  ScriptModel pair(script_file("pair.ts"));
  const at::Tensor a = torch::tensor({1.0F, 2.0F}), b = torch::tensor({3.0F, 4.0F});
  const std::vector<at::Tensor> outputs = pair->outputs({a, b});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].equal(a + b));
  CHECK(outputs[1].equal(a * b * 2));
  outputs[1].sum().backward();
  CHECK(pair->parameters()[0].grad().item<double>() == 11);  // 3 + 8
}

TEST_CASE("what is no script to train is refused, and the error says what to call in Python") {
  const auto error = [](const std::string& name, ErrorCode code = ErrorCode::kBadInput) {
    return refusal([&] { ScriptModel net(script_file(name)); }, code);
  };
  CHECK_HAS(error("absent.ts", ErrorCode::kIo), "there is no such file");
  for (const char* name : {"trained.pt", "trained.txt", "exported.pt2"}) {
    CAPTURE(name);
    CHECK_HAS(error(name), "torch.jit.script(model).save(\"" + std::string(name) + "\")");
  }
  CHECK_HAS(error("frozen.ts"), "torch.jit.freeze");
}

}  // namespace
}  // namespace tune
