#include "tune/simulate/onnx_graph.h"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

static_assert(std::endian::native == std::endian::little, "raw tensors are little-endian");

constexpr std::size_t kMaxNodes = 10'000;
constexpr std::size_t kMaxNames = 1'000;  // inputs and outputs of one node, or of the graph
constexpr std::size_t kMaxConstants = 10'000;
constexpr std::size_t kMaxDims = 8;
constexpr std::size_t kMaxNameBytes = 1'000;
constexpr std::int64_t kMaxElements = 16 << 20;

enum class Wire : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One message of protobuf, field by field.
class Message {
 public:
  Message(std::string_view bytes, const std::string& what) : bytes_(bytes), what_(&what) {}

  // The next field's number; nothing: the message is over. Then its value, by one of those below.
  std::optional<std::uint32_t> next() {
    if (position_ == bytes_.size()) return std::nullopt;
    const std::uint64_t tag = varint();
    wire_ = static_cast<Wire>(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > 1u << 28) refuse("a field has no valid number");
    return static_cast<std::uint32_t>(tag >> 3);
  }
  std::string_view bytes() {
    expect(Wire::kBytes);
    return take(varint());
  }
  Message message() { return Message(bytes(), *what_); }
  std::string text() {
    const std::string_view found = bytes();
    if (found.size() > kMaxNameBytes) refuse(fmt::format("a name has {} bytes", found.size()));
    return std::string(found);
  }
  std::int64_t integer() {
    expect(Wire::kVarint);
    return static_cast<std::int64_t>(varint());
  }
  float number() {
    expect(Wire::kFixed32);
    return fixed<float>();
  }
  // A repeated number: each in a field of its own, or packed in one.
  void integers(std::vector<std::int64_t>& out, std::int64_t limit) {
    if (wire_ == Wire::kVarint) return add(out, integer(), limit);
    Message packed = message();
    while (packed.position_ < packed.bytes_.size()) {
      add(out, static_cast<std::int64_t>(packed.varint()), limit);
    }
  }
  template <class T>
  void fixed_numbers(std::vector<T>& out, std::int64_t limit) {
    if (wire_ != Wire::kBytes) {
      expect(sizeof(T) == 4 ? Wire::kFixed32 : Wire::kFixed64);
      return add(out, fixed<T>(), limit);
    }
    Message packed = message();
    while (packed.position_ < packed.bytes_.size()) add(out, packed.fixed<T>(), limit);
  }
  void skip() {
    switch (wire_) {
      case Wire::kVarint:
        varint();
        return;
      case Wire::kFixed64:
        take(8);
        return;
      case Wire::kBytes:
        bytes();
        return;
      case Wire::kFixed32:
        take(4);
        return;
    }
    refuse(fmt::format("a field has the unknown wire type {}", static_cast<int>(wire_)));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kBadInput,
                fmt::format("reading {}: it is not an ONNX file as expected: {}", *what_, why));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse("a number has more than ten bytes");
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - position_) {
      refuse(fmt::format("{} bytes are announced, {} are left", count, bytes_.size() - position_));
    }
    const std::string_view taken = bytes_.substr(position_, count);
    position_ += count;
    return taken;
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  template <class T>
  void add(std::vector<T>& out, T value, std::int64_t limit) const {
    if (static_cast<std::int64_t>(out.size()) >= limit) {
      refuse(fmt::format("a list has more than {} numbers", limit));
    }
    out.push_back(value);
  }
  void expect(Wire wire) const {
    if (wire_ != wire) refuse("a field has another type");
  }

  std::string_view bytes_;
  const std::string* what_;
  std::size_t position_ = 0;
  Wire wire_ = Wire::kVarint;
};

template <class T>
void limit(const Message& message, const T& list, std::size_t most, const char* of) {
  if (list.size() >= most) message.refuse(fmt::format("there are more than {} {}", most, of));
}

// ---- Tensors

// TensorProto's data types.
constexpr std::int64_t kFloat = 1;
constexpr std::int64_t kInt32 = 6;
constexpr std::int64_t kInt64 = 7;
constexpr std::int64_t kDouble = 11;

struct RawTensor {
  std::string name;
  std::int64_t type = 0;
  std::vector<std::int64_t> dims;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers;
  std::optional<std::string_view> raw;
};

RawTensor read_fields(Message message) {
  RawTensor tensor;
  while (const auto field = message.next()) {
    switch (*field) {
      case 1:
        message.integers(tensor.dims, kMaxDims);
        break;
      case 2:
        tensor.type = message.integer();
        break;
      case 4:
        message.fixed_numbers(tensor.floats, kMaxElements);
        break;
      case 5:
      case 7:
        message.integers(tensor.integers, kMaxElements);
        break;
      case 8:
        tensor.name = message.text();
        break;
      case 9:
        tensor.raw = message.bytes();
        break;
      case 10:
        message.fixed_numbers(tensor.doubles, kMaxElements);
        break;
      default:
        message.skip();
    }
  }
  return tensor;
}

template <class Stored, class T>
std::vector<T> from_raw(std::string_view raw) {
  std::vector<T> numbers(raw.size() / sizeof(Stored));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof value, sizeof value);
    numbers[i] = static_cast<T>(value);
  }
  return numbers;
}

