// From the nodes of an ONNX graph to the layers of a Network.
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/simulate/network.h"

namespace tune {

namespace {

constexpr std::size_t kMaxNetworkColumns = 100'000;  // of all registers: 25 MB while it runs

}  // namespace

class NetworkBuilder {
 public:
  NetworkBuilder(Network& network, const OnnxGraph& graph, const std::string& what)
      : network_(network), graph_(graph), what_(what) {}

  void build();

 private:
  using Step = Network::Step;
  using Layer = Network::Layer;

  // A name of the graph stands for one of these.
  struct Constant {
    OnnxTensor tensor;
  };
  struct Categories {};  // x_cat
  struct Category {      // one column of it
    std::size_t column;
  };
  struct Matrix {
    Network::Register begin;
    std::size_t width;
  };
  // One column of a matrix and what is done with it, all in double but for what `rounds` is said.
  struct Column {
    Network::Register at;
    std::vector<Step> steps = {};
    bool is_double = false;
  };
  using Symbol = std::variant<Constant, Categories, Category, Matrix, Column>;

  void add_inputs();
  void add(const OnnxNode& node);
  Symbol result_of(const OnnxNode& node);
  Symbol gather(const OnnxNode& node);
  Symbol embed(const OnnxNode& node, const OnnxTensor& table, std::size_t column);
  Symbol concat(const OnnxNode& node);
  Symbol arithmetic(const OnnxNode& node);
  Symbol unary(const OnnxNode& node);
  Symbol cast(const OnnxNode& node);
  Symbol dense(const OnnxNode& node);
  Symbol normalisation(const OnnxNode& node);
  Symbol slice(const OnnxNode& node);
  Constant folded(const OnnxNode& node, const OnnxTensor& a, const OnnxTensor& b);

  const Symbol& input(const OnnxNode& node, std::size_t i) const;
  template <class T>
  const T* input_as(const OnnxNode& node, std::size_t i) const {
    return std::get_if<T>(&input(node, i));
  }
  const OnnxTensor& constant(const OnnxNode& node, std::size_t i) const;
  double scalar(const OnnxNode& node, std::size_t i) const;
  const Matrix& matrix(const OnnxNode& node, std::size_t i) const;
  static std::int64_t integer_or(const OnnxNode& node, const char* name, std::int64_t fallback);
  static Column with(Column column, Step::Kind kind, double number = 0);
  Matrix reserve(std::size_t width);
  Matrix layer(Layer layer);
  [[noreturn]] void refuse(const OnnxNode& node, const std::string& why) const;

