#include "core/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune {

namespace {

// First bytes of the MessagePack format (msgpack spec, "Formats").
enum Tag : std::uint8_t {
  kFixMap = 0x80,
  kFixArray = 0x90,
  kFixText = 0xa0,
  kNil = 0xc0,
  kFalse = 0xc2,
  kTrue = 0xc3,
  kBin8 = 0xc4,
  kBin16 = 0xc5,
  kBin32 = 0xc6,
  kFloat32 = 0xca,
  kFloat64 = 0xcb,
  kUint8 = 0xcc,
  kUint16 = 0xcd,
  kUint32 = 0xce,
  kUint64 = 0xcf,
  kInt8 = 0xd0,
  kInt16 = 0xd1,
  kInt32 = 0xd2,
  kInt64 = 0xd3,
  kText8 = 0xd9,
  kText16 = 0xda,
  kText32 = 0xdb,
  kArray16 = 0xdc,
  kArray32 = 0xdd,
  kMap16 = 0xde,
  kMap32 = 0xdf,
};

[[noreturn]] void malformed(std::string_view what, std::size_t position) {
  throw Error(ErrorCode::kProtocol,
              fmt::format("reading a message: {} at byte {}: it is damaged, or of another version "
                          "of tune",
                          what, position));
}

template <class T>
T big_endian(T value) {  // and back
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  return value;
}

}  // namespace

namespace detail {

void bad_message(const char* what, std::uint64_t found, std::uint64_t allowed) {
  throw Error(ErrorCode::kProtocol,
              fmt::format("reading a message: {} {} does not fit {}: it is damaged, or of another "
                          "version of tune",
                          what, found, allowed));
}

void other_contract(const char* name, std::uint32_t found, std::uint32_t spoken) {
  throw Error(ErrorCode::kProtocol,
              fmt::format("the other side speaks version {} of {}, this program version {}: build "
                          "both against the same version of tune",
                          found, name, spoken));
}

}  // namespace detail

// ---- Writing ------------------------------------------------------------------------------------

template <class T>
void PackWriter::put(std::uint8_t tag, T value) {
  value = big_endian(value);
  char* const at = room(1 + sizeof(T));
  *at = static_cast<char>(tag);
  std::memcpy(at + 1, &value, sizeof(T));
}

// Of a large message not all that is reserved is touched before it is written.
void PackWriter::grow(std::size_t count) {
  constexpr std::size_t kTouched = 64 * 1024;
  const std::size_t wanted = size_ + count;
  if (wanted > out_.capacity()) out_.reserve(std::max(2 * out_.capacity(), wanted));
  out_.resize(std::min(out_.capacity(), wanted + kTouched));
}

std::string PackWriter::take() {
  out_.resize(std::exchange(size_, 0));
  return std::exchange(out_, {});
}

void PackWriter::raw(std::string_view packed) {
  if (!packed.empty()) std::memcpy(room(packed.size()), packed.data(), packed.size());
}

void PackWriter::null() {
  byte(kNil);
}
void PackWriter::boolean(bool value) {
  byte(value ? kTrue : kFalse);
}

void PackWriter::unsigned_integer(std::uint64_t value) {
  if (value < 0x80) {
    byte(static_cast<std::uint64_t>(value));
  } else if (value <= 0xff) {
    put(kUint8, static_cast<std::uint8_t>(value));
  } else if (value <= 0xffff) {
    put(kUint16, static_cast<std::uint16_t>(value));
  } else if (value <= 0xffffffff) {
    put(kUint32, static_cast<std::uint32_t>(value));
  } else {
    put(kUint64, value);
  }
}

void PackWriter::integer(std::int64_t value) {
  if (value >= 0) {
    unsigned_integer(static_cast<std::uint64_t>(value));
  } else if (value >= -32) {
    byte(static_cast<std::uint64_t>(value));
  } else if (value >= INT8_MIN) {
    put(kInt8, static_cast<std::uint8_t>(value));
  } else if (value >= INT16_MIN) {
    put(kInt16, static_cast<std::uint16_t>(value));
  } else if (value >= INT32_MIN) {
    put(kInt32, static_cast<std::uint32_t>(value));
  } else {
    put(kInt64, static_cast<std::uint64_t>(value));
  }
}

