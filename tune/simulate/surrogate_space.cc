#include "tune/simulate/surrogate_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/simulate/r_param_set.h"
#include "tune/simulate/refusal.h"

namespace tune {

namespace {

constexpr const char* kOwnValue = "name";  // of a choice whose options hold parameters
constexpr const char* kNone = "#na#";  // the code of a category that is not active

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> texts;
  for (const Value& item : list.as<std::vector<Value>>()) texts.push_back(item.as<std::string>());
  return texts;
}

SurrogateParameter read_parameter(const Value& entry) {
  using Kind = SurrogateParameter::Kind;
  SurrogateParameter parameter;
  parameter.name = entry.get<std::string>("name");
  const auto type = entry.get<std::string>("type");
  if (type == "categorical") {
    parameter.kind = Kind::kCategory;
    parameter.choices = texts_of(entry.at("choices"));
    if (parameter.choices.empty()) {
      throw Error(ErrorCode::kBadInput, fmt::format("{}: it has no choices", parameter.name));
    }
    return parameter;
  }
  if (type != "uniform_float" && type != "uniform_int") {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the type '{}' is none of categorical, uniform_float, uniform_int",
                            parameter.name, type));
  }
  parameter.kind = type == "uniform_int" ? Kind::kInteger : Kind::kFloat;
  parameter.low = entry.get<double>("lower");
  parameter.high = entry.get<double>("upper");
  parameter.is_log = entry.get_or("log", false);
  const bool is_range = std::isfinite(parameter.low) && std::isfinite(parameter.high) &&
                        parameter.low < parameter.high && std::abs(parameter.low) < 1e15 &&
                        std::abs(parameter.high) < 1e15;
  if (!is_range || (parameter.is_log && parameter.low <= 0)) {
    throw Error(ErrorCode::kBadInput, fmt::format("{}: {} to {} is not a range", parameter.name,
                                                  parameter.low, parameter.high));
  }
  return parameter;
}

std::map<std::string, SurrogateParameter> read_config_space(const std::string& text,
                                                            const std::string& file) {
  std::map<std::string, SurrogateParameter> parameters;
  const Value all = parse_json(text, file);
  try {
    for (const Value& entry : all.get<std::vector<Value>>("hyperparameters")) {
      SurrogateParameter parameter = read_parameter(entry);
      parameters[parameter.name] = std::move(parameter);
    }
    for (const Value& entry : all.get<std::vector<Value>>("conditions")) {
      const auto child = parameters.find(entry.get<std::string>("child"));
      const auto type = entry.get<std::string>("type");
      if (child == parameters.end() || (type != "EQ" && type != "IN")) {
        throw Error(ErrorCode::kBadInput,
                    fmt::format("the condition {} is not known: EQ and IN of a parameter are",
                                entry.dump()));
      }
      SurrogateParameter::Condition condition{entry.get<std::string>("parent"), {}};
      if (type == "IN") {
        condition.values = texts_of(entry.at("values"));
      } else {
        condition.values = {entry.get<std::string>("value")};
      }
      child->second.conditions.push_back(std::move(condition));
    }
  } catch (const Error& error) {
    refuse_file(file, error.what());
  }
  return parameters;
}

}  // namespace

Value SurrogateParameter::at(double unit) const {
  const double from = std::clamp(unit, 0.0, 1.0);
  if (kind == Kind::kCategory) {
    const auto count = static_cast<double>(choices.size());
    return choices[static_cast<std::size_t>(std::min(std::floor(from * count), count - 1))];
  }
  if (is_log) {
    const double value = std::exp(std::log(low) + from * (std::log(high) - std::log(low)));
    if (kind == Kind::kInteger) return static_cast<std::int64_t>(std::round(value));
    return std::clamp(value, low, high);
  }
  if (kind == Kind::kFloat) return std::clamp(low + from * (high - low), low, high);
  return static_cast<std::int64_t>(std::min(std::floor(low + from * (high - low + 1)), high));
}

Domain SurrogateParameter::domain() const {
  if (kind == Kind::kCategory) {
    return choice(std::vector<Value>(choices.begin(), choices.end()));
  }
  if (kind == Kind::kFloat) return is_log ? loguniform(low, high) : uniform(low, high);
  const auto first = static_cast<std::int64_t>(low);
  const auto end = static_cast<std::int64_t>(high) + 1;
  return is_log ? lograndint(first, end) : randint(first, end);
}

bool SurrogateParameter::holds(const Value& value) const {
  if (kind == Kind::kCategory) {
    return value.is_string() &&
           std::find(choices.begin(), choices.end(), value.string()) != choices.end();
  }
  if (!value.is_number()) return false;
  return is_within(value.as<double>(), low, high);
}

