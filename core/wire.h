// MessagePack for everything that crosses a process border or goes into the journal.
//
// A message is a plain struct with
//     template <class Self, class Fields>
//     static void fields(Self& self, Fields& f) { f(self.trial, self.attempt, ...); }
// and travels as an array of its fields in that order. Fields that joined later stand at the end,
// in f.added(s.reason, ...): where they are missing they keep their defaults, and fields that a
// reader does not know are skipped, so that a message grows without a new version; f.added_or(s.by,
// 3) is one that is 3 where it is missing. f.contract(s.version, kVersion, "the worker contract")
// is a first field that refuses a message of another version. Payloads (what a user reported) are
// nested MessagePack maps kept as bytes (`Packed`): written once in the worker, passed on unread,
// read by PackReader without building a tree. A std::variant of messages travels as [index,
// message].
//
// Everything read is bounded: nesting by kMaxNesting, every length by what is left of the input, a
// whole frame by kMaxFrameBytes. Reading something malformed throws Error (kProtocol).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/value.h"

namespace tune {

inline constexpr std::size_t kMaxFrameBytes = 16u << 20;

// One value in MessagePack form, kept as bytes.
struct Packed {
  std::string bytes;
  friend bool operator==(const Packed&, const Packed&) = default;
};

class PackWriter {
 public:
  PackWriter() = default;
  PackWriter(const PackWriter&) = default;  // and no move, which would leave a size without bytes
  PackWriter& operator=(const PackWriter&) = default;
  void null();
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(double value);
  void text(std::string_view value);
  void binary(std::string_view value);
  void array(std::size_t size);
  void map(std::size_t size);
  void value(const Value& value);
  void raw(std::string_view packed);  // already MessagePack

  std::string_view bytes() const { return {out_.data(), size_}; }
  std::string take();
  void clear() { size_ = 0; }
  void reserve(std::size_t bytes) { out_.reserve(bytes); }

 private:
  // So many bytes, to be written. Most values have a few bytes, for which a string's own functions
  // cost more than all else.
  char* room(std::size_t count) {
    if (out_.size() - size_ < count) grow(count);
    return out_.data() + std::exchange(size_, size_ + count);
  }
  void grow(std::size_t count);
  void byte(std::uint64_t value) { *room(1) = static_cast<char>(value); }
  template <class T>
  void put(std::uint8_t tag, T value);

  std::string out_;
  std::size_t size_ = 0;  // written
};

// A cursor over MessagePack bytes that it does not own.
class PackReader {
 public:
  enum class Type { kNull, kBool, kInt, kFloat, kText, kBinary, kArray, kMap };

  explicit PackReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return position_ == bytes_.size(); }
  Type peek() const;
  void null();
  bool boolean();
  std::int64_t integer();
  std::uint64_t unsigned_integer();
  double number();          // an integer is accepted
  std::string_view text();  // points into the input
  std::string_view binary();
  std::size_t array();     // number of items that follow
  std::size_t map();       // number of key and value pairs that follow
  void skip();             // one whole value
  std::string_view raw();  // the bytes of one whole value; moves past it
  Value value();
  void expect_end() const;  // Error when bytes are left

 private:
  std::uint8_t byte();
  std::string_view take(std::size_t count);
  template <class T>
  T fixed();
  std::size_t length(std::size_t bytes);
  void skip(int depth);
  Value value(int depth);

  std::string_view bytes_;
  std::size_t position_ = 0;
};

Packed pack(const Value& value);
Value unpack(const Packed& packed);  // Error (kProtocol)

// The number at a key path of a packed map; nothing when absent or not a number. No tree is built.
std::optional<double> find_number(const Packed& packed, std::string_view path);

// ---- Messages: encode and decode through their `fields` -----------------------------------------

template <class T>
void encode(PackWriter& out, const T& value);
template <class T>
void decode(PackReader& in, T& value);

namespace detail {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;
template <class T>
inline constexpr bool kIsDuration = false;
template <class R, class P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;
template <class T>
inline constexpr bool kIsStringMap = false;
template <class V>
inline constexpr bool kIsStringMap<std::map<std::string, V>> = true;

[[noreturn]] void bad_message(const char* what, std::uint64_t found, std::uint64_t allowed);

template <class T>
concept TaggedId = requires(T id) {
  { id.value } -> std::same_as<std::uint32_t&>;
}
&&sizeof(T) == sizeof(std::uint32_t);

[[noreturn]] void other_contract(const char* name, std::uint32_t found, std::uint32_t spoken);

struct FieldCounter {
  std::size_t required = 0;
  std::size_t all = 0;
  template <class... F>
  void operator()(F&...) {
    required += sizeof...(F);
    all += sizeof...(F);
  }
  template <class... F>
  void added(F&...) {
    all += sizeof...(F);
  }
  template <class F, class Missing>
  void added_or(F&, const Missing&) {
    ++all;
  }
  template <class F>
  void contract(F&, std::uint32_t, const char*) {
    ++required, ++all;
  }
};
struct FieldWriter {
  PackWriter& out;
  template <class... F>
  void operator()(F&... fields) {
    (encode(out, fields), ...);
  }
  template <class... F>
  void added(F&... fields) {
    (encode(out, fields), ...);
  }
  template <class F, class Missing>
  void added_or(F& field, const Missing&) {
    encode(out, field);
  }
  template <class F>
  void contract(F& version, std::uint32_t, const char*) {
    encode(out, version);
  }
};
struct FieldReader {
  PackReader& in;
  std::size_t left;
  template <class... F>
  void operator()(F&... fields) {
    (decode(in, fields), ...);
    left -= sizeof...(F);
  }
  template <class... F>
  void added(F&... fields) {
    ((left == 0 ? void() : (decode(in, fields), void(--left))), ...);
  }
  template <class F, class Missing>
  void added_or(F& field, const Missing& missing) {
    left == 0 ? void(field = missing) : added(field);
  }
  template <class F>
  void contract(F& version, std::uint32_t spoken, const char* name) {
    (*this)(version);
    if (version != spoken) other_contract(name, version, spoken);
  }
};

template <class Variant, std::size_t... I>
void decode_variant(PackReader& in, Variant& value, std::size_t index, std::index_sequence<I...>) {
  const bool known = ((index == I && (decode(in, value.template emplace<I>()), true)) || ...);
  if (!known) bad_message("message type", index, sizeof...(I));
}

}  // namespace detail

