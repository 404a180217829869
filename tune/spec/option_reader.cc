#include "tune/spec/option_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/strings.h"

namespace tune {

namespace {

const Value& empty_map() {
  static const Value map = Value::make_map();
  return map;
}

}  // namespace

OptionReader::OptionReader(const Value& map, std::string path, std::vector<Complaint>& complaints)
    : map_(&map), path_(std::move(path)), complaints_(&complaints) {
  if (map.is_map()) return;
  complaints_->push_back(
      {.path = path_,
       .message = fmt::format("expected keys with values, found {}", describe_value(map))});
  map_ = &empty_map();
}

const Value* OptionReader::take(const char* key) {
  known_.emplace_back(key);
  for (const Member& member : map_->map()) {
    if (member.key != key) continue;
    if (!member.value.is_null()) return &member.value;
    complain(key, "has no value: give one, or remove the key to get the default");
  }
  return nullptr;
}

void OptionReader::read(const char* key, bool& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (found->type() != Value::Type::kBool) return wrong_type(key, "true or false", *found);
  target = found->boolean();
}

void OptionReader::read(const char* key, int& target) {
  std::optional<int> given;
  read(key, given);
  target = given.value_or(target);
}

void OptionReader::read(const char* key, std::optional<int>& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (found->type() != Value::Type::kInt) return wrong_type(key, "a whole number", *found);
  const std::int64_t wide = found->integer();
  if (!std::in_range<int>(wide)) return complain(key, fmt::format("{} is too large", wide));
  target = static_cast<int>(wide);
}

void OptionReader::read(const char* key, std::int64_t& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (found->type() != Value::Type::kInt) return wrong_type(key, "a whole number", *found);
  target = found->integer();
}

void OptionReader::read(const char* key, double& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (!found->is_number()) return wrong_type(key, "a number", *found);
  target = found->number();
}

void OptionReader::read(const char* key, std::optional<double>& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (!found->is_number()) return wrong_type(key, "a number", *found);
  target = found->number();
}

void OptionReader::read(const char* key, std::string& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (!found->is_string()) return wrong_type(key, "a text", *found);
  target = found->string();
}

void OptionReader::read(const char* key, std::vector<std::string>& target) {
  const Value* found = take(key);
  if (found == nullptr) return;
  if (!found->is_list()) return wrong_type(key, "a list of texts", *found);
  std::vector<std::string> texts;
  for (const Value& item : found->list()) {
    if (!item.is_string()) return wrong_type(key, "a list of texts", item);
    texts.push_back(item.string());
  }
  target = std::move(texts);
}

void OptionReader::finish() {
  for (const Member& member : map_->map()) {
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
    std::string hint = did_you_mean(member.key, known_);
    if (hint.empty()) hint = fmt::format("; known keys: {}", join(known_, ", "));
    complain(member.key, fmt::format("unknown key '{}'{}", member.key, hint));
  }
}

void OptionReader::complain(std::string_view key, std::string message) {
  complaints_->push_back({.path = path_of(key), .message = std::move(message)});
}

std::string OptionReader::path_of(std::string_view key) const {
  return join_path(path_, key);
}

void OptionReader::wrong_type(const char* key, const char* expected, const Value& found) {
  complain(key, fmt::format("expected {}, found {}", expected, describe_value(found)));
}

std::string describe_value(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNull:
      return "nothing";
    case Value::Type::kString:
      return fmt::format("the text '{}'", value.string());
    case Value::Type::kList:
      return "a list";
    case Value::Type::kMap:
      return "a map";
    default:
      return value.dump();
  }
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string near = nearest(wrong, known);
  return near.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", near);
}

std::string join_path(std::string_view parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}/{}", parent, key);
}

}  // namespace tune