  Network& network_;
  const OnnxGraph& graph_;
  const std::string& what_;
  std::map<std::string, Symbol> symbols_;
};

Network::Network(const OnnxGraph& graph, const std::string& what) {
  NetworkBuilder(*this, graph, what).build();
}

void NetworkBuilder::build() {
  add_inputs();
  for (const auto& [name, tensor] : graph_.constants) symbols_[name] = Constant{tensor};
  for (const OnnxNode& node : graph_.nodes) add(node);
  const OnnxNode end{"the output", graph_.outputs, {}, {}, {}, {}};
  const Matrix& output = matrix(end, 0);
  network_.output_ = output.begin;
  network_.outputs_ = output.width;
}

void NetworkBuilder::add_inputs() {
  for (const OnnxInput& input : graph_.inputs) {
    if (graph_.constants.contains(input.name)) continue;  // older files list them here as well
    const OnnxNode node{"the input " + input.name, {}, {}, {}, {}, {}};
    if (input.width < 1 || input.width > 1000) refuse(node, "it has no fixed width up to 1000");
    const auto width = static_cast<std::size_t>(input.width);
    if (input.name == "x_cat") {
      network_.category_limits_.assign(width, 1 << 30);
      symbols_[input.name] = Categories{};
    } else if (input.name == "x_cont") {
      const Matrix numbers = reserve(width);
      network_.input_ = numbers.begin;
      network_.numbers_ = width;
      symbols_[input.name] = numbers;
    } else {
      refuse(node, "inputs are x_cat and x_cont");
    }
  }
  if (network_.numbers_ == 0) refuse({"the input x_cont", {}, {}, {}, {}, {}}, "it is missing");
}

void NetworkBuilder::add(const OnnxNode& node) {
  if (node.outputs.size() != 1) refuse(node, "it has not one output");
  symbols_[node.outputs.front()] = result_of(node);
}

NetworkBuilder::Symbol NetworkBuilder::result_of(const OnnxNode& node) {
  const std::string& op = node.op;
  if (op == "Constant") {
    const auto value = node.tensors.find("value");
    if (value == node.tensors.end()) refuse(node, "it has no numbers");
    return Constant{value->second};
  }
  if (op == "Gather") return gather(node);
  if (op == "Concat") return concat(node);
  if (op == "Add" || op == "Sub" || op == "Mul" || op == "Div") return arithmetic(node);
  if (op == "Neg" || op == "Exp" || op == "Log" || op == "Relu" || op == "Sigmoid") {
    return unary(node);
  }
  if (op == "Cast") return cast(node);
  if (op == "Unsqueeze") return input(node, 0);  // of a column: it stays one
  if (op == "Gemm") return dense(node);
  if (op == "BatchNormalization") return normalisation(node);
  if (op == "Slice") return slice(node);
  if (op == "Shape") {
    return Constant{{{2}, {}, {-1.0, static_cast<double>(matrix(node, 0).width)}}};
  }
  refuse(node, "it is not one of the operations of a surrogate");
}

// ---- The choice ---

NetworkBuilder::Symbol NetworkBuilder::gather(const OnnxNode& node) {
  const std::int64_t axis = integer_or(node, "axis", 0);
  if (const auto* category = input_as<Category>(node, 1)) {
    return embed(node, constant(node, 0), category->column);
  }
  const double at = scalar(node, 1);
  const auto index = [&](std::size_t size) {
    const double from_front = at < 0 ? at + static_cast<double>(size) : at;
    if (!(from_front >= 0 && from_front < static_cast<double>(size))) {
      refuse(node, fmt::format("it takes the item {} of {}", at, size));
    }
    return static_cast<std::size_t>(from_front);
  };
  if (const auto* from = input_as<Constant>(node, 0)) {
    if (axis != 0 || from->tensor.dims.size() > 1) refuse(node, "it takes a part of a table");
    return Constant{{{1}, {}, {from->tensor.at(index(from->tensor.size()))}}};
  }
  if (axis != 1) refuse(node, "it takes rows");
  if (input_as<Categories>(node, 0)) return Category{index(network_.category_limits_.size())};
  const Matrix& from = matrix(node, 0);
  return Column{from.begin + index(from.width)};
}

NetworkBuilder::Symbol NetworkBuilder::embed(const OnnxNode& node, const OnnxTensor& table,
                                             std::size_t column) {
  if (table.dims.size() != 2 || table.floats.empty())
    refuse(node, "its table is not one of floats");
  std::int64_t& limit = network_.category_limits_[column];
  limit = std::min(limit, table.dims[0]);
  return layer({.kind = Layer::Kind::kEmbed,
                .source = column,
                .width = static_cast<std::size_t>(table.dims[1]),
                .weights = table.floats});
}

NetworkBuilder::Symbol NetworkBuilder::concat(const OnnxNode& node) {
  if (integer_or(node, "axis", 0) != 1) refuse(node, "it does not put columns side by side");
  std::size_t width = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    width += input_as<Column>(node, i) ? 1 : matrix(node, i).width;
  }
  const Matrix target = reserve(width);
  Network::Register next = target.begin;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (const auto* column = input_as<Column>(node, i)) {
      network_.layers_.push_back({.kind = Layer::Kind::kColumn,
                                  .target = next,
                                  .source = column->at,
                                  .width = 1,
                                  .steps = column->steps});
      next += 1;
    } else {
      const Matrix& part = matrix(node, i);
      network_.layers_.push_back(
          {.kind = Layer::Kind::kCopy, .target = next, .source = part.begin, .width = part.width});
      next += part.width;
    }
  }
  return target;
}

NetworkBuilder::Symbol NetworkBuilder::slice(const OnnxNode& node) {
  const Matrix& from = matrix(node, 0);
  const double begin = scalar(node, 1);
  const double end = std::min(scalar(node, 2), static_cast<double>(from.width));
  const double axis = scalar(node, 3);
  if ((axis != 1 && axis != -1) || !(begin >= 0 && begin < end)) {
    refuse(node, "it does not take columns from the front on");
  }
  return Matrix{from.begin + static_cast<std::size_t>(begin),
                static_cast<std::size_t>(end - begin)};
}

