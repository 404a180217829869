// The bytes of a protocol buffers message, field by field: what TensorBoard's files need of that
// format, without its compiler and library. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

class ProtoWriter {
 public:
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

  void varint(int field, std::uint64_t value) {
    key(field, 0);
    raw_varint(value);
  }
  void number(int field, double value) {
    key(field, 1);
    fixed(std::bit_cast<std::uint64_t>(value));
  }
  void number(int field, float value) {
    key(field, 5);
    fixed(std::bit_cast<std::uint32_t>(value));
  }
  void text(int field, std::string_view value) {  // bytes, or a message within
    key(field, 2);
    raw_varint(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtoWriter& value) { text(field, value.bytes_); }

 private:
  void key(int field, int type) { raw_varint(static_cast<std::uint64_t>(field) << 3 | type); }
  void raw_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <class T>
  void fixed(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) bytes_ += static_cast<char>(value >> 8 * i);
  }

  std::string bytes_;
};

// Reads the fields of a message in order.
class ProtoReader {
 public:
  struct Field {
    int number = 0;
    std::uint64_t value = 0;  // of a varint or a fixed number, its bits
    std::string_view text = {};
  };

  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}
  // Nothing at the end, and before bytes that are not a field.
  std::optional<Field> next();

 private:
  bool raw_varint(std::uint64_t& value);

  std::string_view rest_;
};

}  // namespace tune