SurrogateSpace::SurrogateSpace(const SurrogateTexts& texts) {
  const std::string space_file = texts.folder + "/config_space.json";
  const std::string set_file = texts.folder + "/param_set.R";
  const std::string code_file = texts.folder + "/encoding.json";
  auto known = read_config_space(texts.config_space, space_file);
  std::vector<std::string> categories;
  for (const RParameter& entry : read_param_set(texts.param_set, "search_space", set_file)) {
    const auto found = known.find(entry.name);
    if (found == known.end()) {
      refuse_file(set_file, fmt::format("{} is not in config_space.json", entry.name));
    }
    const SurrogateParameter& parameter = found->second;
    const bool is_category = parameter.kind == SurrogateParameter::Kind::kCategory;
    (is_category ? categories : columns).push_back(entry.name);
    if (is_category && entry.has_tag("budget")) {
      refuse_file(set_file, fmt::format("the budget {} is not a number", entry.name));
    }
    if (is_category && entry.has_tag("task_id")) {
      task_parameter = entry.name;
    } else {
      (entry.has_tag("budget") ? budgets : parameters).push_back(parameter);
    }
  }
  if (task_parameter.empty()) refuse_file(set_file, "no parameter has the tag task_id");
  check_conditions(space_file);
  category_columns = {task_parameter};
  for (std::string& name : categories) {
    if (name != task_parameter) category_columns.push_back(std::move(name));
  }
  const Value encoding = parse_json(texts.encoding, code_file);
  try {
    for (const std::string& name : category_columns) {
      const Config table(encoding.at(name));  // Error when it is not a map
      for (const auto& [choice, code] : table.map()) {
        codes[name][choice] = code.as<std::int32_t>();
        if (name == task_parameter && choice != kNone) tasks.push_back(choice);
      }
    }
  } catch (const Error& error) {
    refuse_file(code_file, error.what());
  }
  if (tasks.empty()) refuse_file(code_file, "it names no task");
  for (const RParameter& entry : read_param_set(texts.param_set, "codomain", set_file)) {
    TaskMetric metric{entry.name, {}};
    if (entry.has_tag("maximize")) metric.mode = Mode::kMax;
    if (entry.has_tag("minimize")) metric.mode = Mode::kMin;
    outputs.push_back(std::move(metric));
  }
  // The file has `time` at the end, the networks give it first.
  const auto time = std::find_if(outputs.begin(), outputs.end(),
                                 [](const TaskMetric& output) { return output.name == "time"; });
  if (time != outputs.end()) std::rotate(outputs.begin(), time, time + 1);
}

const SurrogateParameter* SurrogateSpace::find(std::string_view name) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const auto& one) { return one.name == name; });
  return found == parameters.end() ? nullptr : &*found;
}

// ---- Conditions as options ----

const SurrogateParameter* SurrogateSpace::parent_of(const SurrogateParameter& parameter) const {
  if (parameter.conditions.empty()) return nullptr;
  const SurrogateParameter* parent = find(parameter.conditions.front().parent);
  const bool is_choice = parent != nullptr && parent->kind == SurrogateParameter::Kind::kCategory;
  return is_choice ? parent : nullptr;
}

SearchSpace SurrogateSpace::node_of(const SurrogateParameter& parameter) const {
  std::vector<SearchSpace> options;
  bool has_children = false;
  for (const std::string& value : parameter.choices) {
    SearchSpace option = {{kOwnValue, value}};
    for (const SurrogateParameter& child : parameters) {
      if (parent_of(child) != &parameter) continue;
      has_children = true;
      const auto& values = child.conditions.front().values;
      if (std::find(values.begin(), values.end(), value) == values.end()) continue;
      option.set(child.name, node_of(child));
    }
    options.push_back(std::move(option));
  }
  return has_children ? choice(std::move(options)) : parameter.domain();
}

SearchSpace SurrogateSpace::search_space() const {
  SearchSpace space;
  for (const SurrogateParameter& parameter : parameters) {
    if (parent_of(parameter) == nullptr) space.set(parameter.name, node_of(parameter));
  }
  return space;
}

SearchSpace SurrogateSpace::flat_space() const {
  SearchSpace space;
  for (const SurrogateParameter& parameter : parameters) {
    space.set(parameter.name, parameter.domain());
  }
  return space;
}

Config SurrogateSpace::flat(const Config& config) const {
  Config result;
  const auto add = [&](const Value& map, const auto& self) -> void {
    for (const Member& member : map.map()) {
      const Value* own = member.value.is_map() ? member.value.find(kOwnValue) : nullptr;
      result.set(member.key, own != nullptr ? *own : member.value);
      if (own != nullptr) self(member.value, self);
    }
  };
  add(config, add);
  return result;
}

// A parameter that depends on itself, by others or not, would have no place.
void SurrogateSpace::check_conditions(const std::string& file) const {
  for (const SurrogateParameter& parameter : parameters) {
    const SurrogateParameter* above = parent_of(parameter);
    for (std::size_t steps = 0; above != nullptr; ++steps, above = parent_of(*above)) {
      if (steps <= parameters.size()) continue;
      refuse_file(file, fmt::format("{} depends on itself", parameter.name));
    }
    if (parameter.name == kOwnValue && parent_of(parameter) != nullptr) {
      refuse_file(file, fmt::format("a parameter that depends on another is called {}", kOwnValue));
    }
  }
}

bool SurrogateSpace::is_active(const SurrogateParameter& parameter, const Config& config) const {
  return std::all_of(parameter.conditions.begin(), parameter.conditions.end(),
                     [&](const auto& one) {
                       const Value* parent = config.find(one.parent);
                       return parent != nullptr && parent->is_string() &&
                              std::find(one.values.begin(), one.values.end(), parent->string()) !=
                                  one.values.end();
                     });
}

}  // namespace tune
