#include "trainables/torch/python_file.h"

#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/checkpoint.h"
#include "trainables/torch/python_pickle.h"

namespace tune {
namespace {

// Written by data/state_dict.py.
std::filesystem::path python_file(const std::string& name) {
  return std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/state_dict/" + name;
}

torch::nn::Sequential python_model() {
  return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3),
                               torch::nn::ReLU(), torch::nn::Linear(3, 2));
}

// As the script numbers them.
at::Tensor place_numbers(at::IntArrayRef shape, int place, at::ScalarType type = at::kFloat) {
  return (torch::arange(at::IntArrayRef(shape).empty() ? 1 : c10::multiply_integers(shape)) / 4 +
          place)
      .to(type)
      .view(shape);
}

std::map<std::string, at::Tensor> tensors_of_file(const std::string& name) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [key, tensor] : read_torch_save(python_file(name))) tensors[key] = tensor;
  return tensors;
}

TEST_CASE("a model is loaded from what Python's torch.save wrote of its state_dict") {
  for (const char* name : {"model.pt", "protocol_4.pt"}) {
    CAPTURE(name);
    const testing::TemporaryFolder folder;
    std::filesystem::copy_file(python_file(name), folder.path() / "model.pt");
    torch::nn::Sequential model = python_model();
    load_model(folder.path(), *model);
    // In the order of Python's state_dict: layer by layer, parameters before buffers.
    const auto parameters = model->named_parameters();
    const auto buffers = model->named_buffers();
    CHECK(parameters["0.weight"].equal(place_numbers({3, 4}, 0)));
    CHECK(parameters["0.bias"].equal(place_numbers({3}, 1)));
    CHECK(parameters["1.weight"].equal(place_numbers({3}, 2)));
    CHECK(parameters["1.bias"].equal(place_numbers({3}, 3)));
    CHECK(buffers["1.running_mean"].equal(place_numbers({3}, 4)));
    CHECK(buffers["1.running_var"].equal(place_numbers({3}, 5)));
    CHECK(buffers["1.num_batches_tracked"].item<std::int64_t>() == 6);
    CHECK(parameters["3.weight"].equal(place_numbers({2, 3}, 7)));
    CHECK(parameters["3.bias"].equal(place_numbers({2}, 8)));
  }
}

TEST_CASE("Python's tensors of all types, views and parameters are read") {
  auto read = tensors_of_file("tensors.pt");
  CHECK(read.size() == 15);
  const at::Tensor base = place_numbers({3, 4}, 0);
  CHECK(read["base"].equal(base));
  CHECK(read["turned"].equal(base.t()));
  CHECK(read["row"].equal(base[1]));
  CHECK(read["every_other"].equal(base.slice(1, 0, {}, 2)));
  CHECK(read["turned"].data_ptr() == read["base"].data_ptr());
  const std::map<std::string, at::ScalarType> types = {
      {"f64", at::kDouble}, {"f16", at::kHalf}, {"bf16", at::kBFloat16}, {"i32", at::kInt},
      {"i16", at::kShort},  {"i8", at::kChar},  {"u8", at::kByte}};
  const std::map<std::string, int> places = {{"f64", 1}, {"f16", 2}, {"bf16", 3}, {"i32", 4},
                                             {"i16", 5}, {"i8", 6},  {"u8", 7}};
  for (const auto& [name, type] : types) {
    CAPTURE(name);
    const std::int64_t size = name[0] == 'f' || name[0] == 'b' ? 2 : 5;
    CHECK(read[name].dtype() == type);
    CHECK(read[name].equal(place_numbers({size}, places.at(name), type)));
  }
  CHECK(read["i64"].equal(torch::tensor({-(1L << 62), 7L}, torch::kLong)));
  CHECK(read["bool"].equal(torch::tensor({1, 0, 1}, torch::kLong).to(torch::kBool)));
  CHECK(read["scalar"].equal(torch::tensor(2.5F)));
  CHECK(read["empty"].sizes() == at::IntArrayRef({0, 4}));
  CHECK(tensors_of_file("parameters.pt").at("3.weight").equal(place_numbers({2, 3}, 7)));
}

