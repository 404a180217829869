#include "core/value.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"

namespace tune {

namespace {

[[noreturn]] void wrong_type(std::string_view path, const char* wanted, const Value& found) {
  const std::string shown = path.empty() ? "the value" : fmt::format("'{}'", path);
  throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected {}, found {} {}", shown,
                                                wanted, type_name(found.type()), to_json(found)));
}

std::string keys_of(const Value& map, std::string_view wrong) {
  std::vector<std::string> keys;
  for (const Member& member : map.map()) keys.push_back(member.key);
  const std::string near = nearest(wrong, keys);
  if (!near.empty()) std::erase(keys, near), keys.insert(keys.begin(), near);
  return keys.empty() ? "it is empty" : "the keys there are: " + join(keys, ", ");
}

const Value* child(const Value& map, std::string_view key) {
  for (const Member& member : map.map()) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

}  // namespace

const char* type_name(Value::Type type) {
  constexpr const char* kNames[] = {"null", "bool", "integer", "float", "string", "list", "map"};
  return kNames[static_cast<int>(type)];
}

Member::Member(std::string key, Value value) : key(std::move(key)), value(std::move(value)) {
  if (this->key.empty() || this->key.find('/') != std::string::npos) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the key '{}' is empty or holds a '/': nest maps instead", this->key));
  }
}

Value::Value(std::initializer_list<Member> members) : data_(Map{}) {
  for (const Member& member : members) {
    if (contains(member.key)) {
      throw Error(ErrorCode::kBadInput, fmt::format("the key '{}' is given twice", member.key));
    }
    map().push_back(member);
  }
}

Value Value::make_list(List items) {
  Value value;
  value.data_ = std::move(items);
  return value;
}

Value Value::make_map() {
  return make_map(Map());
}

Value Value::make_map(Map members) {
  Value value;
  value.data_ = std::move(members);
  return value;
}

Value list(std::initializer_list<Value> items) {
  return Value::make_list(Value::List(items));
}

Config::Config(Value map) : Value(std::move(map)) {
  if (!is_map()) wrong_type({}, "a map", *this);
}

Result::Result(Value map) : Value(std::move(map)) {
  if (!is_map()) wrong_type({}, "a map", *this);
}

// ---- Access -------------------------------------------------------------------------------------

const Value* Value::find(std::string_view path) const {
  const Value* here = this;
  while (here->is_map()) {
    const std::size_t slash = path.find('/');
    here = child(*here, path.substr(0, slash));
    if (here == nullptr || slash == std::string_view::npos) return here;
    path.remove_prefix(slash + 1);
  }
  return nullptr;
}

const Value& Value::at(std::string_view path) const {
  const Value* here = this;
  std::string_view rest = path;
  while (true) {
    const std::string_view done = path.substr(0, path.size() - rest.size());
    const std::string_view walked = done.empty() ? done : done.substr(0, done.size() - 1);
    if (!here->is_map()) wrong_type(walked, "a map", *here);
    const std::size_t slash = rest.find('/');
    const std::string_view key = rest.substr(0, slash);
    const Value* next = child(*here, key);
    if (next == nullptr) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("there is no '{}'{}: {}", path,
                      walked.empty() ? "" : fmt::format(" in '{}'", walked), keys_of(*here, key)));
    }
    if (slash == std::string_view::npos) return *next;
    here = next;
    rest.remove_prefix(slash + 1);
  }
}

void Value::set(std::string_view path, Value value) {
  const std::size_t slash = path.find('/');
  const std::string_view key = path.substr(0, slash);
  if (is_null()) data_ = Map{};
  if (!is_map()) wrong_type(key, "a map above it", *this);
  auto found = std::find_if(map().begin(), map().end(),
                            [&](const Member& member) { return member.key == key; });
  if (found == map().end()) {
    map().push_back(Member(std::string(key), Value()));
    found = map().end() - 1;
  }
  if (slash == std::string_view::npos) {
    found->value = std::move(value);
  } else {
    found->value.set(path.substr(slash + 1), std::move(value));
  }
}

