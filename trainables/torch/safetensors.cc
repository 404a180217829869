#include "trainables/torch/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/error.h"
#include "core/json.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::int64_t kMaxHeader = 100'000'000;  // bytes; the limit of the format's own reader
constexpr std::int64_t kAlignment = 8;            // of the tensors' bytes, by blanks in the header
constexpr const char* kMetadata = "__metadata__";

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr std::array kTypes = {
    TypeName{at::kFloat, "F32"},
    TypeName{at::kDouble, "F64"},
    TypeName{at::kHalf, "F16"},
    TypeName{at::kBFloat16, "BF16"},
    TypeName{at::kLong, "I64"},
    TypeName{at::kInt, "I32"},
    TypeName{at::kShort, "I16"},
    TypeName{at::kChar, "I8"},
    TypeName{at::kByte, "U8"},
    TypeName{at::kBool, "BOOL"},
    TypeName{at::kFloat8_e4m3fn, "F8_E4M3"},
    TypeName{at::kFloat8_e5m2, "F8_E5M2"},
};

[[noreturn]] void unreadable(const fs::path& file, const std::string& cause) {
  throw Error(ErrorCode::kIo, "reading " + file.string() + ": " + cause);
}

const char* name_of(at::ScalarType type, const fs::path& file, const std::string& tensor) {
  for (const TypeName& known : kTypes) {
    if (known.type == type) return known.name;
  }
  std::ostringstream what;
  what << "writing " << file.string() << ": " << tensor << " is of type " << type
       << ", for which safetensors has no word";
  throw Error(ErrorCode::kBadInput, what.str());
}

Value::List shape_list(const at::Tensor& tensor) {
  Value::List shape;
  for (const std::int64_t size : tensor.sizes()) shape.emplace_back(size);
  return shape;
}

std::string header_of(const fs::path& file, const NamedTensors& tensors) {
  std::string header = "{";
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
    if (header.size() > 1) header += ",";
    append_json_text(header, name);
    header += ":";
    append_json(header, Value{{"dtype", name_of(tensor.scalar_type(), file, name)},
                              {"shape", Value::make_list(shape_list(tensor))},
                              {"data_offsets", Value::make_list({offset, offset + bytes})}});
    offset += bytes;
  }
  header += "}";
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return header;
}

// A tensor as the header describes it, checked against itself and the bytes there are.
struct Entry {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

Entry entry_of(const Value& said, std::int64_t bytes_there) {
  Entry entry;
  const auto word = said.get<std::string>("dtype");
  const auto* known = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeName& type) { return word == type.name; });
  if (known == kTypes.end()) throw Error(ErrorCode::kIo, "its type " + word + " is not known");
  entry.type = known->type;
  entry.bytes = static_cast<std::int64_t>(c10::elementSize(entry.type));
  entry.shape = said.get<std::vector<std::int64_t>>("shape");
  for (const std::int64_t size : entry.shape) {
    if (size < 0 || __builtin_mul_overflow(entry.bytes, size, &entry.bytes)) {
      throw Error(ErrorCode::kIo, "its shape has a size of " + std::to_string(size));
    }
  }
  const auto offsets = said.get<std::vector<std::int64_t>>("data_offsets");
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      offsets[1] > bytes_there) {
    throw Error(ErrorCode::kIo, "its data_offsets are not within the " +
                                    std::to_string(bytes_there) + " bytes there are");
  }
  entry.begin = offsets[0];
  if (offsets[1] - offsets[0] != entry.bytes) {
    throw Error(ErrorCode::kIo, "its shape takes " + std::to_string(entry.bytes) + " bytes, but " +
                                    std::to_string(offsets[1] - offsets[0]) + " are its own");
  }
  return entry;
}

}  // namespace

void write_safetensors(const fs::path& file, const NamedTensors& tensors) {
  const std::string header = header_of(file, tensors);
  const auto length = static_cast<std::uint64_t>(header.size());
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
    out.write(static_cast<const char*>(plain.const_data_ptr()),
              static_cast<std::streamsize>(plain.nbytes()));
  }
  out.close();
  if (!out) throw Error(ErrorCode::kIo, "cannot write " + file.string() + ": is the disk full");
}

NamedTensors read_safetensors(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in.is_open()) throw Error(ErrorCode::kIo, "cannot read " + file.string());
  const std::int64_t size = in.tellg();
  std::uint64_t length = 0;
  in.seekg(0);
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  const std::int64_t rest = size - static_cast<std::int64_t>(sizeof length);
  if (!in || length > kMaxHeader || static_cast<std::int64_t>(length) > rest) {
    unreadable(file, "it is cut, or no safetensors file");
  }
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  Value header;
  try {
    header = parse_json(text, file.string());
  } catch (const Error& error) {
    unreadable(file, std::string("its header: ") + error.what());
  }
  if (!header.is_map()) unreadable(file, "its header is not a map of tensors");

  const std::int64_t data = static_cast<std::int64_t>(sizeof length + length);
  NamedTensors tensors;
  for (const auto& [name, said] : header.map()) {
    if (name == kMetadata) continue;
    try {
      const Entry entry = entry_of(said, size - data);
      at::Tensor tensor = at::empty(entry.shape, entry.type);
      in.seekg(data + entry.begin);
      in.read(static_cast<char*>(tensor.mutable_data_ptr()), entry.bytes);
      if (!in) throw Error(ErrorCode::kIo, "its bytes cannot be read");
      tensors.emplace_back(name, std::move(tensor));
    } catch (const Error& error) {
      unreadable(file, name + ": " + error.what());
    }
  }
  return tensors;
}

}  // namespace tune