TEST_CASE("a dictionary of tensors that C++ saved is read as well") {
  const testing::TemporaryFolder folder;
  torch::nn::Linear saved(3, 2);
  c10::Dict<std::string, at::Tensor> state;
  for (const auto& parameter : saved->named_parameters()) {
    state.insert(parameter.key(), parameter.value().detach());
  }
  const std::vector<char> bytes = torch::pickle_save(state);
  std::ofstream(folder.path() / "model.pt", std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  torch::nn::Linear loaded(3, 2);
  load_model(folder.path(), *loaded);
  CHECK(loaded->weight.equal(saved->weight));
  CHECK(loaded->bias.equal(saved->bias));
}

TEST_CASE("what is not a state_dict is refused with what to call in Python") {
  const auto said = [](const char* name) {
    return testing::refusal([&] { read_torch_save(python_file(name)); });
  };
  CHECK_HAS(said("module.pt"),
            "it holds torch.nn.modules.container.Sequential, a dictionary of "
            "tensors is wanted: write torch.save(model.state_dict(), "
            "\"model.pt\") in Python");
  CHECK_HAS(said("training.pt"),
            "its \"net\" is a dictionary of tensors, not a tensor: if it is the model's, write "
            "torch.save(torch.load(file)[\"net\"], \"model.pt\")");
  CHECK_HAS(said("sparse.pt"), "its \"sparse\" is torch._utils._rebuild_sparse_tensor, a");
  CHECK_HAS(testing::refusal([] { read_torch_save(python_file("old_format.pt")); }, ErrorCode::kIo),
            "it is not what torch.save of PyTorch 1.6 or newer writes: write torch.save(");
}

TEST_CASE("a file of Python's that is cut at any place is refused by name") {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "model.pt";
  const std::string whole = testing::read_text(python_file("model.pt"));
  for (std::size_t length = 0; length < whole.size(); length += 50) {
    CAPTURE(length);
    std::ofstream(file, std::ios::binary) << whole.substr(0, length);
    CHECK_HAS(testing::refusal([&] { read_torch_save(file); }, ErrorCode::kIo), file.string());
  }
  CHECK_HAS(testing::refusal([&] { read_torch_save(folder.path() / "none"); }, ErrorCode::kIo),
            "cannot read");
}

// The words on reading a pickle of one tensor, of a storage of 4 floats.
std::string broken_pickle(const std::string& bytes) {
  const auto storage = [](const std::string&, const std::string&, std::int64_t) {
    return torch::arange(4, torch::kFloat);
  };
  return testing::refusal([&] { Pickle(bytes, storage); }, ErrorCode::kIo);
}

TEST_CASE("pickles that lie are refused, and nothing is read beyond a storage") {
  const std::string start =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((";
  const std::string storage =
      "U\x07storage"
      "ctorch\nFloatStorage\n"
      "U\x01"
      "0U\x03"
      "cpuK\x04tQ";
  const auto tensor = [&](const std::string& rest) { return start + storage + rest + "tR."; };
  // offset 1, size 3, stride 1: the last of 4
  const auto view = [](const std::string&, const std::string&, std::int64_t) {
    return torch::arange(4, torch::kFloat);
  };
  CHECK(Pickle(tensor("K\x01K\x03\x85K\x01\x85"), view)
            .root()
            .tensor.equal(torch::arange(1, 4, torch::kFloat)));
  const std::string beyond = "a tensor reaches beyond its storage";
  CHECK_HAS(broken_pickle(tensor("K\x02K\x03\x85K\x01\x85")), beyond);
  CHECK_HAS(broken_pickle(tensor("K\x01K\x03\x85K\x02\x85")), beyond);
  // 2^62 values, 2^62 apart
  const std::string most = std::string("\x8a\x08") + std::string(7, '\0') + "\x40";
  CHECK_HAS(broken_pickle(tensor(std::string("K\x01") + most + "\x85" + most + "\x85")), beyond);
  const std::string negative = "a size is not a number from 0 on";
  CHECK_HAS(broken_pickle(tensor("K\x01J\xff\xff\xff\xff\x85K\x01\x85")), negative);
  CHECK_HAS(broken_pickle(tensor("K\x01\x8a\x01\xff\x85K\x01\x85")), negative);
  CHECK_HAS(broken_pickle(tensor("K\x01K\x02\x85)")), "a tensor has no storage, or no strides");
  CHECK_HAS(broken_pickle(tensor("")), "something is missing");

  CHECK_HAS(broken_pickle(""), "it is cut");
  CHECK_HAS(broken_pickle("K"), "it is cut");
  CHECK_HAS(broken_pickle("X\xff\xff\xff\xff."), "it is cut");
  CHECK_HAS(broken_pickle("cos"), "it is cut");
  CHECK_HAS(broken_pickle("."), "something is missing");
  CHECK_HAS(broken_pickle("(."), "something is missing");
  CHECK_HAS(broken_pickle("t."), "a group without a beginning");
  CHECK_HAS(broken_pickle("q\x01."), "nothing is there to be remembered");
  CHECK_HAS(broken_pickle("h\x01."), "what it has not remembered");
  CHECK_HAS(broken_pickle("K\x01K\x01K\x02s."), "something is added to another thing");
  CHECK_HAS(broken_pickle("}(K\x01u."), "a key has no value");
  CHECK_HAS(broken_pickle("I42\n."), "operation 73 is not known");
}

TEST_CASE("a pickle's calls are not made: what it would call is a name") {
  const auto none = [](const std::string&, const std::string&, std::int64_t) {
    return at::Tensor();
  };
  const Pickle pickle("cos\nsystem\nU\x04true\x85R.", none);
  CHECK(pickle.root().kind == PickleObject::Kind::kOther);
  CHECK(pickle.root().text == "os.system");
  // A list that holds itself, and a million lists in each other.
  CHECK(Pickle("]q\x01h\x01"
               "a.",
               none)
            .root()
            .items.size() == 1);
  CHECK(Pickle(")" + std::string(1'000'000, '\x85') + ".", none).root().items.size() == 1);
}

}  // namespace
}  // namespace tune
