#include "tune/spec/import/import_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/strings.h"
#include "tune/spec/option_reader.h"

namespace tune {

const Value* ImportReader::find(const std::string& path) const {
  const Value* here = &tree_.value;
  std::string_view rest = path;
  while (here != nullptr && !rest.empty()) {
    const std::string key(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(key.size() + 1, rest.size()));
    if (here->is_list()) {
      std::size_t index = 0;
      const auto done = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool is_index = done.ec == std::errc() && index < here->list().size();
      here = is_index ? &here->list()[index] : nullptr;
    } else {
      here = here->is_map() ? here->find(key) : nullptr;
    }
  }
  return here;
}

std::optional<std::string> ImportReader::text(const std::string& path) {
  const Value* found = find(path);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return found->string();
  refuse(path, fmt::format("expected a text, found {}", describe_value(*found)));
  return std::nullopt;
}

std::optional<double> ImportReader::number(const std::string& path) {
  const Value* found = find(path);
  if (found == nullptr) return std::nullopt;
  if (found->is_number()) return found->number();
  // Katib quotes its numbers.
  if (found->is_string()) {
    const Value read = found->string().empty() ? Value() : yaml_scalar(found->string());
    if (read.is_number()) return read.number();
  }
  refuse(path, fmt::format("expected a number, found {}", describe_value(*found)));
  return std::nullopt;
}

std::optional<std::int64_t> ImportReader::whole(const std::string& path) {
  const auto value = number(path);
  if (!value) return std::nullopt;
  if (std::floor(*value) == *value && std::abs(*value) < 9e15) {
    return static_cast<std::int64_t>(*value);
  }
  refuse(path, fmt::format("expected a whole number, found {}", *value));
  return std::nullopt;
}

void ImportReader::within_file(const std::string& path, const std::string& file,
                               const std::function<void(ImportReader& other)>& import) {
  const auto text = beside_(file);
  if (!text) return refuse(path, fmt::format("{} cannot be read: it is looked for beside this file",
                                             file));
  std::vector<Complaint> there;
  const YamlTree tree = parse_yaml(*text, "", YamlRules{}, there);
  ImportReader other(tree, out_, there, beside_);
  if (there.empty()) import(other);
  for (const Complaint& one : there) {
    const auto known = tree.lines.find(one.path);
    const int line = one.line != 0 || known == tree.lines.end() ? one.line : known->second;
    refuse(path, fmt::format("{}{}: {}{}", file, line > 0 ? fmt::format(":{}", line) : "",
                             one.path.empty() ? "" : one.path + ": ", one.message));
  }
}

void ImportReader::refuse(const std::string& path, std::string why) {
  complaints_.push_back({.path = path, .message = std::move(why)});
}

void ImportReader::note(const std::string& path, const std::string& text) {
  const auto line = tree_.lines.find(path);
  const std::string where = line == tree_.lines.end() ? "" : fmt::format("line {}: ", line->second);
  std::string note = path.empty() ? text : fmt::format("{}{}: {}", where, path, text);
  if (std::ranges::find(out_.notes, note) == out_.notes.end()) out_.notes.push_back(std::move(note));
}

void ImportReader::check_keys(const std::string& path, const std::vector<std::string>& known,
                              const std::vector<std::string>& ignored) {
  const Value* map = path.empty() ? &root() : find(path);
  if (map == nullptr) return;
  if (!map->is_map()) return refuse(path, "expected a map, found " + describe_value(*map));
  for (const Member& member : map->map()) {
    const std::string full = join_path(path, member.key);
    if (std::ranges::find(ignored, member.key) != ignored.end()) {
      note(full, "left out: it has no counterpart and does not change the search");
    } else if (std::ranges::find(known, member.key) == known.end()) {
      refuse(full, fmt::format("unknown key{}: remove it, or write the sweep by hand",
                               did_you_mean(member.key, known)));
    }
  }
}

void ImportReader::set_parameter(const std::string& name, Value value, const std::string& path) {
  const bool is_path = name.empty() || name.front() == '/' || name.back() == '/' ||
                       name.find("//") != std::string::npos;
  if (is_path) return refuse(path, fmt::format("'{}' cannot be a name: give it another", name));
  out_.sweep.set("config/" + name, std::move(value));
}

bool ImportReader::has_parameter(const std::string& name) const {
  const Value* config = out_.sweep.find("config");
  return config != nullptr && config->contains(name);
}

// ---- Domains ------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t kMaxListedValues = 1000;

}  // namespace

Value ImportReader::domain(const char* name, Value::List arguments) {
  Value value = Value::make_map();
  value.set(name, Value::make_list(std::move(arguments)));
  return value;
}

std::optional<Value> ImportReader::stepped(const std::string& path, const char* name, double low,
                                           double high, double q) {
  if (!(q > 0)) {
    refuse(path, fmt::format("the step {} is not above 0: correct it", q));
    return std::nullopt;
  }
  const auto is_multiple = [q](double value) {
    const double steps = value / q;
    return std::abs(steps - std::round(steps)) <= 1e-9 * std::max(1.0, std::abs(steps));
  };
  if (is_multiple(low) && is_multiple(high)) return domain(name, {low, high, q});
  refuse(path, fmt::format("the bounds {} and {} are not multiples of {}, to which draws are "
                           "rounded here: the nearest are {} and {}",
                           low, high, q, std::round(low / q) * q, std::round(high / q) * q));
  return std::nullopt;
}

std::optional<Value> ImportReader::whole_numbers(const std::string& path, std::int64_t low,
                                                 std::int64_t high, std::int64_t step) {
  if (step == 1) return domain("randint", {low, high + 1});
  if (step > 1 && low % step == 0 && high % step == 0) return domain("qrandint", {low, high, step});
  if (step < 1) {
    refuse(path, fmt::format("the step {} is not above 0: correct it", step));
    return std::nullopt;
  }
  // A list says exactly what is meant.
  if ((high - low) / step >= kMaxListedValues) {
    refuse(path, fmt::format("{} to {} are not multiples of the step {}: the nearest are {} and {}",
                             low, high, step, low / step * step, high / step * step));
    return std::nullopt;
  }
  Value::List values;
  for (std::int64_t value = low; value <= high; value += step) values.emplace_back(value);
  return domain("choice", std::move(values));
}

std::optional<Value> ImportReader::listed(const std::string& path, double low, double high,
                                          double step, bool are_whole) {
  if (!(step > 0) || high < low || (high - low) / step >= static_cast<double>(kMaxListedValues)) {
    refuse(path, fmt::format("a grid from {} to {} by {} has no values, or more than {}: list them",
                             low, high, step, kMaxListedValues));
    return std::nullopt;
  }
  Value::List values;
  for (std::int64_t i = 0; low + static_cast<double>(i) * step <= high + step * 1e-9; ++i) {
    const double value = low + static_cast<double>(i) * step;
    if (are_whole) {
      values.emplace_back(static_cast<std::int64_t>(std::llround(value)));
    } else {
      values.emplace_back(value);
    }
  }
  return domain("grid_search", std::move(values));
}

}  // namespace tune
