#include "tune/search/where.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/search/where_parser.h"

namespace tune {

namespace {

constexpr int kFewestHeld = kMostWhereDraws / 500;

bool compare(double left, WhereRule::Relation relation, double right) {
  using Relation = WhereRule::Relation;
  switch (relation) {
    case Relation::kLess:
      return left < right;
    case Relation::kLessEqual:
      return left <= right;
    case Relation::kGreater:
      return left > right;
    case Relation::kGreaterEqual:
      return left >= right;
    case Relation::kEqual:
      return left == right;
    case Relation::kNotEqual:
      break;
  }
  return left != right;
}

double computed(WhereRule::Step::Kind kind, double left, double right) {
  if (kind == WhereRule::Step::Kind::kPlus) return left + right;
  return kind == WhereRule::Step::Kind::kMinus ? left - right : left * right;
}

// The thing at a path that is not a number; empty: all of it may be one.
std::string why_no_number(const SearchSpace& node) {
  if (node.is_map()) return "a map: name one of its keys";
  const std::vector<Value>* values = nullptr;
  if (node.is_domain()) {
    const Domain::Kind& kind = node.domain().kind();
    if (const auto* choice = std::get_if<Domain::Choice>(&kind)) values = &choice->values;
    if (const auto* grid = std::get_if<Domain::Grid>(&kind)) values = &grid->values;
    if (values == nullptr) return {};
  }
  const auto why = [](const Value& value) -> std::string {
    if (value.is_number()) return {};
    if (value.is_map()) return "a map: name one of its keys";
    return fmt::format("{}, which is not a number", to_json(value));
  };
  if (values == nullptr) return why(node.constant());
  for (const Value& value : *values) {
    if (std::string found = why(value); !found.empty()) return found;
  }
  return {};
}

std::string why_wrong(const std::string& path, const SearchSpace& space) {
  const std::vector<SearchSpace> nodes = space.nodes_at(path);
  for (const SearchSpace& node : nodes) {
    if (const std::string why = why_no_number(node); !why.empty()) {
      return fmt::format("'{}' may be {}", path, why);
    }
  }
  if (!nodes.empty()) return {};
  const std::vector<std::string> known = space.value_paths();
  const std::string near = nearest(path, known);
  if (!near.empty())
    return fmt::format("there is no '{}' in config (did you mean '{}'?)", path, near);
  return fmt::format(
      "there is no '{}' in config, there are: {} (a key with other characters than "
      "letters, digits, '_', '.' and '/' is written in quotes, 'as-this')",
      path, join(known, ", "));
}

}  // namespace

WhereRule::WhereRule(std::string text) : text_(std::move(text)) {
  ParsedWhere parsed = parse_where(text_);
  paths_ = std::move(parsed.paths);
  steps_ = std::move(parsed.steps);
  relation_ = parsed.relation;
}

bool WhereRule::holds(const Config& config) const {
  std::vector<double> values;
  for (const std::string& path : paths_) {
    const Value* value = config.find(path);
    if (value == nullptr || value->is_null()) return true;
    if (!value->is_number()) {
      throw Error(ErrorCode::kBadInput, fmt::format("where '{}': '{}' is {}, which is not a number",
                                                    text_, path, to_json(*value)));
    }
    values.push_back(value->number());
  }
  std::vector<double> stack;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kNumber) {
      stack.push_back(step.number);
    } else if (step.kind == Step::Kind::kValue) {
      stack.push_back(values[step.path]);
    } else {
      const double right = stack.back();
      stack.pop_back();
      stack.back() = computed(step.kind, stack.back(), right);
    }
  }
  return compare(stack[0], relation_, stack[1]);
}

Where::Where(const std::vector<std::string>& texts, const SearchSpace& space) {
  for (const SpaceComplaint& one : where_complaints(texts, space)) {
    throw Error(ErrorCode::kBadInput, fmt::format("where/{}: {}", one.path, one.message));
  }
  for (const std::string& text : texts) rules_.emplace_back(text);
}

const WhereRule* Where::broken_by(const Config& config) const {
  for (const WhereRule& rule : rules_) {
    if (!rule.holds(config)) return &rule;
  }
  return nullptr;
}

std::vector<SpaceComplaint> where_complaints(const std::vector<std::string>& texts,
                                             const SearchSpace& space) {
  std::vector<SpaceComplaint> complaints;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    try {
      const WhereRule rule(texts[i]);
      for (const std::string& path : rule.paths()) {
        const std::string why = why_wrong(path, space);
        if (why.empty()) continue;
        complaints.push_back({std::to_string(i), fmt::format("'{}': {}", texts[i], why)});
      }
    } catch (const Error& error) {
      complaints.push_back({std::to_string(i), error.what()});
    }
  }
  return complaints;
}

void throw_none_holds(const WhereRule& broken) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("where: {} configurations were drawn for one trial, and all break rules "
                          "such as '{}': choose the domains so that more keep it",
                          kMostWhereDraws, broken.text()));
}

void check_that_some_hold(const std::function<const WhereRule*(int)>& draw) {
  int held = 0;
  const WhereRule* broken = nullptr;
  for (int i = 0; i < kMostWhereDraws && held < kFewestHeld; ++i) {
    const WhereRule* found = draw(i);
    if (found == nullptr) ++held;
    if (found != nullptr && broken == nullptr) broken = found;
  }
  if (held >= kFewestHeld) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("where: of {} drawn configurations {} are kept, the others break rules "
                          "such as '{}': choose the domains so that at least 1 in 500 are kept",
                          kMostWhereDraws, held, broken->text()));
}

}  // namespace tune
