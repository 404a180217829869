#include "tune/spec/overrides.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/key_path.h"
#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

namespace {

bool is_text_option(std::string_view path) {
  for (const std::string_view key :
       {"name", "trainable", "plugin", "program", "python", "preload", "interpreter", "metric",
        "storage", "checkpoint_storage", "store"}) {
    if (path == key) return true;
  }
  return path.starts_with("env/") || path.starts_with("command/") ||
         path.starts_with("on_end/command/") || path == "on_end/webhook";
}

bool keys_are_paths(std::string_view path) {
  return path == "stop" || path.starts_with("stop/");
}

std::string first_key(std::string_view path) {
  return std::string(path.substr(0, path.find('/')));
}

// Makes room for `scheduler/asha/max_t`: `scheduler: asha` becomes a map, and another scheduler is
// dropped.
void name_one(Value& tree, const std::string& key, const std::string& name) {
  const Value* found = tree.find(key);
  if (found != nullptr && found->is_map() && found->map().size() == 1 &&
      found->map().front().key == name && found->map().front().value.is_map()) {
    return;
  }
  Value named = Value::make_map();
  named.set(name, Value::make_map());
  tree.set(key, std::move(named));
}

// Refuses `scheduler/max_t=9`, which lacks the name; true when the override can be applied.
bool check_named(Value& tree, const Override& override, std::vector<Complaint>& complaints) {
  const std::string key = first_key(override.path);
  if ((key != "scheduler" && key != "searcher") || override.path == key) return true;
  const std::string rest = override.path.substr(key.size() + 1);
  const std::string name = first_key(rest);
  if (name == rest && !override.value.is_map() && !override.value.is_null()) {
    complaints.push_back({.path = override.path,
                          .message = fmt::format("write {}/<its name>/{}=...", key, rest),
                          .option = override.option});
    return false;
  }
  name_one(tree, key, name);
  return true;
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
  return text;
}

// ---- Keys within the options of a choice ----

// The options of `{choice: [...]}`; null when it is anything else.
Value::List* options_in(Value& node) {
  if (!node.is_map() || node.map().size() != 1 || node.map().front().key != "choice")
    return nullptr;
  Value& options = node.map().front().value;
  return options.is_list() ? &options.list() : nullptr;
}

// The first choice that a path leads through, and the rest of the path; null: it leads through
// none.
Value* choice_on_the_way(Value& tree, std::string_view path, std::string_view& rest) {
  if (!path.starts_with("config/")) return nullptr;
  Value* node = &tree;
  for (rest = path; !rest.empty();) {
    const std::string key = first_key(rest);
    if (options_in(*node) != nullptr && key != "choice") return node;
    if (!node->is_map() || node->find(key) == nullptr) return nullptr;
    for (Member& member : node->map()) {
      if (member.key == key) node = &member.value;
    }
    rest.remove_prefix(std::min(rest.size(), key.size() + 1));
  }
  return nullptr;
}

// Sets what is at the path, of a choice in each option that has it; the number of places. Leaves
// the keys that were there instead in `known`.
int set_existing(Value& node, std::string_view path, const Value& value,
                 std::vector<std::string>& known) {
  const std::string key = first_key(path);
  if (Value::List* options = key == "choice" ? nullptr : options_in(node)) {
    int count = 0;
    for (Value& option : *options) count += set_existing(option, path, value, known);
    return count;
  }
  if (!node.is_map()) return 0;
  for (Member& member : node.map()) {
    if (member.key == "const" && node.map().size() == 1) {
      return set_existing(member.value, path, value, known);
    }
    known.push_back(member.key);
    if (member.key != key) continue;
    if (key.size() < path.size()) {
      return set_existing(member.value, path.substr(key.size() + 1), value, known);
    }
    member.value = value;
    return 1;
  }
  return 0;
}

void set_through_choice(Value& choice, std::string_view rest, const Override& override,
                        std::vector<Complaint>& complaints) {
  std::vector<std::string> known;
  if (set_existing(choice, rest, override.value, known) > 0) return;
  const std::string key = override.path.substr(override.path.rfind('/') + 1);
  const std::string above = override.path.substr(0, override.path.size() - rest.size() - 1);
  std::string hint = did_you_mean(key, known);
  if (hint.empty() && !known.empty()) hint = "; they have: " + join(known, ", ");
  complaints.push_back(
      {.path = override.path,
       .message = fmt::format("no option of the choice {} has '{}'{}", above, rest, hint),
       .option = override.option});
}

// A new key of the configuration is fine unless it looks like a slip of an existing one.
bool check_new_key(const Value& tree, const Override& override,
                   std::vector<Complaint>& complaints) {
  if (!override.path.starts_with("config/") || tree.contains(override.path)) return true;
  const std::size_t slash = override.path.rfind('/');
  const std::string parent = override.path.substr(0, slash);
  const std::string key = override.path.substr(slash + 1);
  const Value* map = tree.find(parent);
  if (map == nullptr || !map->is_map()) return true;
  std::vector<std::string> known;
  for (const Member& member : map->map()) {
    if (without_digits(member.key) != without_digits(key)) known.push_back(member.key);
  }
  const std::string near = nearest(key, known);
  if (near.empty()) return true;
  complaints.push_back(
      {.path = override.path,
       .message = fmt::format("there is no {} (did you mean {}/{}?); a new key with "
                              "such a name goes into the sweep itself",
                              override.path, parent, near),
       .option = override.option});
  return false;
}

void forget_below(std::map<std::string, int>& lines, const std::string& path) {
  lines.erase(path);
  const auto first = lines.lower_bound(path + "/");
  const auto last = lines.lower_bound(path + "0");  // '0' follows '/'
  lines.erase(first, last);
}

}  // namespace

