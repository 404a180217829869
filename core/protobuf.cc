#include "core/protobuf.h"

namespace tune {

bool ProtoReader::raw_varint(std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

std::optional<ProtoReader::Field> ProtoReader::next() {
  std::uint64_t key = 0;
  if (!raw_varint(key) || key >> 3 > 0x1fffffff) return std::nullopt;
  Field field{.number = static_cast<int>(key >> 3)};
  std::size_t size = 0;
  switch (key & 7) {
    case 0:
      if (!raw_varint(field.value)) return std::nullopt;
      return field;
    case 1:
      size = 8;
      break;
    case 2: {
      std::uint64_t length = 0;
      if (!raw_varint(length) || length > rest_.size()) return std::nullopt;
      field.text = rest_.substr(0, static_cast<std::size_t>(length));
      rest_.remove_prefix(field.text.size());
      return field;
    }
    case 5:
      size = 4;
      break;
    default:
      return std::nullopt;
  }
  if (rest_.size() < size) return std::nullopt;
  for (std::size_t i = 0; i < size; ++i) {
    field.value |= std::uint64_t{static_cast<unsigned char>(rest_[i])} << 8 * i;
  }
  rest_.remove_prefix(size);
  return field;
}

}  // namespace tune
