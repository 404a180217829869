#include "tune/export/optuna_space.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/search/unit_domain.h"

namespace tune {

namespace {

bool fits(const SearchSpace& node, const Value& value);

bool fits_domain(const Domain& domain, const Value& value) {
  return std::visit(
      [&](const auto& kind) {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<Kind, Domain::Uniform>) {
          return value.is_number() && value.number() >= kind.low && value.number() <= kind.high;
        } else if constexpr (std::is_same_v<Kind, Domain::Integer>) {
          const auto high = static_cast<double>(kind.q > 0 ? kind.high : kind.high - 1);
          return value.is_number() && value.number() == std::floor(value.number()) &&
                 value.number() >= static_cast<double>(kind.low) && value.number() <= high;
        } else if constexpr (std::is_same_v<Kind, Domain::Choice>) {
          for (std::size_t i = 0; i < kind.values.size(); ++i) {
            const bool is_space = !kind.spaces.empty() && kind.spaces[i] != nullptr;
            if (is_space ? fits(*kind.spaces[i], value) : are_alike(kind.values[i], value)) {
              return true;
            }
          }
          return false;
        } else if constexpr (std::is_same_v<Kind, Domain::Grid>) {
          return std::any_of(kind.values.begin(), kind.values.end(),
                             [&](const Value& one) { return are_alike(one, value); });
        } else {
          return true;
        }
      },
      domain.kind());
}

// Whether the space could have drawn the value.
bool fits(const SearchSpace& node, const Value& value) {
  if (node.is_constant()) return are_alike(node.constant(), value);
  if (node.is_domain()) return fits_domain(node.domain(), value);
  if (!value.is_map() || value.map().size() != node.members().size()) return false;
  return std::all_of(node.members().begin(), node.members().end(), [&](const SpaceMember& member) {
    const Value* found = value.find(member.key);
    return found != nullptr && fits(member.value, *found);
  });
}

// ---- Distributions, as Optuna's distribution_to_json writes them --------------------------------

std::string number_distribution(const char* name, const Value& low, const Value& high,
                                const Value& step, bool log) {
  return to_json(
      Value{{"name", name},
            {"attributes", {{"log", log}, {"step", step}, {"low", low}, {"high", high}}}});
}

// The multiple of q at or next to a bound.
double multiple(double bound, double q, double (*round)(double)) {
  const double near = std::round(bound / q);
  return q * (std::abs(near - bound / q) < 1e-9 ? near : round(bound / q));
}

// Optuna has no steps on a logarithmic scale: such values are any of the range there.
std::string distribution_of(const Domain::Uniform& kind) {
  if (kind.q == 0 || kind.log) {
    return number_distribution("FloatDistribution", kind.low, kind.high, nullptr, kind.log);
  }
  return number_distribution("FloatDistribution", multiple(kind.low, kind.q, std::ceil),
                             multiple(kind.high, kind.q, std::floor), kind.q, false);
}

std::string distribution_of(const Domain::Integer& kind) {
  if (kind.q == 0) {
    return number_distribution("IntDistribution", kind.low, kind.high - 1, 1, kind.log);
  }
  const auto q = static_cast<double>(kind.q);
  const auto low = multiple(static_cast<double>(kind.low), q, std::ceil);
  const auto high = multiple(static_cast<double>(kind.high), q, std::floor);
  return number_distribution("IntDistribution", static_cast<std::int64_t>(low),
                             static_cast<std::int64_t>(high), kind.log ? 1 : kind.q, kind.log);
}

// The name of a value among Optuna's choices, which are words, numbers, switches and null.
Value choice_of(const Value& value) {
  const bool is_plain = !value.is_list() && !value.is_map();
  return is_plain ? value : Value(to_json(value));
}

std::string categories(const std::vector<Value>& values) {
  Value::List choices;
  for (const Value& value : values) choices.push_back(choice_of(value));
  // Options that differ only in their domains are told apart by their number.
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto same = [&](const Value& other) { return other == choices[i]; };
    if (std::count_if(choices.begin(), choices.end(), same) > 1 && choices[i].is_string()) {
      choices[i] = Value(fmt::format("{} #{}", choices[i].string(), i));
    }
  }
  Value attributes = Value::make_map();
  attributes.set("choices", Value::make_list(std::move(choices)));
  Value all{{"name", "CategoricalDistribution"}};
  all.set("attributes", std::move(attributes));
  return to_json(all);
}

