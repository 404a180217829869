// The answers of onnxruntime to some inputs, beside those of a Network.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/platform/files.h"
#include "tune/simulate/network.h"

namespace tune {

inline std::filesystem::path data() {
  return std::filesystem::path(TUNE_SOURCE_DIR) / "tests/data/tasks";
}

inline Value said_in(const std::string& file) {
  return parse_json(read_file(data() / file), file);
}

inline Network network_in(const std::filesystem::path& folder) {
  return Network(parse_onnx(read_file(folder / "model.onnx"), "model.onnx"), "model.onnx");
}

// The largest error of each output, over how far its values spread or are from 0.
inline void check_same(const Network& network, const Value& said) {
  const auto categories = said.get<std::vector<std::int32_t>>("x_cat");
  const auto numbers = said.get<std::vector<float>>("x_cont");
  const auto outputs = said.get<std::vector<double>>("outputs");
  const std::vector<float> found = network.run(categories, numbers);
  REQUIRE(found.size() == outputs.size());
  REQUIRE(found.size() >= 10 * network.outputs());
  for (std::size_t output = 0; output < network.outputs(); ++output) {
    double low = outputs[output];
    double high = low;
    for (std::size_t i = output; i < outputs.size(); i += network.outputs()) {
      low = std::min(low, outputs[i]);
      high = std::max(high, outputs[i]);
    }
    CHECK(low < high);
    for (std::size_t i = output; i < outputs.size(); i += network.outputs()) {
      CAPTURE(output);
      CAPTURE(i);
      const double scale = std::max(std::abs(outputs[i]), high - low);
      CHECK(std::abs(found[i] - outputs[i]) <= 1e-5 * scale);
    }
  }
}

}  // namespace tune
