#include "tune/search/presets.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/key_path.h"
#include "core/strings.h"
#include "tune/search/unit_domain.h"

namespace tune {

namespace {

SearchSpace option_space(const Domain::Choice& choice, std::size_t option) {
  const bool is_space = !choice.spaces.empty() && choice.spaces[option] != nullptr;
  return is_space ? *choice.spaces[option] : SearchSpace(choice.values[option]);
}

// Whether a value may be what the space draws, with keys that it lacks added. `strange`: keys that
// the space does not have do not matter, and the first of them is left there.
bool fits(const Value& value, const SearchSpace& space, const std::string& path,
          std::string* strange) {
  if (space.is_constant()) return are_alike(value, space.constant());
  if (space.is_domain()) {
    const Domain::Choice* choice = space.domain().conditional();
    return choice == nullptr || strange != nullptr || !fitting_options(*choice, value).empty();
  }
  if (!value.is_map()) return false;
  return std::all_of(value.map().begin(), value.map().end(), [&](const Member& member) {
    const SearchSpace* below = space.find(member.key);
    const std::string below_path = join_path(path, member.key);
    if (below != nullptr) return fits(member.value, *below, below_path, strange);
    if (strange != nullptr && strange->empty()) *strange = below_path;
    return strange != nullptr;
  });
}

[[noreturn]] void refuse_point(std::size_t index, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("points_to_evaluate/{}: {}", index, why));
}

class PresetCheck {
 public:
  explicit PresetCheck(std::size_t index) : index_(index) {}

  // Every value of a preset must replace a domain or a constant.
  void check_map(const SearchSpace& space, const Value& preset, const std::string& path) const {
    for (const Member& member : preset.map()) {
      const std::string below = join_path(path, member.key);
      const SearchSpace* node = space.find(member.key);
      if (node == nullptr) refuse_key(space, member.key, below);
      if (node->is_domain() && node->domain().conditional() != nullptr) {
        check_choice(*node->domain().conditional(), member.value, below);
      }
      if (!node->is_map()) continue;
      if (!member.value.is_map()) {
        refuse_point(
            index_, fmt::format("'{}' is a map in config, found {}", below, to_json(member.value)));
      }
      check_map(*node, member.value, below);
    }
  }

 private:
  void check_choice(const Domain::Choice& choice, const Value& value,
                    const std::string& path) const {
    const std::vector<std::size_t> fitting = fitting_options(choice, value);
    if (!fitting.empty()) return;
    for (std::size_t i = 0; i < choice.values.size(); ++i) {
      const SearchSpace option = option_space(choice, i);
      std::string strange;
      if (!option.is_map() || !fits(value, option, path, &strange)) continue;
      if (strange.empty()) {  // what does not fit is of a choice within it
        check_map(option, value, path);
        continue;
      }
      refuse_point(index_, fmt::format("'{}' is not a key of the option {} of '{}'", strange,
                                       to_json(option.describe()), path));
    }
    refuse_point(index_, fmt::format("'{}' is {}, which none of its options is: {}", path,
                                     to_json(value), to_json(Domain(choice).describe())));
  }
  [[noreturn]] void refuse_key(const SearchSpace& space, const std::string& key,
                               const std::string& path) const {
    std::vector<std::string> keys;
    for (const SpaceMember& known : space.members()) keys.push_back(known.key);
    const std::string near = nearest(key, keys);
    refuse_point(index_, fmt::format("there is no '{}' in config{}", path,
                                     near.empty() ? fmt::format(", there are: {}", join(keys, ", "))
                                                  : fmt::format(" (did you mean '{}'?)", near)));
  }

  std::size_t index_;
};

// ---- Types --------------------------------------------------------------------------------------

// A number in the type of another one, where that changes it by nothing.
Value in_type_of(const Value& own, const Value& value) {
  if (own.type() == value.type() || !own.is_number() || !value.is_number()) return value;
  const std::optional<std::int64_t> whole = whole_number(value);
  if (!whole) return value;
  if (own.type() == Value::Type::kInt) return *whole;
  const Value number(static_cast<double>(*whole));
  return whole_number(number) == whole ? number : value;
}

// The one of the values that is written in another way.
Value as_one_of(const std::vector<Value>& values, const Value& value) {
  if (std::ranges::find(values, value) != values.end()) return value;
  const auto found =
      std::ranges::find_if(values, [&](const Value& one) { return are_alike(one, value); });
  return found != values.end() ? *found : value;
}

Value in_own_types(const SearchSpace& space, const Value& value);

Value as_drawn(const Domain& domain, const Value& value) {
  const Domain::Kind& kind = domain.kind();
  if (std::holds_alternative<Domain::Integer>(kind)) return in_type_of(Value(0), value);
  if (const auto* grid = std::get_if<Domain::Grid>(&kind)) return as_one_of(grid->values, value);
  if (domain.is_function()) return value;
  const auto* choice = std::get_if<Domain::Choice>(&kind);
  if (choice == nullptr) return in_type_of(Value(0.0), value);
  if (choice->spaces.empty()) return as_one_of(choice->values, value);
  std::optional<Value> found;
  for (const std::size_t option : fitting_options(*choice, value)) {
    Value one = in_own_types(option_space(*choice, option), value);
    if (found && *found != one) return value;  // what is drawn decides
    found = std::move(one);
  }
  return found.value_or(value);
}

Value in_own_types(const SearchSpace& space, const Value& value) {
  if (space.is_constant()) return in_type_of(space.constant(), value);
  if (space.is_domain()) return as_drawn(space.domain(), value);
  if (!value.is_map()) return value;
  Value::Map map;
  for (const auto& [key, below] : value.map()) {
    const SearchSpace* node = space.find(key);
    map.emplace_back(key, node != nullptr ? in_own_types(*node, below) : below);
  }
  return Value::make_map(std::move(map));
}

}  // namespace

std::vector<std::size_t> fitting_options(const Domain::Choice& choice, const Value& value) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    if (fits(value, option_space(choice, i), {}, nullptr)) fitting.push_back(i);
  }
  return fitting;
}

std::vector<Config> checked_presets(const SearchSpace& space, const std::vector<Config>& presets,
                                    std::int64_t num_samples) {
  std::vector<Config> checked;
  for (std::size_t i = 0; i < presets.size(); ++i) {
    PresetCheck(i).check_map(space, presets[i], {});
    checked.emplace_back(in_own_types(space, presets[i]));
  }
  if (num_samples <= 0 || presets.size() <= static_cast<std::uint64_t>(num_samples)) return checked;
  throw Error(ErrorCode::kBadInput,
              fmt::format("points_to_evaluate: {} configurations do not fit into num_samples {}: "
                          "raise num_samples to at least {}",
                          presets.size(), num_samples, presets.size()));
}

}  // namespace tune