void PackWriter::number(double value) {
  put(kFloat64, std::bit_cast<std::uint64_t>(value));
}

void PackWriter::text(std::string_view value) {
  if (value.size() < 32) {
    byte(kFixText | value.size());
  } else if (value.size() <= 0xff) {
    put(kText8, static_cast<std::uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    put(kText16, static_cast<std::uint16_t>(value.size()));
  } else {
    put(kText32, static_cast<std::uint32_t>(value.size()));
  }
  raw(value);
}

void PackWriter::binary(std::string_view value) {
  if (value.size() <= 0xff) {
    put(kBin8, static_cast<std::uint8_t>(value.size()));
  } else if (value.size() <= 0xffff) {
    put(kBin16, static_cast<std::uint16_t>(value.size()));
  } else {
    put(kBin32, static_cast<std::uint32_t>(value.size()));
  }
  raw(value);
}

void PackWriter::array(std::size_t size) {
  if (size < 16) {
    byte(kFixArray | size);
  } else if (size <= 0xffff) {
    put(kArray16, static_cast<std::uint16_t>(size));
  } else {
    put(kArray32, static_cast<std::uint32_t>(size));
  }
}

void PackWriter::map(std::size_t size) {
  if (size < 16) {
    byte(kFixMap | size);
  } else if (size <= 0xffff) {
    put(kMap16, static_cast<std::uint16_t>(size));
  } else {
    put(kMap32, static_cast<std::uint32_t>(size));
  }
}

void PackWriter::value(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNull:
      return null();
    case Value::Type::kBool:
      return boolean(value.boolean());
    case Value::Type::kInt:
      return integer(value.integer());
    case Value::Type::kFloat:
      return number(value.number());
    case Value::Type::kString:
      return text(value.string());
    case Value::Type::kList:
      array(value.list().size());
      for (const Value& item : value.list()) this->value(item);
      return;
    case Value::Type::kMap:
      map(value.map().size());
      for (const Member& member : value.map()) {
        text(member.key);
        this->value(member.value);
      }
      return;
  }
}

// ---- Reading ------------------------------------------------------------------------------------

inline std::string_view PackReader::take(std::size_t count) {
  if (count > bytes_.size() - position_) malformed("it ends too early", position_);
  const std::string_view taken(bytes_.data() + position_, count);
  position_ += count;
  return taken;
}

inline std::uint8_t PackReader::byte() {
  if (at_end()) malformed("it ends too early", position_);
  return static_cast<std::uint8_t>(bytes_[position_++]);
}

template <class T>
T PackReader::fixed() {
  T value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return big_endian(value);
}

std::size_t PackReader::length(std::size_t bytes) {
  if (bytes == 1) return byte();
  return bytes == 2 ? fixed<std::uint16_t>() : fixed<std::uint32_t>();
}

namespace {

constexpr std::optional<PackReader::Type> type_of(std::uint8_t tag) {
  using Type = PackReader::Type;
  if (tag < 0x80 || tag >= 0xe0 || (tag >= kUint8 && tag <= kInt64)) return Type::kInt;
  if (tag < kFixArray) return Type::kMap;
  if (tag < kFixText) return Type::kArray;
  if (tag < kNil || (tag >= kText8 && tag <= kText32)) return Type::kText;
  if (tag == kNil) return Type::kNull;
  if (tag == kFalse || tag == kTrue) return Type::kBool;
  if (tag >= kBin8 && tag <= kBin32) return Type::kBinary;
  if (tag == kFloat32 || tag == kFloat64) return Type::kFloat;
  if (tag == kArray16 || tag == kArray32) return Type::kArray;
  if (tag == kMap16 || tag == kMap32) return Type::kMap;
  return std::nullopt;
}

constexpr auto kTypes = [] {
  std::array<std::optional<PackReader::Type>, 256> types;
  for (std::size_t tag = 0; tag < types.size(); ++tag) {
    types[tag] = type_of(static_cast<std::uint8_t>(tag));
  }
  return types;
}();

// The bytes of a value whose tag alone says them; 0 for others.
constexpr auto kSizes = [] {
  std::array<std::uint8_t, 256> sizes{};
  for (std::size_t tag = 0; tag < 0x80; ++tag) sizes[tag] = 1;
  for (std::size_t tag = 0xe0; tag < 0x100; ++tag) sizes[tag] = 1;
  for (std::uint8_t length = 0; length < 0x20; ++length) sizes[kFixText + length] = 1 + length;
  sizes[kNil] = sizes[kFalse] = sizes[kTrue] = 1;
  sizes[kUint8] = sizes[kInt8] = 2;
  sizes[kUint16] = sizes[kInt16] = 3;
  sizes[kUint32] = sizes[kInt32] = sizes[kFloat32] = 5;
  sizes[kUint64] = sizes[kInt64] = sizes[kFloat64] = 9;
  return sizes;
}();

[[noreturn]] void unknown_type(std::uint8_t tag, std::size_t position) {
  malformed(fmt::format("unknown type {:#x}", tag), position);
}

}  // namespace

