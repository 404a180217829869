#include "tune/spec/yaml_tree.h"

#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/yaml_nodes.h"

namespace tune {

namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";
constexpr const char* kMerge = "<<";

// ---- Scalars ----

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

std::size_t digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

std::int64_t whole_number(std::string_view text, int base, const std::string& written) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} does not fit a whole number of 64 bits: quote it "
                          "for a text, or write {}.0 for a float",
                          written, written));
}

// 0o17, 0xff: without sign. Nothing when it is not of this kind.
std::optional<std::int64_t> prefixed_number(const std::string& text) {
  if (text.size() < 3 || text[0] != '0' || (text[1] != 'o' && text[1] != 'x')) return std::nullopt;
  const bool octal = text[1] == 'o';
  const char* allowed = octal ? "01234567" : "0123456789abcdefABCDEF";
  if (text.find_first_not_of(allowed, 2) != std::string::npos) return std::nullopt;
  return whole_number(std::string_view(text).substr(2), octal ? 8 : 16, text);
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
std::optional<Value> decimal_number(const std::string& text) {
  const bool has_sign = text[0] == '-' || text[0] == '+';
  std::string_view rest = std::string_view(text).substr(has_sign ? 1 : 0);
  const std::size_t before = digits(rest);
  rest.remove_prefix(before);
  if (before > 0 && rest.empty()) {
    return Value(whole_number(std::string_view(text).substr(text[0] == '+' ? 1 : 0), 10, text));
  }
  if (rest.starts_with('.')) {
    const std::size_t after = digits(rest.substr(1));
    if (before + after == 0) return std::nullopt;
    rest.remove_prefix(1 + after);
  } else if (before == 0) {
    return std::nullopt;
  }
  if (!rest.empty()) {
    if (rest[0] != 'e' && rest[0] != 'E') return std::nullopt;
    rest.remove_prefix(1);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    if (rest.empty() || digits(rest) != rest.size()) return std::nullopt;
  }
  double value = 0;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return Value(value);
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} is out of the range of floats: quote it for a text", text));
}

// ---- From nodes to a Value ----

class TreeBuilder {
 public:
  TreeBuilder(const YamlRules& rules, YamlTree& tree, std::vector<Complaint>& complaints)
      : rules_(rules), tree_(tree), complaints_(complaints) {}

  Value build(const YamlNode& node, const std::string& path, int depth);

 private:
  // One entry of a map, its merge keys resolved.
  struct Entry {
    const YamlNode* key;
    const YamlNode* value;
  };

  Value build_scalar(const YamlNode& node, const std::string& path);
  Value build_list(const YamlNode& node, const std::string& path, int depth);
  Value build_map(const YamlNode& node, const std::string& path, int depth);
  std::vector<Entry> entries(const YamlNode& map, const std::string& path, int depth);
  void merge(const YamlNode& source, const std::string& path, int depth, std::vector<Entry>& into,
             std::set<std::string>& seen);
  bool is_good_key(const YamlNode& key, const std::string& path);
  bool spend(int line);

  void complain(int line, std::string path, std::string message) {
    complaints_.push_back({.path = std::move(path), .line = line, .message = std::move(message)});
  }

  const YamlRules& rules_;
  YamlTree& tree_;
  std::vector<Complaint>& complaints_;
  std::size_t nodes_ = 0;
};

// Counts one node; false when there are too many.
bool TreeBuilder::spend(int line) {
  if (nodes_ > kMaxYamlNodes) return false;
  if (++nodes_ <= kMaxYamlNodes) return true;
  complain(line, "", fmt::format("holds more than {} values, aliases expanded", kMaxYamlNodes));
  return false;
}

Value TreeBuilder::build(const YamlNode& node, const std::string& path, int depth) {
  if (!spend(node.line)) return {};
  if (depth > kMaxNesting) {
    complain(node.line, path, fmt::format("is nested deeper than {} levels", kMaxNesting));
    return {};
  }
  const bool is_standard =
      node.tag.starts_with(kTagPrefix) || node.tag == "?" || node.tag == "!" || node.tag.empty();
  if (!is_standard) {
    complain(node.line, path, fmt::format("unknown tag {}: remove it", node.tag));
    return {};
  }
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return {};
    case YamlNode::Kind::kScalar:
      return build_scalar(node, path);
    case YamlNode::Kind::kList:
      return build_list(node, path, depth);
    case YamlNode::Kind::kMap:
      return build_map(node, path, depth);
  }
  return {};
}

Value TreeBuilder::build_scalar(const YamlNode& node, const std::string& path) {
  if (node.tag == "!") return node.text;
  try {
    const Value plain = yaml_scalar(node.text);
    if (node.tag == "?") return rules_.is_text(path) && !plain.is_null() ? Value(node.text) : plain;
    const std::string_view tag = std::string_view(node.tag).substr(kTagPrefix.size());
    using Type = Value::Type;
    if (tag == "str") return node.text;
    if (tag == "float" && plain.is_number()) return plain.number();
    if ((tag == "int" && plain.type() == Type::kInt) || (tag == "null" && plain.is_null()) ||
        (tag == "bool" && plain.type() == Type::kBool)) {
      return plain;
    }
    complain(node.line, path, fmt::format("'{}' is not a value of !!{}", node.text, tag));
  } catch (const Error& error) {
    if (rules_.is_text(path)) return node.text;
    complain(node.line, path, error.what());
  }
  return {};
}

Value TreeBuilder::build_list(const YamlNode& node, const std::string& path, int depth) {
  Value::List items;
  for (const auto& child : node.children) {
    if (nodes_ > kMaxYamlNodes) break;
    const std::string item_path = join_path(path, std::to_string(items.size()));
    tree_.lines.emplace(item_path, child->line);
    items.push_back(build(*child, item_path, depth + 1));
  }
  return Value::make_list(std::move(items));
}

