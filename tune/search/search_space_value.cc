// Search spaces as values and back: what YAML and experiment.json hold.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/key_path.h"
#include "core/strings.h"
#include "tune/search/search_space.h"

namespace tune {

namespace {

constexpr const char* kConst = "const";
constexpr const char* kSampleFrom = "sample_from";

// ---- Domains as one-key maps --------------------------------------------------------------------

using Items = Value::List;

double number(const Items& items, std::size_t at) {
  return items[at].as<double>();
}
std::int64_t integer(const Items& items, std::size_t at) {
  return items[at].as<std::int64_t>();
}

struct Form {
  std::string name;
  std::string arguments;
  std::size_t fewest;
  std::size_t most;
  Domain (*make)(const Items& items);
};

const std::vector<Form>& forms() {
  constexpr std::size_t kAny = static_cast<std::size_t>(-1);
  static const std::vector<Form> all = {
      {"uniform", "[low, high]", 2, 2,
       [](const Items& i) { return uniform(number(i, 0), number(i, 1)); }},
      {"quniform", "[low, high, q]", 3, 3,
       [](const Items& i) { return quniform(number(i, 0), number(i, 1), number(i, 2)); }},
      {"loguniform", "[low, high]", 2, 2,
       [](const Items& i) { return loguniform(number(i, 0), number(i, 1)); }},
      {"qloguniform", "[low, high, q]", 3, 3,
       [](const Items& i) { return qloguniform(number(i, 0), number(i, 1), number(i, 2)); }},
      {"randint", "[low, high], high excluded", 2, 2,
       [](const Items& i) { return randint(integer(i, 0), integer(i, 1)); }},
      {"qrandint", "[low, high, q], high included", 2, 3,
       [](const Items& i) {
         return qrandint(integer(i, 0), integer(i, 1), i.size() > 2 ? integer(i, 2) : 1);
       }},
      {"lograndint", "[low, high], high excluded", 2, 2,
       [](const Items& i) { return lograndint(integer(i, 0), integer(i, 1)); }},
      {"randn", "[mean, sd]", 0, 2,
       [](const Items& i) {
         return randn(i.size() > 0 ? number(i, 0) : 0, i.size() > 1 ? number(i, 1) : 1);
       }},
      {"qrandn", "[mean, sd, q]", 3, 3,
       [](const Items& i) { return qrandn(number(i, 0), number(i, 1), number(i, 2)); }},
      {"choice", "a list of values", 1, kAny, [](const Items& i) { return choice(i); }},
      {"grid_search", "a list of values", 1, kAny, [](const Items& i) { return grid_search(i); }},
  };
  return all;
}

const Form* find_form(const std::string& name) {
  for (const Form& form : forms()) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const Form& form : forms()) names.push_back(form.name);
  return names;
}

// Why a domain cannot be made of this, whatever its bounds; empty: it can.
std::string why_no_arguments(const Form& form, const Value& arguments) {
  const bool fits = arguments.is_list() && arguments.list().size() >= form.fewest &&
                    arguments.list().size() <= form.most;
  if (!fits) {
    return fmt::format("{} takes {}, found {}", form.name, form.arguments, to_json(arguments));
  }
  const bool any_type = form.name == "choice" || form.name == "grid_search";
  const bool integers = form.name.ends_with("randint");
  for (const Value& item : arguments.list()) {
    if (any_type || item.type() == Value::Type::kInt || (item.is_number() && !integers)) continue;
    return fmt::format("{} takes {} of {}, found {}", form.name, form.arguments,
                       integers ? "whole numbers" : "numbers", to_json(item));
  }
  return {};
}

// Throws Error that shows how the domain is written.
Domain make_domain(const Form& form, const Value& arguments) {
  const std::string why = why_no_arguments(form, arguments);
  if (!why.empty()) throw Error(ErrorCode::kBadInput, why);
  return form.make(arguments.list());
}

// ---- The spelling of other tools ----------------------------------------------------------------

const std::vector<std::string> kForeignKeys = {"distribution", "type",  "min", "max",    "q",
                                               "mu",           "sigma", "log", "values", "value",
                                               "probabilities"};

const Value* number_in(const Value& map, const char* key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_number() ? found : nullptr;
}

// A range with bounds, as a domain of ours.
std::string range_spelling(const Value& map, const std::string& kind) {
  const Value* log = map.find("log");
  const bool is_log =
      kind.find("log") != std::string::npos || (log != nullptr && *log == Value(true));
  const Value* q = number_in(map, "q");
  const Value* low = number_in(map, "min");
  const Value* high = number_in(map, "max");
  const std::string step = q != nullptr ? ", " + to_json(*q) : "";
  // Elsewhere the bounds of log_uniform are exponents of e.
  if (kind == "log_uniform" || kind == "q_log_uniform") {
    return fmt::format("{{{}loguniform: [{:.4g}, {:.4g}{}]}}", q != nullptr ? "q" : "",
                       std::exp(low->number()), std::exp(high->number()), step);
  }
  const std::string bounds = fmt::format("[{}, {}{}]", to_json(*low), to_json(*high), step);
  if (kind.starts_with("int") || kind.starts_with("q_int")) {
    return fmt::format("{{qrandint: {}}}", bounds);
  }
  const std::string line =
      fmt::format("{{{}{}uniform: {}}}", q != nullptr ? "q" : "", is_log ? "log" : "", bounds);
  const bool whole = low->type() == Value::Type::kInt && high->type() == Value::Type::kInt;
  if (!whole || is_log || !kind.empty()) return line;
  return fmt::format("{}`, or for whole numbers `{{qrandint: {}}}", line, bounds);
}

// The domain to write for a map in the spelling of other tools; empty when it is none.
std::string foreign_spelling(const Value& map) {
  for (const Member& member : map.map()) {
    if (std::find(kForeignKeys.begin(), kForeignKeys.end(), member.key) == kForeignKeys.end()) {
      return {};
    }
  }
  const Value* values = map.find("values");
  if (values != nullptr && values->is_list()) {
    return fmt::format("{{choice: {0}}}`, or to try each `{{grid_search: {0}}}", to_json(*values));
  }
  const Value* named = map.contains("distribution") ? map.find("distribution") : map.find("type");
  const std::string kind = named != nullptr && named->is_string() ? named->string() : "";
  if (number_in(map, "min") && number_in(map, "max")) return range_spelling(map, kind);
  if (!map.contains("distribution")) return {};
  if (number_in(map, "mu") && number_in(map, "sigma")) {
    const Value* q = number_in(map, "q");
    return fmt::format("{{{}randn: [{}, {}{}]}}", q ? "q" : "", to_json(map.at("mu")),
                       to_json(map.at("sigma")), q ? ", " + to_json(*q) : "");
  }
  return kind.find("log") != std::string::npos ? "{loguniform: [low, high]}"
                                               : "{uniform: [low, high]}";
}

// ---- Reading ------------------------------------------------------------------------------------

// The keys of a map that each could be a domain with its arguments, where these are several.
std::vector<std::string> several_domains(const Value& map) {
  std::vector<std::string> names;
  for (const auto& [key, inner] : map.map()) {
    const Form* form = find_form(key);
    if (form != nullptr && why_no_arguments(*form, inner).empty()) names.push_back(key);
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

// Whether a map within a space is read as anything but a nested space.
bool has_meaning(const Value& map) {
  if (!foreign_spelling(map).empty() || !several_domains(map).empty()) return true;
  if (map.map().size() != 1) return false;
  const Member& only = map.map().front();
  return only.value.is_list() || only.key == kConst || only.key == kSampleFrom ||
         find_form(only.key) != nullptr;
}

// Whether a domain is written anywhere in it.
bool mentions_domain(const Value& value) {
  if (value.is_list()) {
    return std::any_of(value.list().begin(), value.list().end(), mentions_domain);
  }
  if (!value.is_map()) return false;
  if (value.map().size() == 1) {
    const auto& [key, inner] = value.map().front();
    if (inner.is_list() && find_form(key) != nullptr) return true;
    if (inner.is_null() && key == kSampleFrom) return true;
  }
  return std::any_of(value.map().begin(), value.map().end(),
                     [](const Member& member) { return mentions_domain(member.value); });
}

bool is_map_with_domain(const Value& option) {
  return option.is_map() && mentions_domain(option);
}

bool have_domains(const Value::List& options) {
  return std::any_of(options.begin(), options.end(), is_map_with_domain);
}

class Reader {
 public:
  Reader(std::vector<SpaceComplaint>& complaints, const SpaceReading& reading)
      : complaints_(complaints), reading_(reading) {}

  SearchSpace read(const Value& value, const std::string& path) {
    const bool is_refused = is_in_option_ || !reading_.is_stored;
    if (value.is_list() && is_refused && mentions_domain(value)) {
      return complain_of_list(value, path);
    }
    if (!value.is_map()) return SearchSpace(value);
    if (!has_meaning(value)) return read_members(value, path);
    if (!several_domains(value).empty()) return read_several(value, path);
    if (const std::string line = foreign_spelling(value); !line.empty()) {
      const std::string key = path.substr(path.rfind('/') + 1);
      return complain(path, fmt::format("this is how another tool writes it: here it is "
                                        "`{}: {}`; a constant of this shape is written {{const: "
                                        "{}}}",
                                        key, line, to_json(value)));
    }
    const auto& [key, inner] = value.map().front();
    if (key == kConst) return SearchSpace(inner);
    if (key == kSampleFrom) {
      if (reading_.function) return SearchSpace(sample_from(reading_.function));
      return complain(path, "sample_from needs a function: it is for C++ programs only");
    }
    if (const Form* form = find_form(key)) return read_domain(*form, inner, path);
    const std::string near = nearest(key, form_names());
    return complain(path, fmt::format("there is no domain '{}'{}; a constant of this shape is "
                                      "written {{const: {}}}",
                                      key,
                                      near.empty() ? ", there are: " + join(form_names(), ", ")
                                                   : fmt::format(" (did you mean '{}'?)", near),
                                      to_json(value)));
  }

  SearchSpace read_top(const Value& value) {
    if (!value.is_map()) return SearchSpace(value);
    const bool alone = value.map().size() == 1;
    if (alone && value.map().front().key == kConst) return SearchSpace(value.map().front().value);
    return read_members(value, {});
  }

 private:
  SearchSpace read_members(const Value& map, const std::string& path) {
    SearchSpace space;
    for (const auto& [key, inner] : map.map()) space.set(key, read(inner, join_path(path, key)));
    return space;
  }
  SearchSpace read_domain(const Form& form, const Value& arguments, const std::string& path) {
    if (form.name == "choice" && arguments.is_list() && !reading_.constant_options) {
      if (!reading_.is_stored && has_wrong_list(arguments.list(), path))
        return SearchSpace(Value());
      if (have_domains(arguments.list())) return read_choice(arguments.list(), path);
    }
    if (form.name == "grid_search" && is_in_option_) {
      return complain(path,
                      "there is no grid_search within an option of a choice: a grid has the same "
                      "cells whatever is drawn; write choice instead");
    }
    try {
      return SearchSpace(make_domain(form, arguments));
    } catch (const Error& error) {
      return complain(path, error.what());
    }
  }
  SearchSpace read_several(const Value& map, const std::string& path) {
    if (reading_.is_stored) return read_members(map, path);
    return complain(path,
                    fmt::format("{} stand in one map, and each of them is a domain by itself: "
                                "write one, or give each a key of its own; a constant of "
                                "this shape is written {{const: {}}}",
                                join(several_domains(map), " and "), to_json(map)));
  }
  // Complains of the options of a choice that are lists with a domain.
  bool has_wrong_list(const Value::List& options, const std::string& path) {
    const std::size_t complaints_before = complaints_.size();
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (!options[i].is_list() || !mentions_domain(options[i])) continue;
      complain_of_list(options[i], fmt::format("{}/choice/{}", path, i));
    }
    return complaints_.size() > complaints_before;
  }
  SearchSpace read_choice(const Value::List& options, const std::string& path) {
    const std::size_t complaints_before = complaints_.size();
    const bool was_in_option = std::exchange(is_in_option_, true);
    std::vector<SearchSpace> spaces;
    for (std::size_t i = 0; i < options.size(); ++i) {
      spaces.push_back(read_option(options[i], fmt::format("{}/choice/{}", path, i)));
    }
    is_in_option_ = was_in_option;
    if (complaints_.size() > complaints_before) return SearchSpace(Value());
    return SearchSpace(choice(std::move(spaces)));
  }
  SearchSpace read_option(const Value& option, const std::string& path) {
    if (!option.is_map()) return SearchSpace(option);
    if (option.map().size() == 1) {
      const auto& [key, inner] = option.map().front();
      if (key == kConst) return SearchSpace(inner);
      if (inner.is_list() && find_form(key) != nullptr) {
        return complain(path,
                        fmt::format("an option is a value, or a map of keys that may hold domains, "
                                    "not a domain by itself: write {{<key>: {0}}}; a constant of "
                                    "this shape is written {{const: {0}}}",
                                    to_json(option)));
      }
    }
    if (!several_domains(option).empty()) return read_several(option, path);
    return read_members(option, path);
  }
  SearchSpace complain_of_list(const Value& list, const std::string& path) {
    return complain(path, fmt::format("a domain within a list is not drawn: give it a key of its "
                                      "own; a constant of this shape is written {{const: {}}}",
                                      to_json(list)));
  }
  SearchSpace complain(const std::string& path, std::string message) {
    complaints_.push_back({path, std::move(message)});
    return SearchSpace(Value());
  }

  std::vector<SpaceComplaint>& complaints_;
  const SpaceReading& reading_;
  bool is_in_option_ = false;
};

// ---- Describing
// -----------------------------------------------------------------------------------

Value call(const char* name, Value::List arguments) {
  return Value{{name, Value::make_list(std::move(arguments))}};
}

// As they are read back: among maps that hold domains, and maps that only look so.
Value::List described_options(const Domain::Choice& choice) {
  const bool has_spaces = !choice.spaces.empty();
  if (!has_spaces && std::ranges::none_of(choice.values, mentions_domain)) return choice.values;
  Value::List options;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    const Value& value = choice.values[i];
    if (has_spaces && choice.spaces[i]) {
      options.push_back(choice.spaces[i]->describe());
    } else {
      options.push_back(SearchSpace(value).describe());
    }
  }
  return options;
}

struct Describe {
  Value operator()(const Domain::Uniform& d) const {
    if (d.q > 0) return call(d.log ? "qloguniform" : "quniform", {d.low, d.high, d.q});
    return call(d.log ? "loguniform" : "uniform", {d.low, d.high});
  }
  Value operator()(const Domain::Integer& d) const {
    if (d.q > 0) return call("qrandint", {d.low, d.high, d.q});
    return call(d.log ? "lograndint" : "randint", {d.low, d.high});
  }
  Value operator()(const Domain::Normal& d) const {
    if (d.q > 0) return call("qrandn", {d.mean, d.sd, d.q});
    return call("randn", {d.mean, d.sd});
  }
  Value operator()(const Domain::Choice& d) const { return call("choice", described_options(d)); }
  Value operator()(const Domain::Grid& d) const { return call("grid_search", d.values); }
  Value operator()(const Domain::SampleFrom&) const { return {{"sample_from", nullptr}}; }
};

}  // namespace

SearchSpace search_space_from_value(const Value& value, std::vector<SpaceComplaint>& complaints,
                                    const SpaceReading& reading) {
  return Reader(complaints, reading).read_top(value);
}

SearchSpace search_node_from_value(const Value& value, const std::string& path,
                                   std::vector<SpaceComplaint>& complaints) {
  return Reader(complaints, {}).read(value, path);
}

Value Domain::describe() const {
  return std::visit(Describe{}, kind_);
}

Value SearchSpace::describe() const {
  if (is_domain()) return domain().describe();
  // Constants that would be read as something else are named as what they are.
  if (is_constant()) {
    const bool is_odd = constant().is_list() && mentions_domain(constant());
    return is_odd ? Value{{kConst, constant()}} : constant();
  }
  if (domains().empty()) {
    Value plain = frame();
    if (has_meaning(plain)) return Value{{kConst, std::move(plain)}};
  }
  Value::Map map;
  for (const SpaceMember& member : members()) map.emplace_back(member.key, member.value.describe());
  return Value::make_map(std::move(map));
}

}  // namespace tune