// ---- Arithmetic

// Each operation on floats rounds to float, as the surrogate was made with.
NetworkBuilder::Column NetworkBuilder::with(Column column, Step::Kind kind, double number) {
  column.steps.push_back({kind, number});
  if (!column.is_double) column.steps.push_back({Step::Kind::kRound});
  return column;
}

NetworkBuilder::Symbol NetworkBuilder::arithmetic(const OnnxNode& node) {
  const auto* a = input_as<Constant>(node, 0);
  const auto* b = input_as<Constant>(node, 1);
  if (a && b) return folded(node, a->tensor, b->tensor);
  const bool adds = node.op == "Add";
  const bool multiplies = node.op == "Mul";
  if (const auto* column = input_as<Column>(node, 0)) {
    return with(*column,
                adds               ? Step::Kind::kAdd
                : multiplies       ? Step::Kind::kMultiply
                : node.op == "Sub" ? Step::Kind::kSubtract
                                   : Step::Kind::kDivide,
                scalar(node, 1));
  }
  if (const auto* column = input_as<Column>(node, 1)) {
    return with(*column,
                adds               ? Step::Kind::kAdd
                : multiplies       ? Step::Kind::kMultiply
                : node.op == "Sub" ? Step::Kind::kSubtractFrom
                                   : Step::Kind::kDivideInto,
                scalar(node, 0));
  }
  const Matrix& left = matrix(node, 0);
  const Matrix& right = matrix(node, 1);
  if (left.width != right.width || !(adds || multiplies)) {
    refuse(node, "it joins matrices in another way than adding or multiplying");
  }
  return layer({.kind = adds ? Layer::Kind::kAdd : Layer::Kind::kMultiply,
                .source = left.begin,
                .other = right.begin,
                .width = left.width});
}

// Whole numbers: the widths that slices are cut at.
NetworkBuilder::Constant NetworkBuilder::folded(const OnnxNode& node, const OnnxTensor& a,
                                                const OnnxTensor& b) {
  if (a.size() != 1 || b.size() != 1) refuse(node, "it computes with lists of constants");
  const double x = a.at(0);
  const double y = b.at(0);
  if (node.op == "Div" && y == 0) refuse(node, "it divides by 0");
  const double result = node.op == "Add"   ? x + y
                        : node.op == "Sub" ? x - y
                        : node.op == "Mul" ? x * y
                                           : std::trunc(x / y);
  return {{{1}, {}, {result}}};
}

NetworkBuilder::Symbol NetworkBuilder::unary(const OnnxNode& node) {
  if (const auto* column = input_as<Column>(node, 0)) {
    if (node.op == "Neg") return with(*column, Step::Kind::kNegate);
    if (node.op == "Exp") return with(*column, Step::Kind::kExp);
    if (node.op == "Log") return with(*column, Step::Kind::kLog);
  }
  const Matrix& from = matrix(node, 0);
  if (node.op != "Relu" && node.op != "Sigmoid") refuse(node, "it is not of a single column");
  return layer({.kind = node.op == "Relu" ? Layer::Kind::kRelu : Layer::Kind::kSigmoid,
                .source = from.begin,
                .width = from.width});
}

NetworkBuilder::Symbol NetworkBuilder::cast(const OnnxNode& node) {
  const std::int64_t to = integer_or(node, "to", 0);
  if (to != 1 && to != 11) refuse(node, "it casts to another type than float and double");
  const auto* column = input_as<Column>(node, 0);
  if (column == nullptr) return matrix(node, 0);
  Column cast = *column;
  cast.is_double = to == 11;
  if (!cast.is_double) cast.steps.push_back({Step::Kind::kRound});
  return cast;
}

// ---- Layers

