// Value: a nested, ordered value (null, bool, integer, float, string, list, map); Config and Result
// are maps of them. Users read configurations from them and write results in them. Not a JSON
// document: text forms live in core/json.h, wire forms in core/wire.h.
//
// Key paths are written `model/layers`; keys hold no '/'. Maps keep the order of insertion.
// Every access error is a tune::Error (kBadInput) that names the path, the type found and the keys
// that are there, the nearest first. Plain values: copy freely, no thread safety of their own.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tune {

class Value;
struct Member;

template <class T>
inline constexpr bool kIsVector = false;
template <class T, class A>
inline constexpr bool kIsVector<std::vector<T, A>> = true;

// The types that become a Value implicitly: every integer type, float, double, bool, text and
// vectors of those. No pointer but text is among them, so a pointer never becomes a bool.
template <class T>
concept ValueLike =
    std::is_arithmetic_v<std::remove_cvref_t<T>> || std::convertible_to<T, std::string_view> ||
    std::same_as<std::remove_cvref_t<T>, std::nullptr_t> || kIsVector<std::remove_cvref_t<T>>;

class Value {
 public:
  enum class Type { kNull, kBool, kInt, kFloat, kString, kList, kMap };
  using List = std::vector<Value>;
  using Map = std::vector<Member>;

  Value() = default;
  template <ValueLike T>
  Value(T&& from);  // NOLINT: implicit on purpose
  // Braces of pairs are always a map: {{"train", 0.1}, {"test", 0.2}}.
  Value(std::initializer_list<Member> members);

  static Value make_list(List items);
  static Value make_map();
  static Value make_map(Map members);

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is_null() const { return type() == Type::kNull; }
  bool is_number() const { return type() == Type::kInt || type() == Type::kFloat; }
  bool is_map() const { return type() == Type::kMap; }
  bool is_list() const { return type() == Type::kList; }
  bool is_string() const { return type() == Type::kString; }

  // The value itself as T: bool, any integer (range checked; never from a float), float or double
  // (also from an integer), std::string, std::vector<U>, Value, Config. Throws Error.
  template <class T>
  T as() const {
    return convert<T>({});
  }
  // The value at a key path below this map, as T. Throws Error.
  template <class T>
  T get(std::string_view path) const {
    return at(path).template convert<T>(path);
  }
  // The same, or the fallback when the path is not there (a wrong type is still an error). A
  // literal gives std::string.
  template <class T>
  auto get_or(std::string_view path, T fallback) const {
    using Held = std::conditional_t<std::is_convertible_v<T, std::string_view>, std::string, T>;
    const Value* found = find(path);
    return found ? found->template convert<Held>(path) : Held(std::move(fallback));
  }
  const Value& at(std::string_view path) const;    // throws Error
  const Value* find(std::string_view path) const;  // nullptr when absent
  bool contains(std::string_view path) const { return find(path) != nullptr; }
  // Sets the value at a path, making the maps on the way. Throws Error on an empty key, or when
  // something that is not a map stands on the way.
  void set(std::string_view path, Value value);
  bool erase(std::string_view path);  // false when it was not there

  const List& list() const;  // TUNE_CHECK: is_list()
  const Map& map() const;    // TUNE_CHECK: is_map()
  List& list();
  Map& map();
  const std::string& string() const;  // TUNE_CHECK: is_string()
  bool boolean() const;               // TUNE_CHECK: a bool
  std::int64_t integer() const;       // TUNE_CHECK: an integer
  double number() const;              // TUNE_CHECK: is_number()

  // One line of JSON, keys in order, floats shortest that read back exactly; NaN null, infinities
  // "inf" and "-inf".
  std::string dump() const;

  // Same types and values, same order of keys (1 and 1.0 differ; NaN equals NaN).
  friend bool operator==(const Value& a, const Value& b);

  // Every leaf (anything but a non-empty map) with its path, in order. The pointers point into this
  // value, so a temporary value does not have this function.
  std::vector<std::pair<std::string, const Value*>> leaves() const&;
  std::vector<std::pair<std::string, const Value*>> leaves() const&& = delete;