const YamlRules& option_rules() {
  static const YamlRules rules{is_text_option, keys_are_paths};
  return rules;
}

namespace {

void parse_value(const std::string& option, const std::string& path, const std::string& value,
                 std::vector<Override>& overrides, std::vector<Complaint>& complaints) {
  std::vector<Complaint> found;
  YamlTree tree = parse_yaml(value, path, option_rules(), found);
  for (Complaint& complaint : found) {
    complaint.line = 0;
    complaint.option = option;
    complaints.push_back(std::move(complaint));
  }
  if (found.empty()) overrides.push_back({option, path, std::move(tree.value)});
}

}  // namespace

void parse_set(const std::string& text, std::vector<Override>& overrides,
               std::vector<Complaint>& complaints) {
  const std::string option = "--set " + text;
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  if (equals == std::string::npos || !is_key_path(path)) {
    complaints.push_back({.message = "write PATH=VALUE, as in config/lr=0.1", .option = option});
    return;
  }
  const std::string first = first_key(path);
  if (first.find('.') != std::string::npos) {  // no option has one
    std::string joined = first;
    std::replace(joined.begin(), joined.end(), '.', '/');
    complaints.push_back({.message = fmt::format("keys are joined by /: write {}{}", joined,
                                                 text.substr(first.size())),
                          .option = option});
    return;
  }
  parse_value(option, path, text.substr(equals + 1), overrides, complaints);
}

void parse_shorthand(const std::string& option, const std::string& path, const std::string& value,
                     std::vector<Override>& overrides, std::vector<Complaint>& complaints) {
  const std::string written = option + " " + value;
  // A seed above the integers is a text as well.
  if (option_rules().is_text(path) || path == "seed") {
    overrides.push_back({written, path, value});
  } else {
    parse_value(written, path, value, overrides, complaints);
  }
}

void apply_overrides(const std::vector<Override>& overrides, YamlTree& tree,
                     std::vector<Complaint>& complaints) {
  if (!tree.value.is_map()) return;
  for (const Override& override : overrides) {
    std::string_view rest;
    if (Value* choice = choice_on_the_way(tree.value, override.path, rest)) {
      set_through_choice(*choice, rest, override, complaints);
      continue;
    }
    if (!check_named(tree.value, override, complaints) ||
        !check_new_key(tree.value, override, complaints)) {
      continue;
    }
    try {
      tree.value.set(override.path, override.value);
      forget_below(tree.lines, override.path);
    } catch (const Error& error) {
      complaints.push_back(
          {.path = override.path, .message = error.what(), .option = override.option});
    }
  }
}

namespace {

// The newest option that names the path, or made a key below it when `below`; null: none.
const Override* override_of(const std::vector<Override>& overrides, const std::string& path,
                            bool below = false) {
  const auto found = std::find_if(overrides.rbegin(), overrides.rend(), [&](const Override& one) {
    return below ? one.path.starts_with(path + "/") : one.path == path;
  });
  return found == overrides.rend() ? nullptr : &*found;
}

// The path that --set takes for a place within an option: without choice/<index>.
std::string key_path_of(const std::string& path) {
  static const std::regex kOption("/choice/[0-9]+(?=/|$)");
  return std::regex_replace(path, kOption, "");
}

// The line or the option of the path itself or of the nearest key above it.
void place(const std::vector<Override>& overrides, const std::map<std::string, int>& lines,
           Complaint& complaint) {
  for (std::string path = complaint.path; !path.empty();) {
    const Override* set = override_of(overrides, path);
    if (set == nullptr) set = override_of(overrides, key_path_of(path));
    if (set != nullptr) {
      complaint.option = set->option;
      return;
    }
    if (const auto line = lines.find(path); line != lines.end()) {
      complaint.line = line->second;
      return;
    }
    const std::size_t slash = path.rfind('/');
    path = slash == std::string::npos ? "" : path.substr(0, slash);
  }
  // A key that only --set has, by a path that goes on below it: confg, of --set confg/lr=1.
  const Override* set = override_of(overrides, complaint.path, true);
  if (set != nullptr) complaint.option = set->option;
}

}  // namespace

void place_complaints(const std::vector<Override>& overrides,
                      const std::map<std::string, int>& lines, std::vector<Complaint>& complaints) {
  for (Complaint& complaint : complaints) {
    if (complaint.line != 0 || !complaint.option.empty()) continue;
    place(overrides, lines, complaint);
  }
}

}  // namespace tune
