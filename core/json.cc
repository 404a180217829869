#include "core/json.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

void append_text(std::string& out, std::string_view text) {
  out += '"';
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, i - plain));
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out.append(text.substr(plain));
  out += '"';
}

void append_float(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "null";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    append_number(out, value);
  }
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
        out_ += fmt::format_int(value.integer()).c_str();
        break;
      case Value::Type::kFloat:
        append_float(out_, value.number());
        break;
      case Value::Type::kString:
        append_text(out_, value.string());
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
      append_text(out_, members[i].key);
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
  explicit Builder(std::string_view what) : what_(what) {}

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
    if (open_.back().find(key) != nullptr && key.find('/') == std::string::npos) {
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
                fmt::format("reading {}: no JSON at byte {}: {}", what_, position, error.what()));
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
    } else {
      open_.back().map().emplace_back(keys_.back(), std::move(value));
    }
    return true;
  }

  std::string_view what_;
  std::vector<Value> open_;
  std::vector<std::string> keys_;
  Value root_;
};

}  // namespace

void append_json(std::string& out, const Value& value) {
  Printer(out, -1).print(value, 0);
}

std::string to_json(const Value& value, int indent) {
  std::string out;
  Printer(out, indent).print(value, 0);
  return out;
}

Value parse_json(std::string_view text, std::string_view what) {
  Builder builder(what);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace tune
