#include "tune/view/config_forms.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "core/json.h"

namespace tune::view {

namespace {

// A word that YAML reads as this very text without quotes.
bool is_plain_yaml(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return false;
  for (const char letter : text) {
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '_') return false;
  }
  std::string lower(text);
  for (char& letter : lower)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  for (const char* word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}) {
    if (lower == word) return false;
  }
  return true;
}

std::string yaml_text(std::string_view text) {
  if (is_plain_yaml(text)) return std::string(text);
  std::string quoted;
  append_json_text(quoted, text);
  return quoted;
}

std::string yaml_leaf(const Value& value) {
  if (value.is_string()) return yaml_text(value.string());
  if (value.type() == Value::Type::kFloat && std::isinf(value.number())) {
    return value.number() > 0 ? ".inf" : "-.inf";
  }
  if (value.type() == Value::Type::kFloat && std::isnan(value.number())) return ".nan";
  if (!value.is_list()) return value.dump();
  std::string text = "[";
  for (const Value& item : value.list()) {
    if (text.size() > 1) text += ", ";
    text += item.is_map() ? item.dump() : yaml_leaf(item);
  }
  return text + "]";
}

void append_yaml(std::string& out, const Value& map, std::size_t indent) {
  for (const Member& member : map.map()) {
    out.append(indent, ' ').append(yaml_text(member.key)).append(":");
    if (member.value.is_map() && !member.value.map().empty()) {
      out += '\n';
      append_yaml(out, member.value, indent + 2);
    } else {
      out.append(" ").append(yaml_leaf(member.value)).append("\n");
    }
  }
}

// JSON's escapes are C++'s, but for \/ (not written) and \uXXXX below 0x20, which stands for itself
// in octal: three digits end it, whatever follows.
std::string cpp_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (letter == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      for (const int shift : {6, 3, 0}) {
        if (shift == 6) out += '\\';
        out += static_cast<char>('0' + ((byte >> shift) & 7));
      }
    } else {
      out += letter;
    }
  }
  return out + "\"";
}

std::string cpp_value(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNull:
      return "nullptr";
    case Value::Type::kString:
      return cpp_text(value.string());
    case Value::Type::kFloat:
      if (std::isnan(value.number())) return "std::nan(\"\")";
      if (std::isinf(value.number())) return value.number() > 0 ? "HUGE_VAL" : "-HUGE_VAL";
      return value.dump();
    case Value::Type::kList: {
      std::string text = "tune::list({";
      for (const Value& item : value.list()) {
        if (!text.ends_with('{')) text += ", ";
        text += cpp_value(item);
      }
      return text + "})";
    }
    case Value::Type::kMap: {
      if (value.map().empty()) return "tune::Value::make_map()";
      std::string text = "{";
      for (const Member& member : value.map()) {
        if (text.size() > 1) text += ", ";
        text += "{" + cpp_text(member.key) + ", " + cpp_value(member.value) + "}";
      }
      return text + "}";
    }
    default:
      return value.dump();
  }
}

}  // namespace

std::string as_yaml(const Value& config) {
  if (!config.is_map() || config.map().empty()) return "{}\n";
  std::string out;
  append_yaml(out, config, 0);
  return out;
}

std::string as_cpp(const Value& config) {
  if (!config.is_map() || config.map().empty()) return "tune::Config{}";
  return "tune::Config" + cpp_value(config);
}

}  // namespace tune::view