PackReader::Type PackReader::peek() const {
  if (at_end()) malformed("it ends too early", position_);
  const auto tag = static_cast<std::uint8_t>(bytes_[position_]);
  if (!kTypes[tag]) unknown_type(tag, position_);
  return *kTypes[tag];
}

void PackReader::null() {
  if (byte() != kNil) malformed("expected null", position_ - 1);
}

bool PackReader::boolean() {
  const auto tag = byte();
  if (tag != kTrue && tag != kFalse) malformed("expected a bool", position_ - 1);
  return tag == kTrue;
}

std::int64_t PackReader::integer() {
  const auto tag = byte();
  if (tag < 0x80) return tag;
  if (tag >= 0xe0) return static_cast<std::int8_t>(tag);
  switch (tag) {
    case kUint8:
      return byte();
    case kUint16:
      return fixed<std::uint16_t>();
    case kUint32:
      return fixed<std::uint32_t>();
    case kInt8:
      return static_cast<std::int8_t>(byte());
    case kInt16:
      return static_cast<std::int16_t>(fixed<std::uint16_t>());
    case kInt32:
      return static_cast<std::int32_t>(fixed<std::uint32_t>());
    case kInt64:
      return static_cast<std::int64_t>(fixed<std::uint64_t>());
    case kUint64: {
      const std::uint64_t value = fixed<std::uint64_t>();
      if (value > INT64_MAX) malformed("an integer above 2^63 - 1", position_ - 8);
      return static_cast<std::int64_t>(value);
    }
    default:
      malformed("expected an integer", position_ - 1);
  }
}

std::uint64_t PackReader::unsigned_integer() {
  if (!at_end() && static_cast<std::uint8_t>(bytes_[position_]) == kUint64) {
    take(1);
    return fixed<std::uint64_t>();
  }
  const std::int64_t value = integer();
  if (value < 0) malformed("a negative number", position_);
  return static_cast<std::uint64_t>(value);
}

double PackReader::number() {
  const Type type = peek();
  if (type == Type::kInt) return static_cast<double>(integer());
  if (type != Type::kFloat) malformed("expected a number", position_);
  const auto tag = byte();
  if (tag == kFloat64) return std::bit_cast<double>(fixed<std::uint64_t>());
  return std::bit_cast<float>(fixed<std::uint32_t>());
}

std::string_view PackReader::text() {
  const auto tag = byte();
  if (tag >= kFixText && tag < kNil) return take(tag & 0x1f);
  if (tag < kText8 || tag > kText32) malformed("expected text", position_ - 1);
  return take(length(std::size_t{1} << (tag - kText8)));
}

std::string_view PackReader::binary() {
  const auto tag = byte();
  if (tag < kBin8 || tag > kBin32) malformed("expected bytes", position_ - 1);
  return take(length(std::size_t{1} << (tag - kBin8)));
}

std::size_t PackReader::array() {
  const auto tag = byte();
  std::size_t size = tag & 0x0f;
  if (tag == kArray16 || tag == kArray32) {
    size = length(tag == kArray16 ? 2 : 4);
  } else if (tag < kFixArray || tag >= kFixText) {
    malformed("expected a list", position_ - 1);
  }
  if (size > bytes_.size() - position_) malformed("a list longer than the message", position_);
  return size;
}