template <class T>
void encode(PackWriter& out, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    out.unsigned_integer(static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    out.number(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    out.unsigned_integer(value);
  } else if constexpr (std::is_integral_v<T>) {
    out.integer(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.text(value);
  } else if constexpr (std::is_same_v<T, Packed>) {
    out.binary(value.bytes);
  } else if constexpr (std::is_base_of_v<Value, T>) {
    out.value(value);
  } else if constexpr (detail::TaggedId<T>) {
    out.unsigned_integer(value.value);
  } else if constexpr (detail::kIsDuration<T>) {
    out.integer(value.count());
  } else if constexpr (detail::kIsOptional<T>) {
    value ? encode(out, *value) : out.null();
  } else if constexpr (kIsVector<T>) {
    out.array(value.size());
    for (const auto& item : value) encode(out, item);
  } else if constexpr (detail::kIsStringMap<T>) {
    out.map(value.size());
    for (const auto& [key, item] : value) out.text(key), encode(out, item);
  } else if constexpr (detail::kIsVariant<T>) {
    out.array(2);
    out.unsigned_integer(value.index());
    std::visit([&out](const auto& message) { encode(out, message); }, value);
  } else {
    detail::FieldCounter counter;
    T::fields(value, counter);
    out.array(counter.all);
    detail::FieldWriter writer{out};
    T::fields(value, writer);
  }
}

template <class T>
void decode(PackReader& in, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = in.boolean();
  } else if constexpr (std::is_enum_v<T>) {
    const std::uint64_t raw = in.unsigned_integer();  // every wire enum ends with kLast
    if (raw > static_cast<std::uint64_t>(T::kLast)) {
      detail::bad_message("enumerator", raw, static_cast<std::uint64_t>(T::kLast));
    }
    value = static_cast<T>(raw);
  } else if constexpr (std::is_floating_point_v<T>) {
    value = in.number();
  } else if constexpr (std::is_unsigned_v<T>) {
    const std::uint64_t raw = in.unsigned_integer();
    if (raw > std::numeric_limits<T>::max()) {
      detail::bad_message("number", raw, std::numeric_limits<T>::max());
    }
    value = static_cast<T>(raw);
  } else if constexpr (std::is_integral_v<T>) {
    const std::int64_t raw = in.integer();
    if (raw < std::numeric_limits<T>::min() || raw > std::numeric_limits<T>::max()) {
      detail::bad_message("number", static_cast<std::uint64_t>(raw), std::numeric_limits<T>::max());
    }
    value = static_cast<T>(raw);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = in.text();
  } else if constexpr (std::is_same_v<T, Packed>) {
    value.bytes = in.binary();
  } else if constexpr (std::is_base_of_v<Value, T>) {
    value = T(in.value());
  } else if constexpr (detail::TaggedId<T>) {
    decode(in, value.value);
  } else if constexpr (detail::kIsDuration<T>) {
    value = T(in.integer());
  } else if constexpr (detail::kIsOptional<T>) {
    if (in.peek() == PackReader::Type::kNull) {
      in.null();
      value.reset();
    } else {
      decode(in, value.emplace());
    }
  } else if constexpr (kIsVector<T>) {
    const std::size_t size = in.array();
    value.clear();
    for (std::size_t i = 0; i < size; ++i) {
      typename T::value_type item{};
      decode(in, item);
      value.push_back(std::move(item));
    }
  } else if constexpr (detail::kIsStringMap<T>) {
    const std::size_t size = in.map();
    value.clear();
    for (std::size_t i = 0; i < size; ++i) {
      std::string key(in.text());
      decode(in, value[std::move(key)]);
    }
  } else if constexpr (detail::kIsVariant<T>) {
    if (const std::size_t size = in.array(); size != 2) detail::bad_message("message", size, 2);
    detail::decode_variant(in, value, in.unsigned_integer(),
                           std::make_index_sequence<std::variant_size_v<T>>());
  } else {
    detail::FieldCounter counter;
    T::fields(value, counter);
    const std::size_t size = in.array();
    if (size < counter.required) detail::bad_message("number of fields", size, counter.required);
    detail::FieldReader reader{in, size};
    T::fields(value, reader);
    for (; reader.left > 0; --reader.left) in.skip();
  }
}

template <class T>
std::string encoded(const T& message) {
  PackWriter out;
  out.reserve(256);  // most messages are smaller
  encode(out, message);
  return out.take();
}

// Decodes exactly one message from the whole of `bytes`. Throws Error (kProtocol).
template <class T>
T decoded(std::string_view bytes) {
  if (bytes.size() > kMaxFrameBytes) detail::bad_message("bytes", bytes.size(), kMaxFrameBytes);
  PackReader in(bytes);
  T message{};
  decode(in, message);
  in.expect_end();
  return message;
}

}  // namespace tune
