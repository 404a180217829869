#include "core/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/quick_json.h"
#include "core/strings.h"

namespace tune {

namespace {

constexpr std::array<bool, 256> kPlainInJson = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}();

// Appends the escape of a byte that is not plain; moves `i` past it.
void append_escaped(std::string& out, std::string_view text, std::size_t& i) {
  const auto c = static_cast<unsigned char>(text[i]);
  if (c >= 0x80) {
    i += append_utf8(out, text.substr(i));
    return;
  }
  ++i;
  out += '\\';
  switch (c) {
    case '\n':
      out += 'n';
      return;
    case '\t':
      out += 't';
      return;
    case '\r':
      out += 'r';
      return;
    case '"':
    case '\\':
      out += static_cast<char>(c);
      return;
    default:
      constexpr char kHex[] = "0123456789abcdef";
      out.append("u00").append(1, kHex[c >> 4]).append(1, kHex[c & 15]);
  }
}

// Without the exception's number, and without a place that the byte tells as well.
std::string_view words_of(const nlohmann::detail::exception& error) {
  std::string_view words = error.what();
  if (words.starts_with('[')) words.remove_prefix(std::min(words.find("] ") + 2, words.size()));
  if (words.starts_with("parse error at line 1, ")) words.remove_prefix(words.find(": ") + 2);
  return words;
}

class Printer {
 public:
  Printer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void print(const Value& value, int depth) {
    switch (value.type()) {
      case Value::Type::kNull:
        out_ += "null";
        break;
      case Value::Type::kBool:
        out_ += value.boolean() ? "true" : "false";
        break;
      case Value::Type::kInt:
        append_integer(out_, value.integer());
        break;
      case Value::Type::kFloat:
        append_json_number(out_, value.number());
        break;
      case Value::Type::kString:
        append_json_text(out_, value.string());
        break;
      case Value::Type::kList:
        print_list(value.list(), depth);
        break;
      case Value::Type::kMap:
        print_map(value.map(), depth);
        break;
    }
  }

 private:
  void print_list(const Value::List& items, int depth) {
    out_ += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += indent_ < 0 ? "," : ", ";
      print(items[i], depth);  // lists stay on one line
    }
    out_ += ']';
  }
  void print_map(const Value::Map& members, int depth) {
    out_ += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += ',';
      new_line(depth + 1);
      append_json_text(out_, members[i].key);
      out_ += indent_ < 0 ? ":" : ": ";
      print(members[i].value, depth + 1);
    }
    if (!members.empty()) new_line(depth);
    out_ += '}';
  }
  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth), ' ');
  }

  std::string& out_;
  int indent_;
};

// Builds Values from the events of nlohmann's parser.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view what, bool keys_are_paths = false)
      : what_(what), keys_are_paths_(keys_are_paths) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Value::make_map()); }
  bool start_array(std::size_t) override { return open(Value::make_list({})); }
  bool key(string_t& key) override {
    keys_.back() = key;
    const bool is_path = key.find('/') != std::string::npos;
    if (open_.back().find(key) != nullptr && (keys_are_paths_ || !is_path)) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("reading {}: the key '{}' is there twice", what_, key));
    }
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    throw Error(ErrorCode::kBadInput,
                fmt::format("reading {}: no JSON at byte {}: {}", what_, position, words_of(error)));
  }

  Value take() { return std::move(root_); }

 private:
  bool open(Value empty) {
    if (open_.size() >= static_cast<std::size_t>(kMaxNesting)) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("reading {}: nested deeper than {} levels", what_, kMaxNesting));
    }
    open_.push_back(std::move(empty));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(done));
  }
  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_list()) {
      open_.back().list().push_back(std::move(value));
    } else if (keys_are_paths_ && keys_.back().find('/') != std::string::npos) {
      open_.back().set(keys_.back(), std::move(value));
    } else {
      open_.back().map().emplace_back(keys_.back(), std::move(value));
    }
    return true;
  }

  std::string_view what_;
  bool keys_are_paths_;
  std::vector<Value> open_;
  std::vector<std::string> keys_;
  Value root_;
};

// ---- Numbers that JSON has not ------------------------------------------------------------------

constexpr std::array<std::pair<std::string_view, double>, 3> kOddNumbers = {
    {{"NaN", std::numeric_limits<double>::quiet_NaN()},
     {"-Infinity", -std::numeric_limits<double>::infinity()},
     {"Infinity", std::numeric_limits<double>::infinity()}}};
constexpr std::string_view kNameMark("\0",
                                     1);  // before the name, in a text that stands for the number

// Each of them outside of texts becomes a text that no report has.
std::string with_marks(std::string_view text) {
  std::string marked;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto odd = std::ranges::find_if(
        kOddNumbers, [&](const auto& one) { return text.substr(i).starts_with(one.first); });
    if (!in_text && odd != kOddNumbers.end()) {
      marked.append("\"\\u0000").append(odd->first).append("\"");
      i += odd->first.size();
      continue;
    }
    if (in_text && text[i] == '\\') {
      marked += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_text = !in_text;
    marked += text[i++];
  }
  return marked;
}

void replace_marks(Value& value) {
  if (value.is_list()) {
    for (Value& item : value.list()) replace_marks(item);
  } else if (value.is_map()) {
    for (Member& member : value.map()) replace_marks(member.value);
  } else if (value.is_string() && value.string().starts_with(kNameMark)) {
    for (const auto& [name, number] : kOddNumbers) {
      if (std::string_view(value.string()).substr(1) == name) {
        value = number;
        return;
      }
    }
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (kPlainInJson[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    out.append(text, from, i - from);
    append_escaped(out, text, i);
    from = i;
  }
  out.append(text, from);
  out += '"';
}

void append_json_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "null";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    append_number(out, value);
  }
}

void append_json(std::string& out, const Value& value) {
  Printer(out, -1).print(value, 0);
}

std::string to_json(const Value& value, int indent) {
  std::string out;
  Printer(out, indent).print(value, 0);
  return out;
}

Value parse_json(std::string_view text, std::string_view what) {
  if (auto value = quick_json(text)) return std::move(*value);
  return parse_any_json(text, what);
}

Value parse_any_json(std::string_view text, std::string_view what) {
  Builder builder(what);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Result parse_report_json(std::string_view text, std::string_view what) {
  const bool has_odd = text.find("NaN") != std::string_view::npos ||
                       text.find("Infinity") != std::string_view::npos;
  const std::string marked = has_odd ? with_marks(text) : std::string();
  if (has_odd) text = marked;
  Builder builder(what, true);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  Value value = builder.take();
  if (has_odd) replace_marks(value);
  return Result(std::move(value));
}

}  // namespace tune