 private:
  template <class T>
  T convert(std::string_view path) const;
  bool to_bool(std::string_view path) const;
  std::int64_t to_integer(std::string_view path, std::int64_t low, std::int64_t high) const;
  std::uint64_t to_unsigned(std::string_view path) const;
  double to_double(std::string_view path) const;
  const std::string& to_text(std::string_view path) const;
  const List& to_list(std::string_view path) const;
  const Value& to_map(std::string_view path) const;
  static std::int64_t from_unsigned(std::uint64_t value);  // Error above the int64 range

  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> data_;
};

const char* type_name(Value::Type type);  // "null", "bool", "integer", "float", "string", ...

// One key with its value. The key is not empty and holds no '/': Error otherwise.
struct Member {
  Member(std::string key, Value value);
  std::string key;
  Value value;
  friend bool operator==(const Member&, const Member&) = default;
};

// A list of any mix of values: tune::list({1, "a", 2.5}).
Value list(std::initializer_list<Value> items);

// A trial's configuration: a map. Reading works as in Value; within a function of a search space
// (tune::sample_from), a value that another function gives is computed before it is read.
class Config : public Value {
 public:
  Config() : Value(make_map()) {}
  Config(std::initializer_list<Member> members) : Value(members) {}
  explicit Config(Value map);  // Error when it is not a map

  template <class T>
  T get(std::string_view path) const {
    return ready(path).template get<T>(path);
  }
  template <class T>
  auto get_or(std::string_view path, T fallback) const {
    return ready(path).get_or(path, std::move(fallback));
  }
  const Value& at(std::string_view path) const { return ready(path).at(path); }
  const Value* find(std::string_view path) const { return ready(path).find(path); }
  bool contains(std::string_view path) const { return ready(path).contains(path); }
  const Map& map() const { return ready({}).map(); }
  Map& map() { return Value::map(); }
  std::string dump() const { return ready({}).dump(); }
  std::vector<std::pair<std::string, const Value*>> leaves() const& { return ready({}).leaves(); }
  std::vector<std::pair<std::string, const Value*>> leaves() const&& = delete;

 protected:
  // Called with a path before it is read (empty: the whole map). Copies do not take the hook along.
  struct Hook {
    std::function<void(std::string_view)> before_read;
    Hook() = default;
    Hook(const Hook&) noexcept {}
    Hook& operator=(const Hook&) noexcept { return *this; }
  };
  Hook hook_;

 private:
  const Value& ready(std::string_view path) const {
    if (hook_.before_read) hook_.before_read(path);
    return *this;
  }
};

// The report of a step: a map. `done: true` in it ends the trial.
class Result : public Value {
 public:
  Result() : Value(make_map()) {}
  Result(std::initializer_list<Member> members) : Value(members) {}
  explicit Result(Value map);  // Error when it is not a map
};

template <ValueLike T>
Value::Value(T&& from) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, std::nullptr_t>) {
    data_ = std::monostate{};
  } else if constexpr (std::is_same_v<Plain, bool>) {
    data_ = from;
  } else if constexpr (std::is_floating_point_v<Plain>) {
    data_ = static_cast<double>(from);
  } else if constexpr (std::is_integral_v<Plain> && std::is_signed_v<Plain>) {
    data_ = static_cast<std::int64_t>(from);
  } else if constexpr (std::is_integral_v<Plain>) {
    data_ = from_unsigned(from);
  } else if constexpr (kIsVector<Plain>) {
    List items;
    items.reserve(from.size());
    for (auto&& item : from) items.emplace_back(static_cast<typename Plain::value_type>(item));
    data_ = std::move(items);
  } else {
    data_ = std::string(std::string_view(from));
  }
}

template <class T>
T Value::convert(std::string_view path) const {
  if constexpr (std::is_same_v<T, bool>) {
    return to_bool(path);
  } else if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, unsigned long long>) {
    return static_cast<T>(to_unsigned(path));
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return static_cast<T>(to_integer(path, static_cast<std::int64_t>(Limits::min()),
                                     static_cast<std::int64_t>(Limits::max())));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(to_double(path));
  } else if constexpr (kIsVector<T>) {
    T items;
    for (const Value& item : to_list(path)) {
      items.push_back(item.convert<typename T::value_type>(path));
    }
    return items;
  } else if constexpr (std::is_same_v<T, Value>) {
    return *this;
  } else if constexpr (std::is_base_of_v<Value, T>) {
    return T(to_map(path));
  } else {
    static_assert(std::is_same_v<T, std::string>, "ask for a bool, number, text, vector or Config");
    return to_text(path);
  }
}

}  // namespace tune