// Nothing: Optuna has none.
std::optional<std::string> distribution_of(const Domain& domain) {
  return std::visit(
      [](const auto& kind) -> std::optional<std::string> {
        if constexpr (requires { kind.low; }) {
          return distribution_of(kind);
        } else if constexpr (requires { kind.values; }) {
          if (kind.values.empty()) return std::nullopt;
          return categories(kind.values);
        }
        return std::nullopt;
      },
      domain.kind());
}

// The place of a value among the options; nothing: it is none of them.
std::optional<std::size_t> option_of(const Domain& domain, const Value& value) {
  const auto* choice = std::get_if<Domain::Choice>(&domain.kind());
  const auto& values =
      choice != nullptr ? choice->values : std::get<Domain::Grid>(domain.kind()).values;
  std::optional<std::size_t> alike;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (choice != nullptr && !choice->spaces.empty() && choice->spaces[i]) {
      if (fits(*choice->spaces[i], value)) return i;
      continue;
    }
    if (values[i] == value) return i;
    if (!alike && are_alike(values[i], value)) alike = i;
  }
  return alike;
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

struct OptunaSpace::Writer {
  OptunaParams parts;

  void param(const Known& known, std::string_view value) {
    add(parts.params, known.name, value);
    add(parts.distributions, known.name, known.distribution);
  }
  void attribute(const std::string& path, const Value& value) {
    parts.attributes.push_back(json_text("config/" + path) + ":" + to_json(value));
  }

 private:
  static void add(std::string& map, std::string_view key, std::string_view value) {
    map.pop_back();
    if (map.size() > 1) map += ',';
    map.append(key).append(":").append(value).append("}");
  }
};

OptunaSpace::OptunaSpace(SearchSpace space) : space_(std::move(space)) {
  learn(space_, "");
}

// Parameters of one name have one distribution in Optuna: where options of choices differ in it,
// the later ones get a number.
void OptunaSpace::learn(const SearchSpace& node, const std::string& path) {
  if (node.is_map()) {
    for (const SpaceMember& member : node.members()) {
      learn(member.value, path.empty() ? member.key : path + "/" + member.key);
    }
  }
  if (!node.is_domain()) return;
  if (const auto distribution = distribution_of(node.domain())) {
    std::string name = json_text(path);
    const std::string told = json_text(*distribution);
    const auto is_taken = [&](const auto& one) {
      return one.second.name == name && one.second.distribution != told;
    };
    for (int i = 2; std::any_of(known_.begin(), known_.end(), is_taken); ++i) {
      name = json_text(fmt::format("{} ({})", path, i));
    }
    known_.emplace(&node.domain(), Known{name, told});
  }
  const Domain::Choice* choice = node.domain().conditional();
  if (choice == nullptr) return;
  for (const auto& option : choice->spaces) {
    if (option) learn(*option, path);
  }
}

OptunaParams OptunaSpace::describe(const Config& config) const {
  Writer out;
  describe_node(space_, "", config, out);
  return std::move(out.parts);
}

void OptunaSpace::describe_node(const SearchSpace& node, const std::string& path,
                                const Value& value, Writer& out) const {
  if (node.is_map() && value.is_map()) {
    for (const SpaceMember& member : node.members()) {
      const Value* below = value.find(member.key);
      if (below == nullptr) continue;
      describe_node(member.value, path.empty() ? member.key : path + "/" + member.key, *below, out);
    }
  }
  if (!node.is_domain()) return;
  const Domain& domain = node.domain();
  const auto known = known_.find(&domain);
  const auto* choice = std::get_if<Domain::Choice>(&domain.kind());
  if (known == known_.end()) return out.attribute(path, value);
  if (choice == nullptr && !domain.is_grid()) {
    const bool is_inside = fits_domain(domain, value);
    return is_inside ? out.param(known->second, to_json(value)) : out.attribute(path, value);
  }
  const auto option = option_of(domain, value);
  if (!option) return out.attribute(path, value);
  out.param(known->second, std::to_string(*option));
  const bool has_more = choice != nullptr && !choice->spaces.empty() && choice->spaces[*option];
  if (has_more) describe_node(*choice->spaces[*option], path, value, out);
}

}  // namespace tune