std::pair<std::string, OnnxTensor> read_tensor(const Message& message) {
  RawTensor raw = read_fields(message);
  std::int64_t elements = 1;
  for (const std::int64_t dim : raw.dims) {
    if (dim < 0 || dim > kMaxElements || (elements *= dim) > kMaxElements) {
      message.refuse(fmt::format("the constant '{}' is too large", raw.name));
    }
  }
  OnnxTensor tensor;
  tensor.dims = std::move(raw.dims);
  switch (raw.type) {
    case kFloat:
      tensor.floats = raw.raw ? from_raw<float, float>(*raw.raw) : std::move(raw.floats);
      break;
    case kDouble:
      tensor.numbers = raw.raw ? from_raw<double, double>(*raw.raw) : std::move(raw.doubles);
      break;
    case kInt32:
    case kInt64:
      if (!raw.raw) {
        tensor.numbers.assign(raw.integers.begin(), raw.integers.end());
      } else if (raw.type == kInt32) {
        tensor.numbers = from_raw<std::int32_t, double>(*raw.raw);
      } else {
        tensor.numbers = from_raw<std::int64_t, double>(*raw.raw);
      }
      break;
    default:
      message.refuse(fmt::format("the constant '{}' has the data type {}, not one of numbers",
                                 raw.name, raw.type));
  }
  if (static_cast<std::int64_t>(tensor.size()) != elements) {
    message.refuse(fmt::format("the constant '{}' has {} numbers instead of {}", raw.name,
                               tensor.size(), elements));
  }
  return {std::move(raw.name), std::move(tensor)};
}

// ---- Nodes and graph

void read_attribute(Message message, OnnxNode& node) {
  std::string name;
  std::optional<std::int64_t> integer;
  std::optional<double> number;
  std::optional<OnnxTensor> tensor;
  while (const auto field = message.next()) {
    if (*field == 1) {
      name = message.text();
    } else if (*field == 2) {
      number = message.number();
    } else if (*field == 3) {
      integer = message.integer();
    } else if (*field == 5) {
      tensor = read_tensor(message.message()).second;
    } else {
      message.skip();
    }
  }
  if (integer) node.integers[name] = *integer;
  if (number) node.floats[name] = *number;
  if (tensor) node.tensors[name] = std::move(*tensor);
}

OnnxNode read_node(Message message) {
  OnnxNode node;
  while (const auto field = message.next()) {
    if (*field == 1 || *field == 2) {
      auto& names = *field == 1 ? node.inputs : node.outputs;
      limit(message, names, kMaxNames, "inputs or outputs of a node");
      names.push_back(message.text());
    } else if (*field == 4) {
      node.op = message.text();
    } else if (*field == 5) {
      read_attribute(message.message(), node);
    } else {
      message.skip();
    }
  }
  return node;
}

// Follows the fields of nested messages and gives the last one.
std::optional<Message> find_message(Message message, std::initializer_list<std::uint32_t> path) {
  for (const std::uint32_t wanted : path) {
    std::optional<Message> found;
    while (const auto field = message.next()) {
      if (*field == wanted) {
        found = message.message();
      } else {
        message.skip();
      }
    }
    if (!found) return std::nullopt;
    message = std::move(*found);
  }
  return message;
}

// ValueInfoProto: name 1, type 2 { tensor_type 1 { shape 2 { dim 1 { dim_value 1 } } } }.
OnnxInput read_input(Message message) {
  OnnxInput input;
  Message again(message);
  while (const auto field = message.next()) {
    if (*field == 1) {
      input.name = message.text();
    } else {
      message.skip();
    }
  }
  // The last dimension is the last of the repeated field.
  std::optional<Message> dim = find_message(again, {2, 1, 2, 1});
  if (!dim) return input;
  while (const auto field = dim->next()) {
    if (*field == 1) {
      input.width = dim->integer();
    } else {
      dim->skip();
    }
  }
  return input;
}

OnnxGraph read_graph(Message message) {
  OnnxGraph graph;
  while (const auto field = message.next()) {
    if (*field == 1) {
      limit(message, graph.nodes, kMaxNodes, "nodes");
      graph.nodes.push_back(read_node(message.message()));
    } else if (*field == 5) {
      limit(message, graph.constants, kMaxConstants, "constants");
      graph.constants.insert(read_tensor(message.message()));
    } else if (*field == 11) {
      limit(message, graph.inputs, kMaxNames, "inputs");
      graph.inputs.push_back(read_input(message.message()));
    } else if (*field == 12) {
      limit(message, graph.outputs, kMaxNames, "outputs");
      graph.outputs.push_back(read_input(message.message()).name);
    } else {
      message.skip();
    }
  }
  return graph;
}

}  // namespace

OnnxGraph parse_onnx(std::string_view bytes, const std::string& what) {
  Message model(bytes, what);
  if (bytes.size() > kMaxOnnxBytes) {
    model.refuse(fmt::format("it has {} bytes, more than {}", bytes.size(), kMaxOnnxBytes));
  }
  std::optional<OnnxGraph> graph;
  while (const auto field = model.next()) {
    if (*field == 7) {
      graph = read_graph(model.message());
    } else {
      model.skip();
    }
  }
  if (!graph || graph->nodes.empty()) model.refuse("it holds no network");
  return std::move(*graph);
}

}  // namespace tune