NetworkBuilder::Symbol NetworkBuilder::dense(const OnnxNode& node) {
  const Matrix& from = matrix(node, 0);
  const OnnxTensor& weights = constant(node, 1);
  const OnnxTensor& bias = constant(node, 2);
  const auto is_one = [&](const char* name) {
    const auto found = node.floats.find(name);
    return found == node.floats.end() || found->second == 1;
  };
  if (integer_or(node, "transB", 0) != 1 || integer_or(node, "transA", 0) != 0 ||
      !is_one("alpha") || !is_one("beta")) {
    refuse(node, "it is not a plain layer (transB 1, alpha and beta 1)");
  }
  if (weights.dims.size() != 2 || weights.floats.empty() ||
      weights.dims[1] != static_cast<std::int64_t>(from.width) ||
      static_cast<std::int64_t>(bias.floats.size()) != weights.dims[0]) {
    refuse(node, "its weights and bias do not fit what it is given");
  }
  return layer({.kind = Layer::Kind::kDense,
                .source = from.begin,
                .width = static_cast<std::size_t>(weights.dims[0]),
                .inputs = from.width,
                .weights = weights.floats,
                .shifts = bias.floats});
}

NetworkBuilder::Symbol NetworkBuilder::normalisation(const OnnxNode& node) {
  const Matrix& from = matrix(node, 0);
  const auto found = node.floats.find("epsilon");
  const double epsilon = found == node.floats.end() ? 1e-5 : found->second;
  for (std::size_t i = 1; i <= 4; ++i) {
    if (constant(node, i).floats.size() != from.width) refuse(node, "it has not a number a column");
  }
  Layer scale{.kind = Layer::Kind::kScale, .source = from.begin, .width = from.width};
  for (std::size_t i = 0; i < from.width; ++i) {
    const double factor = constant(node, 1).at(i) / std::sqrt(constant(node, 4).at(i) + epsilon);
    scale.weights.push_back(static_cast<float>(factor));
    scale.shifts.push_back(
        static_cast<float>(constant(node, 2).at(i) - constant(node, 3).at(i) * factor));
  }
  return layer(std::move(scale));
}

// ---- Small parts

const NetworkBuilder::Symbol& NetworkBuilder::input(const OnnxNode& node, std::size_t i) const {
  if (i >= node.inputs.size()) refuse(node, "an input is missing");
  const auto found = symbols_.find(node.inputs[i]);
  if (found == symbols_.end()) refuse(node, fmt::format("'{}' is not known", node.inputs[i]));
  return found->second;
}

const OnnxTensor& NetworkBuilder::constant(const OnnxNode& node, std::size_t i) const {
  const auto* found = input_as<Constant>(node, i);
  if (found == nullptr) refuse(node, fmt::format("'{}' is not a constant", node.inputs[i]));
  return found->tensor;
}

double NetworkBuilder::scalar(const OnnxNode& node, std::size_t i) const {
  const OnnxTensor& found = constant(node, i);
  if (found.size() != 1) refuse(node, fmt::format("'{}' is not one number", node.inputs[i]));
  return found.at(0);
}

const NetworkBuilder::Matrix& NetworkBuilder::matrix(const OnnxNode& node, std::size_t i) const {
  const auto* found = input_as<Matrix>(node, i);
  if (found == nullptr) refuse(node, fmt::format("'{}' is not a matrix", node.inputs[i]));
  return *found;
}

std::int64_t NetworkBuilder::integer_or(const OnnxNode& node, const char* name,
                                        std::int64_t fallback) {
  const auto found = node.integers.find(name);
  return found == node.integers.end() ? fallback : found->second;
}

NetworkBuilder::Matrix NetworkBuilder::reserve(std::size_t width) {
  const Matrix matrix{network_.columns_, width};
  network_.columns_ += width;
  if (network_.columns_ > kMaxNetworkColumns) {
    refuse({"the network", {}, {}, {}, {}, {}},
           fmt::format("it has more than {} columns", kMaxNetworkColumns));
  }
  return matrix;
}

NetworkBuilder::Matrix NetworkBuilder::layer(Layer layer) {
  const Matrix target = reserve(layer.width);
  layer.target = target.begin;
  network_.layers_.push_back(std::move(layer));
  return target;
}

void NetworkBuilder::refuse(const OnnxNode& node, const std::string& why) const {
  throw Error(ErrorCode::kBadInput,
              fmt::format("reading {}: {}{}: {}", what_, node.op,
                          node.outputs.empty() ? "" : " '" + node.outputs.front() + "'", why));
}

}  // namespace tune