std::size_t PackReader::map() {
  const auto tag = byte();
  std::size_t size = tag & 0x0f;
  if (tag == kMap16 || tag == kMap32) {
    size = length(tag == kMap16 ? 2 : 4);
  } else if (tag < kFixMap || tag >= kFixArray) {
    malformed("expected a map", position_ - 1);
  }
  if (size > (bytes_.size() - position_) / 2) {
    malformed("a map longer than the message", position_);
  }
  return size;
}

void PackReader::skip() {
  skip(0);
}

void PackReader::skip(int depth) {
  if (depth > kMaxNesting) malformed("nested too deeply", position_);
  if (at_end()) malformed("it ends too early", position_);
  const std::size_t size = kSizes[static_cast<std::uint8_t>(bytes_[position_])];
  if (size > 0) {
    take(size);
    return;
  }
  const Type type = peek();
  if (type == Type::kText) {
    text();
  } else if (type == Type::kBinary) {
    binary();
  } else {
    std::size_t left = type == Type::kMap ? 2 * map() : array();
    for (; left > 0; --left) skip(depth + 1);
  }
}

std::string_view PackReader::raw() {
  const std::size_t begin = position_;
  skip();
  return bytes_.substr(begin, position_ - begin);
}

Value PackReader::value() {
  return value(0);
}

Value PackReader::value(int depth) {
  if (depth > kMaxNesting) malformed("nested too deeply", position_);
  switch (peek()) {
    case Type::kNull:
      null();
      return {};
    case Type::kBool:
      return boolean();
    case Type::kInt:
      return integer();
    case Type::kFloat:
      return number();
    case Type::kText:
      return text();
    case Type::kBinary:
      malformed("bytes where a value should be", position_);
    case Type::kArray: {
      // The list grows as items come: to reserve what nested lists claim may take a thousand times
      // the size of the message.
      Value::List items;
      for (std::size_t left = array(); left > 0; --left) items.push_back(value(depth + 1));
      return Value::make_list(std::move(items));
    }
    case Type::kMap:
      break;
  }
  Value::Map members;
  for (std::size_t left = map(); left > 0; --left) {
    const std::string_view key = text();
    if (key.empty() || key.find('/') != std::string_view::npos) malformed("a bad key", position_);
    members.emplace_back(std::string(key), value(depth + 1));
  }
  return Value::make_map(std::move(members));
}

void PackReader::expect_end() const {
  if (!at_end()) malformed(fmt::format("{} bytes are left", bytes_.size() - position_), position_);
}

// ---- Payloads -----------------------------------------------------------------------------------

Packed pack(const Value& value) {
  PackWriter out;
  out.value(value);
  return {out.take()};
}

Value unpack(const Packed& packed) {
  PackReader in(packed.bytes);
  Value value = in.value();
  in.expect_end();
  return value;
}

namespace {

// Moves to the value at a key path; false when it is not there. Where the path's first key ends is
// seen by the key that it starts with: most paths are one key, and are read through for nothing.
bool seek(PackReader& in, std::string_view path) {
  const auto leads_with = [&path](std::string_view key) {
    const bool may_end =
        path.size() > key.size() ? path[key.size()] == '/' : path.size() == key.size();
    return may_end && path.starts_with(key);
  };
  while (true) {
    if (in.at_end() || in.peek() != PackReader::Type::kMap) return false;
    std::optional<std::string_view> found;
    for (std::size_t left = in.map(); left > 0 && !found; --left) {
      const std::string_view key = in.text();
      if (leads_with(key)) {
        found = key;
      } else {
        in.skip();
      }
    }
    if (!found || found->size() == path.size()) return found.has_value();
    path.remove_prefix(found->size() + 1);
  }
}

}  // namespace

// Each result is read in this way a few times: one function of all that it calls takes half as many
// instructions.
[[gnu::flatten]] std::optional<double> find_number(const Packed& packed,
                                                   std::string_view path) try {
  PackReader in(packed.bytes);
  if (!seek(in, path)) return std::nullopt;
  const PackReader::Type type = in.peek();
  if (type != PackReader::Type::kInt && type != PackReader::Type::kFloat) return std::nullopt;
  return in.number();
} catch (const Error&) {
  return std::nullopt;  // a damaged payload has no numbers
}

}  // namespace tune
