// SurrogateSpace: the parameters of a surrogate as its text files tell them (config_space.json,
// param_set.R, encoding.json of YAHPO Gym). Pure: the texts come from elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tune/search/search_space.h"
#include "tune/simulate/task.h"

namespace tune {

// One parameter, in the unit interval: floats and whole numbers linearly or by their logarithm,
// whole numbers and categories as intervals of equal width.
struct SurrogateParameter {
  enum class Kind : std::uint8_t { kFloat, kInteger, kCategory };
  std::string name;
  Kind kind = Kind::kFloat;
  double low = 0;  // both included
  double high = 0;
  bool is_log = false;
  std::vector<std::string> choices = {};
  // Active only when each of these has one of its values.
  struct Condition {
    std::string parent;
    std::vector<std::string> values;
  };
  std::vector<Condition> conditions = {};

  Value at(double unit) const;
  Domain domain() const;
  // Whether it can have this value, by is_within.
  bool holds(const Value& value) const;
};

struct SurrogateTexts {
  std::string config_space;  // config_space.json
  std::string param_set;     // param_set.R
  std::string encoding;      // encoding.json
  std::string folder;        // named in errors
};

struct SurrogateSpace {
  // Searched ones, in the order of param_set.R.
  std::vector<SurrogateParameter> parameters;
  // The measures by which a training is cut, in that order: epochs make its steps, all others stand
  // at their most.
  std::vector<SurrogateParameter> budgets;
  std::string task_parameter;        // its name
  std::vector<std::string> tasks;    // in the order of encoding.json
  std::vector<std::string> columns;  // all that are numbers, budgets too, as the network wants them
  std::vector<std::string> category_columns;                         // likewise; the task's first
  std::map<std::string, std::map<std::string, std::int32_t>> codes;  // by parameter and choice
  std::vector<TaskMetric> outputs;                                   // as the network gives them

  // Throws Error (kBadInput) naming file and entry.
  explicit SurrogateSpace(const SurrogateTexts& texts);
  const SurrogateParameter* find(std::string_view name) const;
  // A parameter that others depend on is a choice of maps: its value as `name`, and these beside it
  // where they are active: {booster: {choice: [{name: gblinear}, {name: gbtree, eta: ...}]}}. One
  // that depends on several stands below the first of them.
  SearchSpace search_space() const;
  // All parameters at the top.
  SearchSpace flat_space() const;
  // A configuration of either as one of the flat space.
  Config flat(const Config& config) const;
  // In a configuration of the flat space.
  bool is_active(const SurrogateParameter& parameter, const Config& config) const;

 private:
  const SurrogateParameter* parent_of(const SurrogateParameter& parameter) const;
  SearchSpace node_of(const SurrogateParameter& parameter) const;
  void check_conditions(const std::string& file) const;
};

}  // namespace tune
