// Packages that Python compiled ahead of time: with the Python of TUNE_TORCH_PYTHON, or that of
// bench/peers; skipped where its torch is not of LibTorch's version.
#include "trainables/torch/compiled_model.h"

#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "skip.h"
#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string python_that_compiles() {
  const std::string cache =
      variable_or("TUNE_CACHE_DIR", variable_or("HOME", "/nowhere") + "/.cache/tune");
  return variable_or("TUNE_TORCH_PYTHON", cache + "/peers/torch/bin/python");
}

at::Tensor outputs_in(const fs::path& file) {
  std::ifstream in(file);
  std::vector<float> numbers;
  for (float number = 0; in >> number;) numbers.push_back(number);
  return torch::tensor(numbers).view({-1, 2});
}

// False: there is no such Python.
bool compile_into(const fs::path& folder) {
  const std::string python = python_that_compiles();
  if (!fs::exists(python)) {
    testing::skip("no Python with torch: " + python);
    return false;
  }
  const std::string command =
      "cd '" + folder.string() + "' && PYTHONDONTWRITEBYTECODE=1 '" + python + "' '" +
      TUNE_SOURCE_DIR + "/tests/torch/data/compiled_model.py' . " + TORCH_VERSION + " > log 2>&1";
  const int code = WEXITSTATUS(std::system(command.c_str()));
  if (code == testing::kSkippedCode) {
    testing::skip("the torch of " + python + " is not " + TORCH_VERSION);
    return false;
  }
  CAPTURE(testing::read_text(folder / "log"));
  REQUIRE(code == 0);
  return true;
}

TEST_CASE("a package computes what Python's model does, also with a checkpoint's weights") {
  const testing::TemporaryFolder folder;
  if (!compile_into(folder.path())) return;
  const auto is_as_in = [&](const at::Tensor& output, const char* file) {
    return output.allclose(outputs_in(folder.path() / file), 1e-5, 1e-5);
  };
  CompiledModel model(folder.path() / "net.pt2", {.runners = 2});
  CHECK(model.device() == "cpu");
  const at::Tensor x = torch::sin(torch::arange(24.0)).view({6, 4});
  const at::Tensor output = model.forward(x);
  CHECK(is_as_in(output, "net.txt"));
  CHECK_FALSE(output.requires_grad());
  CHECK(model.forward(x.slice(0, 0, 2)).allclose(output.slice(0, 0, 2), 1e-5, 1e-6));

  // As many calls at a time as there are runners, and more.
  std::vector<at::Tensor> outputs(4);
  std::vector<std::thread> threads;
  for (at::Tensor& one : outputs) threads.emplace_back([&] { one = model.forward(x); });
  for (std::thread& thread : threads) thread.join();
  for (const at::Tensor& one : outputs) CHECK(one.equal(output));

  // What it would read may not be there.
  CHECK_HAS(refusal([&] { model.forward(torch::zeros({6, 3})); }), "net.pt2 with (Float [6, 3]): ");
  CHECK_HAS(refusal([&] { model.forward(torch::zeros({65, 4})); }), "with (Float [65, 4]): ");
  CHECK_HAS(refusal([&] {
              model.forward(torch::zeros({6, 4}, torch::kDouble));
            }),
            "with (Double [6, 4]): ");
  CHECK_HAS(refusal([&] { model.run({x, x}); }), "with (Float [6, 4], Float [6, 4]): ");
  CHECK_HAS(refusal([&] { model.run({}); }), "with (): ");
  CHECK(is_as_in(model.forward(x), "net.txt"));

  const std::vector<std::string> names = model.weights();
  CHECK(std::ranges::count(names, "0.weight") == 1);
  model.load_weights(folder.path());
  CHECK(is_as_in(model.forward(x), "other.txt"));

  const auto refused_weights = [&](std::int64_t hidden, bool has_more) {
    torch::nn::Sequential net(torch::nn::Linear(4, hidden), torch::nn::BatchNorm1d(hidden),
                              torch::nn::ReLU(), torch::nn::Linear(hidden, 2));
    if (has_more) net->push_back(torch::nn::Linear(2, 1));
    const testing::TemporaryFolder others;
    save_model(others.path(), *net);
    return refusal([&] { model.load_weights(others.path()); });
  };
  CHECK_HAS(refused_weights(9, false), " in the checkpoint and Float [");
  CHECK_HAS(refused_weights(8, true), "the package has no 4.");
  const testing::TemporaryFolder one;
  save_model(one.path(), *torch::nn::Linear(4, 8));
  CHECK_HAS(refusal([&] { model.load_weights(one.path()); }), "the checkpoint has no ");
  CHECK(is_as_in(model.forward(x), "other.txt"));

  CHECK_HAS(refusal([&] { CompiledModel(folder.path() / "net.pt2", {.name = "other"}); }),
            "with a model \"other\"");
  const std::string foreign = refusal([&] { CompiledModel(folder.path() / "foreign.pt2"); });
  CHECK_HAS(foreign, "aoti_torch_delete_tensor_future");
  CHECK_HAS(foreign, "by the PyTorch of this LibTorch, " TORCH_VERSION);
}

}  // namespace
}  // namespace tune
