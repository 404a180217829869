// OnnxGraph: the part of an ONNX file that a small network needs: its nodes in order, their
// attributes, its constants. Pure: the bytes come from elsewhere.
//
// Read by hand, for an ONNX file is protobuf: tagged fields with lengths, of which ten messages
// matter here. Debian's libonnx and protobuf would do it with two megabytes of library, a code
// generator and a version to keep in step; onnxruntime, which would also compute, is not packaged.
//
// Closed: every length is checked against what is left, every count has a limit below, and what is
// read is copied. Throws Error (kBadInput) that names the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

inline constexpr std::size_t kMaxOnnxBytes = 64u << 20;

// A constant: floats, doubles and whole numbers alike as doubles, but large ones of floats as they
// are. `dims` empty: a scalar.
struct OnnxTensor {
  std::vector<std::int64_t> dims;
  std::vector<float> floats;    // of FLOAT
  std::vector<double> numbers;  // of DOUBLE, INT32 and INT64
  std::size_t size() const { return floats.empty() ? numbers.size() : floats.size(); }
  double at(std::size_t i) const { return floats.empty() ? numbers[i] : floats[i]; }
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, double> floats;
  std::map<std::string, OnnxTensor> tensors;
};

struct OnnxInput {
  std::string name;
  std::int64_t width = 0;  // of its last dimension; 0: not given
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::map<std::string, OnnxTensor> constants;
  std::vector<OnnxInput> inputs;
  std::vector<std::string> outputs;
};

// `what` names the bytes in errors.
OnnxGraph parse_onnx(std::string_view bytes, const std::string& what);

}  // namespace tune