// Sets a value at a key path, joining maps; false when a value is there already.
bool put_at(Value& map, const std::string& path, Value value) {
  const Value* there = map.find(path);
  if (there == nullptr) {
    map.set(path, std::move(value));
    return true;
  }
  if (!there->is_map() || !value.is_map()) return false;
  bool all = true;
  for (Member& member : value.map()) {
    all = put_at(map, join_path(path, member.key), std::move(member.value)) && all;
  }
  return all;
}

Value TreeBuilder::build_map(const YamlNode& node, const std::string& path, int depth) {
  Value map = Value::make_map();
  const bool keys_are_paths = rules_.keys_are_paths(path);
  for (const Entry& entry : entries(node, path, depth)) {
    if (nodes_ > kMaxYamlNodes) break;
    const std::string& key = entry.key->text;
    const std::string key_path = join_path(path, key);
    tree_.lines.emplace(key_path, entry.key->line);
    Value value = build(*entry.value, key_path, depth + 1);
    if (!keys_are_paths) {
      map.map().emplace_back(key, std::move(value));
      continue;
    }
    try {
      if (!put_at(map, key, std::move(value))) {
        complain(entry.key->line, key_path, "is given twice: keep one");
      }
    } catch (const Error& error) {
      complain(entry.key->line, key_path, error.what());
    }
  }
  return map;
}

// The entries of a map in their order, merged entries after its own.
std::vector<TreeBuilder::Entry> TreeBuilder::entries(const YamlNode& map, const std::string& path,
                                                     int depth) {
  std::vector<Entry> found;
  std::map<std::string, int> own;  // with their lines
  std::vector<const YamlNode*> merged;
  for (std::size_t i = 0; i + 1 < map.children.size(); i += 2) {
    const YamlNode& key = *map.children[i];
    const YamlNode& value = *map.children[i + 1];
    if (key.kind == YamlNode::Kind::kScalar && key.tag == "?" && key.text == kMerge) {
      merged.push_back(&value);
    } else if (is_good_key(key, path)) {
      const auto [at, is_new] = own.emplace(key.text, key.line);
      if (is_new) {
        found.push_back({&key, &value});
      } else {
        complain(
            key.line, join_path(path, key.text),
            fmt::format("'{}' is given twice, first in line {}: keep one", key.text, at->second));
      }
    }
  }
  std::set<std::string> seen;
  for (const auto& [key, line] : own) seen.insert(key);
  for (const YamlNode* source : merged) merge(*source, path, depth, found, seen);
  return found;
}

void TreeBuilder::merge(const YamlNode& source, const std::string& path, int depth,
                        std::vector<Entry>& into, std::set<std::string>& seen) {
  if (!spend(source.line)) return;
  if (source.kind == YamlNode::Kind::kList && depth <= kMaxNesting) {
    for (const auto& item : source.children) merge(*item, path, depth + 1, into, seen);
    return;
  }
  if (source.kind != YamlNode::Kind::kMap || depth > kMaxNesting) {
    complain(source.line, join_path(path, kMerge),
             "only maps can be merged: write <<: *name of a map");
    return;
  }
  for (const Entry& entry : entries(source, path, depth + 1)) {
    if (spend(entry.key->line) && seen.insert(entry.key->text).second) into.push_back(entry);
  }
}

bool TreeBuilder::is_good_key(const YamlNode& key, const std::string& path) {
  if (key.kind != YamlNode::Kind::kScalar || key.text.empty()) {
    complain(key.line, path, "a key must be a text that is not empty");
    return false;
  }
  if (key.text.find('/') == std::string::npos || rules_.keys_are_paths(path)) return true;
  std::string nested = key.text;
  std::string closing;
  for (std::size_t at = nested.find('/'); at != std::string::npos; at = nested.find('/', at)) {
    nested.replace(at, 1, ": {");
    closing += '}';
  }
  complain(key.line, join_path(path, key.text),
           fmt::format("a key holds no '/': write nested maps, {}: ...{}", nested, closing));
  return false;
}

}  // namespace

Value yaml_scalar(const std::string& text) {
  if (is_any_of(text, {"", "~", "null", "Null", "NULL"})) return {};
  if (is_any_of(text, {"true", "True", "TRUE"})) return true;
  if (is_any_of(text, {"false", "False", "FALSE"})) return false;
  if (is_any_of(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  const bool has_sign = text[0] == '-' || text[0] == '+';
  if (is_any_of(std::string_view(text).substr(has_sign ? 1 : 0), {".inf", ".Inf", ".INF"})) {
    const double infinity = std::numeric_limits<double>::infinity();
    return text[0] == '-' ? -infinity : infinity;
  }
  if (const auto number = prefixed_number(text)) return *number;
  if (const auto number = decimal_number(text)) return *number;
  return text;
}

YamlTree parse_yaml(std::string_view text, const std::string& at, const YamlRules& rules,
                    std::vector<Complaint>& complaints) {
  YamlTree tree;
  if (text.size() > kMaxYamlBytes) {
    complaints.push_back({.path = at,
                          .message = fmt::format("is {} bytes long, more than the {} allowed",
                                                 text.size(), kMaxYamlBytes)});
    return tree;
  }
  try {
    const auto root = read_yaml_nodes(text);
    if (root) tree.value = TreeBuilder(rules, tree, complaints).build(*root, at, 0);
  } catch (const YamlProblem& problem) {
    complaints.push_back({.path = at, .line = problem.line, .message = problem.message});
  }
  return tree;
}

}  // namespace tune
