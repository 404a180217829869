// Surrogates' networks, read and computed by hand, beside what onnxruntime said to the same inputs
// (tests/data/tasks/make.py).
#include "tune/simulate/network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/refusal.h"
#include "tune/simulate/dense_kernel.h"
#include "tune/simulate/said.h"

namespace tune {
namespace {

using testing::refusal;

TEST_CASE("a network computes what onnxruntime does") {
  const Value expected = said_in("expected.json");
  for (const char* folder : {"tiny_curves", "tiny_conditional"}) {
    CAPTURE(folder);
    check_same(network_in(data() / folder), expected.at(folder));
  }
}

TEST_CASE("rows are computed alike whichever are beside them") {
  const Network network = network_in(data() / "tiny_curves");
  const std::vector<float> row = {5, 100, 0.01f, 0.5f};
  const std::vector<std::int32_t> task = {3};
  const std::vector<float> alone = network.run(task, row);
  std::vector<float> many;
  std::vector<std::int32_t> tasks;
  for (int i = 0; i < 75; ++i) {  // more than two blocks of kLanes
    const bool same = i == 0 || i == 31 || i == 32 || i == 74;
    tasks.push_back(same ? 3 : 1);
    for (const float value : row) many.push_back(same ? value : value / 2);
  }
  const std::vector<float> found = network.run(tasks, many);
  for (const std::size_t i : {0u, 31u, 32u, 74u}) {
    CHECK(std::equal(alone.begin(), alone.end(), found.begin() + static_cast<int>(3 * i)));
  }
  CHECK(network.run({}, {}).empty());
}

TEST_CASE("a dense layer is the plain sum, to the bit, for every number of outputs") {
  RandomStream random(1, "dense", 0);
  constexpr std::size_t kInputs = 13;
  for (std::size_t outputs = 1; outputs <= 9; ++outputs) {
    std::vector<float> weights(kInputs * outputs), bias(outputs), source(kInputs * kLanes);
    for (auto* list : {&weights, &bias, &source}) {
      for (float& value : *list) value = static_cast<float>(random.normal());
    }
    std::vector<float> target(outputs * kLanes);
    dense_layer(weights.data(), bias.data(), source.data(), target.data(), kInputs, outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        volatile float sum = bias[o];
        for (std::size_t i = 0; i < kInputs; ++i) {
          volatile float product = weights[o * kInputs + i] * source[i * kLanes + lane];
          sum = sum + product;
        }
        CHECK(target[o * kLanes + lane] == sum);
      }
    }
  }
}

// ---- Refusals

TEST_CASE("what is not a network is refused and named") {
  CHECK_HAS(refusal([] { parse_onnx("", "x.onnx"); }), "reading x.onnx: it is not an ONNX file");
  CHECK_HAS(refusal([] { parse_onnx("hello, world", "x.onnx"); }), "reading x.onnx: ");
  // Field 7, the graph, announces more than there is; a number of eleven bytes.
  CHECK_HAS(refusal([] { parse_onnx("\x3a\x7f", "x.onnx"); }),
            "127 bytes are announced, 0 are left");
  CHECK_HAS(refusal([] { parse_onnx(std::string(11, '\xff'), "x.onnx"); }), "more than ten bytes");
}

TEST_CASE("a file cut or damaged anywhere is refused or read, and nothing worse") {
  const std::string whole = read_file(data() / "tiny_curves/model.onnx");
  const auto is_refused = [](const std::string& bytes) {
    try {
      const Network network(parse_onnx(bytes, "x.onnx"), "x.onnx");
      return false;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadInput);
      return true;
    }
  };
  for (std::size_t size = 0; size + 20 < whole.size(); size += 13) {
    CAPTURE(size);
    CHECK(is_refused(whole.substr(0, size)));
  }
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    refused += is_refused(damaged) ? 1 : 0;
  }
  CHECK(refused > 100);
}

OnnxGraph small_graph(std::vector<OnnxNode> nodes) {
  OnnxGraph graph;
  graph.inputs = {{"x_cont", 2}};
  graph.nodes = std::move(nodes);
  graph.outputs = {graph.nodes.back().outputs.front()};
  graph.constants["w"] = {{1, 3}, {1, 2, 3}, {}};
  graph.constants["b"] = {{1}, {0.5f}, {}};
  return graph;
}

TEST_CASE("operations that no surrogate has are refused by name") {
  const auto why = [](OnnxNode node) {
    return refusal([&] { Network(small_graph({std::move(node)}), "x.onnx"); });
  };
  CHECK_HAS(why({"Softmax", {"x_cont"}, {"y"}, {}, {}, {}}),
            "reading x.onnx: Softmax 'y': it is not one of the operations of a surrogate");
  CHECK_HAS(why({"Relu", {"z"}, {"y"}, {}, {}, {}}), "'z' is not known");
  CHECK_HAS(why({"Relu", {}, {"y"}, {}, {}, {}}), "an input is missing");
  CHECK_HAS(why({"Gemm", {"x_cont", "w", "b"}, {"y"}, {}, {}, {}}), "it is not a plain layer");
  CHECK_HAS(why({"Gemm", {"x_cont", "w", "b"}, {"y"}, {{"transB", 1}}, {}, {}}),
            "its weights and bias do not fit");
  OnnxGraph graph = small_graph({{"Relu", {"x_cont"}, {"y"}, {}, {}, {}}});
  graph.inputs.push_back({"image", 3});
  CHECK_HAS(refusal([&] { Network(graph, "x.onnx"); }), "inputs are x_cat and x_cont");
}

}  // namespace
}  // namespace tune
