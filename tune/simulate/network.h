// Network: a surrogate's ONNX graph as plain layers of floats. It knows what such files hold:
// embeddings of categories, maps of single columns (affine, exponential, logarithm), dense layers,
// batch normalisation, gated ReLU blocks with what goes past them, a Sigmoid head. Anything else is
// refused when it is made. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tune/simulate/onnx_graph.h"

namespace tune {

class Network {
 public:
  // `what` names it in errors: Error (kBadInput), with the node it cannot do.
  Network(const OnnxGraph& graph, const std::string& what);

  // Widths of x_cat, of x_cont and of the output.
  std::size_t categories() const { return category_limits_.size(); }
  std::size_t numbers() const { return numbers_; }
  std::size_t outputs() const { return outputs_; }
  // Values of each category: 0 up to below this.
  std::int64_t category_limit(std::size_t category) const { return category_limits_[category]; }

  // Row after row. `categories` are within their limits (TUNE_CHECK).
  std::vector<float> run(std::span<const std::int32_t> categories,
                         std::span<const float> numbers) const;

 private:
  friend class NetworkBuilder;

  // Registers hold kLanes rows; they are named by where their first column begins.
  using Register = std::size_t;
  struct Step {  // of a single column
    enum class Kind : std::uint8_t {
      kAdd,
      kSubtract,
      kSubtractFrom,
      kMultiply,
      kDivide,
      kDivideInto,
      kNegate,
      kExp,
      kLog,
      kRound,  // to float
    };
    Kind kind;
    double constant = 0;
  };
  struct Layer {
    enum class Kind : std::uint8_t {
      kEmbed,   // `weights` has rows of `width`, chosen by the category `source`
      kColumn,  // `steps` of one column
      kCopy,
      kDense,  // `weights` of `inputs` columns to `width`, `shifts`
      kScale,  // by `weights`, `shifts`
      kAdd,    // `source` and `other`
      kMultiply,
      kRelu,
      kSigmoid,
    };
    Kind kind;
    Register target = 0;
    Register source = 0;
    Register other = 0;
    std::size_t width = 0;  // of the target
    std::size_t inputs = 0;
    std::vector<float> weights = {};
    std::vector<float> shifts = {};
    std::vector<Step> steps = {};
  };
  static double apply(const std::vector<Step>& steps, double value);
  void run_layer(const Layer& layer, std::span<const std::int32_t> categories, std::size_t rows,
                 float* registers) const;

  std::vector<std::int64_t> category_limits_;
  std::size_t numbers_ = 0;
  std::size_t outputs_ = 0;
  Register input_ = 0;
  Register output_ = 0;
  std::size_t columns_ = 0;  // of all registers
  std::vector<Layer> layers_;
};

}  // namespace tune