bool Value::erase(std::string_view path) {
  if (!is_map()) return false;
  const std::size_t slash = path.find('/');
  const std::string_view key = path.substr(0, slash);
  for (auto member = map().begin(); member != map().end(); ++member) {
    if (member->key != key) continue;
    if (slash != std::string_view::npos) return member->value.erase(path.substr(slash + 1));
    map().erase(member);
    return true;
  }
  return false;
}

const Value::List& Value::list() const {
  TUNE_CHECK(is_list());
  return std::get<List>(data_);
}
const Value::Map& Value::map() const {
  TUNE_CHECK(is_map());
  return std::get<Map>(data_);
}
Value::List& Value::list() {
  TUNE_CHECK(is_list());
  return std::get<List>(data_);
}
Value::Map& Value::map() {
  TUNE_CHECK(is_map());
  return std::get<Map>(data_);
}
const std::string& Value::string() const {
  TUNE_CHECK(is_string());
  return std::get<std::string>(data_);
}
bool Value::boolean() const {
  TUNE_CHECK(type() == Type::kBool);
  return std::get<bool>(data_);
}
std::int64_t Value::integer() const {
  TUNE_CHECK(type() == Type::kInt);
  return std::get<std::int64_t>(data_);
}
double Value::number() const {
  TUNE_CHECK(is_number());
  return type() == Type::kInt ? static_cast<double>(integer()) : std::get<double>(data_);
}

std::string Value::dump() const {
  return to_json(*this);
}

bool operator==(const Value& a, const Value& b) {
  if (a.type() == Value::Type::kFloat && b.type() == Value::Type::kFloat) {
    const double x = a.number();
    const double y = b.number();
    return x == y || (x != x && y != y);
  }
  return a.data_ == b.data_;
}

std::vector<std::pair<std::string, const Value*>> Value::leaves() const& {
  std::vector<std::pair<std::string, const Value*>> all;
  const auto walk = [&all](const Value& value, const std::string& path, const auto& self) -> void {
    for (const Member& member : value.map()) {
      const std::string below = path.empty() ? member.key : path + "/" + member.key;
      if (member.value.is_map() && !member.value.map().empty()) {
        self(member.value, below, self);
      } else {
        all.emplace_back(below, &member.value);
      }
    }
  };
  if (is_map()) walk(*this, {}, walk);
  return all;
}

// ---- Conversion ---------------------------------------------------------------------------------

bool Value::to_bool(std::string_view path) const {
  if (type() != Type::kBool) wrong_type(path, "a bool", *this);
  return boolean();
}

std::int64_t Value::to_integer(std::string_view path, std::int64_t low, std::int64_t high) const {
  if (type() != Type::kInt) wrong_type(path, "an integer", *this);
  if (integer() < low || integer() > high) {
    wrong_type(path, fmt::format("an integer from {} to {}", low, high).c_str(), *this);
  }
  return integer();
}

std::uint64_t Value::to_unsigned(std::string_view path) const {
  return static_cast<std::uint64_t>(to_integer(path, 0, std::numeric_limits<std::int64_t>::max()));
}

double Value::to_double(std::string_view path) const {
  if (!is_number()) wrong_type(path, "a number", *this);
  return number();
}

const std::string& Value::to_text(std::string_view path) const {
  if (!is_string()) wrong_type(path, "a string", *this);
  return string();
}

const Value::List& Value::to_list(std::string_view path) const {
  if (!is_list()) wrong_type(path, "a list", *this);
  return list();
}

const Value& Value::to_map(std::string_view path) const {
  if (!is_map()) wrong_type(path, "a map", *this);
  return *this;
}

std::int64_t Value::from_unsigned(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is above the largest integer, 2^63 - 1: write it as text", value));
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace tune
