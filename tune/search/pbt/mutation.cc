#include "tune/search/pbt/mutation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"

namespace tune {

namespace {

// One parameter that changes, with its place in the configuration.
struct Mutable {
  std::string path;
  const Domain* domain = nullptr;        // null: a list
  const Value::List* options = nullptr;  // of a list or a choice; null: a range or a function
};

void gather(const SearchSpace& space, const std::string& prefix, std::vector<Mutable>& found) {
  for (const SpaceMember& member : space.members()) {
    const std::string path = prefix.empty() ? member.key : prefix + "/" + member.key;
    if (member.value.is_map()) {
      gather(member.value, path, found);
    } else if (member.value.is_constant()) {
      const Value& constant = member.value.constant();
      found.push_back({path, nullptr, constant.is_list() ? &constant.list() : nullptr});
    } else {
      const Domain& domain = member.value.domain();
      const auto* choice = std::get_if<Domain::Choice>(&domain.kind());
      found.push_back({path, &domain, choice == nullptr ? nullptr : &choice->values});
    }
  }
}

std::vector<Mutable> all_of(const SearchSpace& mutations) {
  std::vector<Mutable> found;
  gather(mutations, "", found);
  return found;
}

// ---- Ranges -------------------------------------------------------------------------------------

std::int64_t nearest_multiple(double value, std::int64_t q) {
  return static_cast<std::int64_t>(std::nearbyint(value / static_cast<double>(q))) * q;
}

double within(const Domain::Uniform& range, double value) {
  if (range.q > 0) value = std::nearbyint(value / range.q) * range.q;
  return std::clamp(value, range.low, range.high);
}

// Into the range: `high` is not in it, but with q it is.
std::int64_t within(const Domain::Integer& range, std::int64_t value) {
  if (range.q == 0) return std::clamp(value, range.low, range.high - 1);
  const auto q = static_cast<double>(range.q);
  const auto first = static_cast<std::int64_t>(std::ceil(static_cast<double>(range.low) / q));
  const auto last = static_cast<std::int64_t>(std::floor(static_cast<double>(range.high) / q));
  return std::clamp(nearest_multiple(static_cast<double>(value), range.q), first * range.q,
                    last * range.q);
}

// A whole number that the factor would leave as it is moves by one, or by q.
std::int64_t whole(std::int64_t value, double factor, std::int64_t step) {
  const double wanted = static_cast<double>(value) * factor;
  const std::int64_t moved = nearest_multiple(wanted, step);
  if (moved != value || factor == 1) return moved;
  return wanted >= static_cast<double>(value) ? value + step : value - step;
}

Value multiplied(const Value& value, double factor, const Domain& domain) {
  const auto* uniform = std::get_if<Domain::Uniform>(&domain.kind());
  const auto* normal = std::get_if<Domain::Normal>(&domain.kind());
  const bool is_continuous = uniform != nullptr || normal != nullptr;
  if (value.type() == Value::Type::kInt && !is_continuous) {
    const auto* range = std::get_if<Domain::Integer>(&domain.kind());
    const std::int64_t step = range != nullptr && range->q > 0 ? range->q : 1;
    const std::int64_t moved = whole(value.integer(), factor, step);
    return range != nullptr ? Value(within(*range, moved)) : Value(moved);
  }
  const double moved = value.number() * factor;
  if (uniform != nullptr) return within(*uniform, moved);
  if (normal != nullptr && normal->q > 0) return std::nearbyint(moved / normal->q) * normal->q;
  return moved;
}

// ---- One parameter ------------------------------------------------------------------------------

struct Change {
  Value value;
  std::string how;
};

Change mutate_option(const Value& value, const Value::List& options, double resample_probability,
                     Chance& chance) {
  const auto at = std::find(options.begin(), options.end(), value);
  const bool anew = chance.uniform() < resample_probability || at == options.end();
  if (anew) return {options[chance.index(options.size())], " drawn anew: "};
  const bool is_left = chance.index(2) == 0;
  const auto index = static_cast<std::size_t>(at - options.begin());
  const std::size_t next =
      is_left ? (index == 0 ? 0 : index - 1) : std::min(index + 1, options.size() - 1);
  return {options[next], is_left ? " one back: " : " one on: "};
}

Value drawn(const Domain& domain, const Config& config, Chance& chance) {
  if (!domain.is_function()) return chance.draw(domain);
  return std::get<Domain::SampleFrom>(domain.kind()).function(config);
}

// A value that is not a number, of a function, can only be drawn anew.
Change mutate_value(const Value& value, const Domain& domain, const Config& config,
                    const MutationRules& rules, Chance& chance) {
  const bool anew = chance.uniform() < rules.resample_probability;
  if (anew || !value.is_number()) return {drawn(domain, config, chance), " drawn anew: "};
  const double factor = rules.perturbation_factors[chance.index(rules.perturbation_factors.size())];
  return {multiplied(value, factor, domain), fmt::format(" * {:g} = ", factor)};
}

}  // namespace

std::size_t StreamChance::index(std::size_t count) {
  return static_cast<std::size_t>(random_.integer(0, static_cast<std::int64_t>(count)));
}

Mutated mutate(const Config& config, const SearchSpace& mutations, const MutationRules& rules,
               Chance& chance) {
  Mutated mutated{config, {}};
  for (const Mutable& one : all_of(mutations)) {
    const Value* found = config.find(one.path);
    if (found == nullptr) continue;
    const Value before = *found;
    Change change = one.options != nullptr
                        ? mutate_option(before, *one.options, rules.resample_probability, chance)
                        : mutate_value(before, *one.domain, mutated.config, rules, chance);
    if (!mutated.changes.empty()) mutated.changes += ", ";
    mutated.changes += one.path + " " + to_json(before) + change.how + to_json(change.value);
    mutated.config.set(one.path, std::move(change.value));
  }
  return mutated;
}

std::vector<SpaceComplaint> complaints_about_mutations(const SearchSpace& mutations) {
  std::vector<SpaceComplaint> complaints;
  if (!mutations.is_map()) return {{"", "expected parameters with domains or lists of values"}};
  for (const Mutable& one : all_of(mutations)) {
    if (one.options != nullptr && one.options->empty()) {
      complaints.push_back({one.path, "the list is empty: give the values it may have"});
    } else if (one.domain == nullptr && one.options == nullptr) {
      complaints.push_back({one.path, "is a constant: give a domain or a list of values"});
    } else if (one.domain != nullptr && one.domain->conditional() != nullptr) {
      complaints.push_back({one.path,
                            "its options hold parameters of their own, which a model "
                            "cannot change while it trains: name these instead"});
    } else if (one.domain != nullptr && one.domain->is_grid()) {
      complaints.push_back({one.path, "is a grid_search, which is for config: write choice here"});
    }
  }
  if (all_of(mutations).empty()) complaints.push_back({"", "it names no parameter"});
  return complaints;
}

std::vector<std::string> mutated_paths(const SearchSpace& mutations) {
  std::vector<std::string> paths;
  for (const Mutable& one : all_of(mutations)) paths.push_back(one.path);
  return paths;
}

}  // namespace tune
