#include "tune/search/encoding.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/search/presets.h"
#include "tune/search/whole_numbers.h"

namespace tune {

namespace {

// Above all that is counted: sums and products end here.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 54;
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 53;

const std::vector<Value>& options_of(const Parameter& choice) {
  return std::get<Domain::Choice>(choice.domain.domain().kind()).values;
}

double middle_of(std::size_t option, std::size_t options) {
  return (static_cast<double>(option) + 0.5) / static_cast<double>(options);
}

// The options of a choice whose keys and constants what is given has, in part.
std::vector<std::size_t> options_like(const Parameter& parameter, const Config& given) {
  const Value* value = given.find(parameter.path);
  const auto* choice = std::get_if<Domain::Choice>(&parameter.domain.domain().kind());
  if (value == nullptr || choice == nullptr) return {};
  return fitting_options(*choice, *value);
}

[[noreturn]] void refuse_grids(const std::vector<std::string>& paths) {
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("config: {} {} grid_search, of which every value is tried, by the searchers "
                  "basic_variant and grid alone: write choice instead of grid_search, or take one "
                  "of these",
                  join(paths, ", "), paths.size() == 1 ? "is a" : "are"));
}

}  // namespace

// Takes a space apart: parameters, functions and grids, and a frame with null in their places.
class Encoding::Builder {
 public:
  explicit Builder(Encoding& encoding) : encoding_(encoding) {}

  Value walk(const SearchSpace& space, const std::string& path,
             const std::optional<Condition>& condition) {
    if (space.is_constant()) return space.constant();
    if (space.is_domain()) return walk_domain(space.domain(), path, condition);
    Value::Map map;
    for (const SpaceMember& member : space.members()) {
      const std::string below = path.empty() ? member.key : path + "/" + member.key;
      map.emplace_back(member.key, walk(member.value, below, condition));
    }
    return Value::make_map(std::move(map));
  }
  const std::vector<std::string>& grids() const { return grids_; }

 private:
  Value walk_domain(const Domain& domain, const std::string& path,
                    const std::optional<Condition>& condition) {
    if (domain.is_grid()) {
      grids_.push_back("'" + path + "'");
      return {};
    }
    if (domain.is_function()) {
      encoding_.functions_.push_back(
          {{path, std::get<Domain::SampleFrom>(domain.kind()).function}, condition});
      return {};
    }
    if (const Domain::Choice* choice = domain.conditional()) {
      return walk_options(*choice, path, condition);
    }
    UnitDomain unit(domain);
    if (unit.count() == 1) return unit.value(0);
    encoding_.parameters_.push_back({path, std::move(unit), condition});
    return {};
  }
  Value walk_options(const Domain::Choice& choice, const std::string& path,
                     const std::optional<Condition>& condition) {
    if (choice.values.size() == 1) return walk(*choice.spaces[0], path, condition);
    const std::size_t index = encoding_.parameters_.size();
    encoding_.parameters_.push_back({path, UnitDomain(Domain(choice)), condition});
    Domain::Choice framed = choice;
    for (std::size_t i = 0; i < choice.values.size(); ++i) {
      if (!choice.spaces[i]) continue;
      framed.values[i] = walk(*choice.spaces[i], path, Condition{index, i});
    }
    encoding_.parameters_[index].domain = UnitDomain(Domain(std::move(framed)));
    return {};
  }

  Encoding& encoding_;
  std::vector<std::string> grids_;
};

Encoding::Encoding(const SearchSpace& space, const std::vector<std::string>& where)
    : frame_(Value::make_map()), where_(where, space) {
  if (!space.is_map()) {
    throw Error(ErrorCode::kBadInput, "config must be a map of parameters, as in {lr: 0.1}");
  }
  Builder builder(*this);
  frame_ = Config(builder.walk(space, {}, {}));
  if (!builder.grids().empty()) refuse_grids(builder.grids());
  count_features();
  check_where();
}

Encoding::Encoding(std::vector<Parameter> parameters, Config frame)
    : parameters_(std::move(parameters)), frame_(std::move(frame)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].condition) continue;
    const Condition condition = *parameters_[i].condition;
    TUNE_CHECK(condition.choice < i);
    TUNE_CHECK(parameters_[condition.choice].domain.is_choice() == true);
    TUNE_CHECK(condition.option < options_of(parameters_[condition.choice]).size());
  }
  count_features();
}

void Encoding::check_where() {
  if (where_.empty()) return;
  for (const WhereRule& rule : where_.rules()) {
    for (const std::string& path : rule.paths()) {
      where_names_functions_ |= is_computed(path);
    }
  }
  // Functions are the user's: they are not called here.
  RandomStream random(0, "where", 0);
  check_that_some_hold([&](int) { return where_.broken_by(without_functions(draw_once(random))); });
}

bool Encoding::is_computed(const std::string& path) const {
  return std::any_of(functions_.begin(), functions_.end(), [&](const Function& one) {
    return path == one.function.path || path.starts_with(one.function.path + "/");
  });
}

void Encoding::count_features() {
  feature_count_ = 0;
  for (const Parameter& parameter : parameters_) {
    feature_count_ += parameter.domain.is_choice() ? options_of(parameter).size() : 1;
  }
}

// ---- How many configurations --------------------------------------------------------------------

// The configurations of what one option makes active.
std::uint64_t Encoding::below(std::size_t choice, std::size_t option) const {
  std::uint64_t count = 1;
  for (std::size_t i = choice + 1; i < parameters_.size(); ++i) {
    if (parameters_[i].condition == Condition{choice, option}) {
      count = bounded_product(count, count_of(i), kEndless);
    }
  }
  return count;
}

std::uint64_t Encoding::count_of(std::size_t parameter) const {
  const UnitDomain& domain = parameters_[parameter].domain;
  if (!domain.is_choice()) return domain.count().value_or(kEndless);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < options_of(parameters_[parameter]).size(); ++i) {
    count = std::min(count + below(parameter, i), kEndless);
  }
  return count;
}

std::optional<std::uint64_t> Encoding::count() const {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!parameters_[i].condition) count = bounded_product(count, count_of(i), kEndless);
  }
  if (count > kMostCounted) return std::nullopt;
  return count;
}

// ---- Points -------------------------------------------------------------------------------------

bool Encoding::is_met(const std::optional<Condition>& condition, const UnitPoint& point) const {
  // The choice before it is settled: an inactive one has the coordinate kInactive.
  if (!condition) return true;
  return point[condition->choice] >= 0 && option(condition->choice, point) == condition->option;
}

bool Encoding::is_active(std::size_t parameter, const UnitPoint& point) const {
  return is_met(parameters_[parameter].condition, point);
}

std::size_t Encoding::option(std::size_t parameter, const UnitPoint& point) const {
  const auto count = static_cast<double>(options_of(parameters_[parameter]).size());
  return static_cast<std::size_t>(std::clamp(point[parameter] * count, 0.0, count - 1));
}

UnitPoint Encoding::settled(UnitPoint point, RandomStream& random) const {
  TUNE_CHECK(point.size() == size());
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_active(i, point)) {
      point[i] = kInactive;
    } else {
      const double unit = point[i] < 0 ? random.uniform() : point[i];
      point[i] = parameters_[i].domain.cell(unit).at;
    }
  }
  return point;
}

UnitPoint Encoding::draw_once(RandomStream& random) const {
  return settled(UnitPoint(size(), kInactive), random);
}

UnitPoint Encoding::draw(RandomStream& random) const {
  UnitPoint point = draw_once(random);
  for (int i = 1; i < kMostWhereDraws && !holds(point); ++i) point = draw_once(random);
  return point;
}

Encoded Encoding::completed(const Config& given, RandomStream& random) const {
  UnitPoint point(size(), kInactive);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_active(i, point)) continue;
    double unit = random.uniform();
    if (const std::vector<std::size_t> fitting = options_for(i, given); !fitting.empty()) {
      const auto at = static_cast<std::size_t>(unit * static_cast<double>(fitting.size()));
      unit = middle_of(fitting[at], options_of(parameters_[i]).size());
    }
    point[i] = parameters_[i].domain.cell(unit).at;
  }
  Config config = without_functions(point);
  for (const auto& [path, value] : given.leaves()) config.set(path, *value);
  return encode(config);
}

// Those of a choice that what is given for it may be; none: there is nothing to heed.
std::vector<std::size_t> Encoding::options_for(std::size_t choice, const Config& given) const {
  const std::vector<std::size_t> fitting = options_like(parameters_[choice], given);
  std::vector<std::size_t> found = fitting;
  std::erase_if(found, [&](std::size_t option) { return !may_take(choice, option, given); });
  return found.empty() ? fitting : found;
}

// Whether the option can draw what is given for its parameters.
bool Encoding::may_take(std::size_t choice, std::size_t option, const Config& given) const {
  for (std::size_t i = choice + 1; i < size(); ++i) {
    const auto& [path, domain, condition] = parameters_[i];
    const Value* value = given.find(path);
    if (condition != Condition{choice, option} || value == nullptr || domain.unit(*value)) continue;
    const std::vector<std::size_t> below = options_like(parameters_[i], given);
    if (std::ranges::none_of(below, [&](std::size_t one) { return may_take(i, one, given); })) {
      return false;
    }
  }
  return true;
}

const WhereRule* Encoding::broken_by(const UnitPoint& point) const {
  if (where_.empty()) return nullptr;
  return where_.broken_by(where_names_functions_ ? decode(point) : without_functions(point));
}

Config Encoding::without_functions(const UnitPoint& point) const {
  TUNE_CHECK(point.size() == size());
  Config config = frame_;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_active(i, point)) config.set(parameters_[i].path, parameters_[i].domain.value(point[i]));
  }
  return config;
}

Config Encoding::decode(const UnitPoint& point) const {
  Config config = without_functions(point);
  std::vector<SampleFunction> functions;
  for (const auto& [function, condition] : functions_) {
    if (is_met(condition, point)) functions.push_back(function);
  }
  compute_functions(config, functions);
  return config;
}

// Whether a value has the keys and constants of an option; what is searched or computed below it
// may be anything.
bool Encoding::may_be(std::size_t choice, std::size_t option, const Value& value) const {
  Value bare = value;
  const std::size_t above = parameters_[choice].path.size() + 1;
  const auto bare_at = [&](const std::string& path, const std::optional<Condition>& condition) {
    if (condition != Condition{choice, option} || !bare.is_map()) return;
    const std::string_view below = std::string_view(path).substr(above);
    if (bare.contains(below)) bare.set(below, Value());
  };
  for (const Parameter& parameter : parameters_) bare_at(parameter.path, parameter.condition);
  for (const auto& [function, condition] : functions_) bare_at(function.path, condition);
  return are_alike(bare, options_of(parameters_[choice])[option]);
}

// Whether what the option searches can be what the value has.
bool Encoding::has_own_values(std::size_t choice, std::size_t option, const Value& value) const {
  const std::size_t above = parameters_[choice].path.size() + 1;
  for (std::size_t i = choice + 1; i < size(); ++i) {
    const auto& [path, domain, condition] = parameters_[i];
    if (condition != Condition{choice, option}) continue;
    const Value* below = value.find(std::string_view(path).substr(above));
    if (below == nullptr) return false;
    if (!domain.unit(*below) && !(domain.is_choice() && option_taken(i, *below))) return false;
  }
  return true;
}

// The option that a value is, also where only what is searched tells options apart.
std::optional<std::size_t> Encoding::option_taken(std::size_t choice, const Value& value) const {
  std::optional<std::size_t> taken;
  for (std::size_t i = 0; i < options_of(parameters_[choice]).size(); ++i) {
    if (!may_be(choice, i, value)) continue;
    if (has_own_values(choice, i, value)) return i;
    if (!taken) taken = i;
  }
  return taken;
}

Encoded Encoding::encode(const Config& config) const {
  UnitPoint point(size(), kInactive);
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_active(i, point)) continue;
    const auto& [path, domain, condition] = parameters_[i];
    const Value* value = config.find(path);
    if (value == nullptr) return {{}, fmt::format("'{}' is missing", path)};
    std::optional<double> unit = domain.unit(*value);
    if (!unit && domain.is_choice()) {
      if (const std::optional<std::size_t> option = option_taken(i, *value)) {
        unit = domain.cell(middle_of(*option, options_of(parameters_[i]).size())).at;
      }
    }
    if (!unit) {
      return {{},
              fmt::format("'{}' is {}, which {} never draws", path, to_json(*value),
                          to_json(domain.domain().describe()))};
    }
    point[i] = *unit;
  }
  return {std::move(point), {}};
}

std::string Encoding::difference(const Config& config, const UnitPoint& point) const {
  const Config own = without_functions(point);
  const auto counts = [&](const std::string& path) {
    return !is_computed(path) &&
           std::ranges::none_of(parameters_, [&](const auto& one) { return one.path == path; });
  };
  for (const auto& [path, value] : own.leaves()) {
    if (!counts(path)) continue;
    const Value* other = config.find(path);
    if (other == nullptr) return fmt::format("'{}' is missing", path);
    if (!are_alike(*other, *value)) {
      return fmt::format("'{}' is {}, not {}", path, to_json(*other), to_json(*value));
    }
  }
  for (const auto& [path, value] : config.leaves()) {
    if (counts(path) && own.find(path) == nullptr) {
      return fmt::format("'{}' is {}, and no key here", path, to_json(*value));
    }
  }
  return {};
}

void Encoding::write_features(const UnitPoint& point, std::span<double> features) const {
  TUNE_CHECK(features.size() == feature_count_);
  std::size_t next = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!parameters_[i].domain.is_choice()) {
      features[next++] = point[i] < 0 ? 0.5 : point[i];
      continue;
    }
    const std::size_t options = options_of(parameters_[i]).size();
    std::fill_n(features.begin() + static_cast<std::ptrdiff_t>(next), options, 0.0);
    if (point[i] >= 0) features[next + option(i, point)] = kOneHot;
    next += options;
  }
}

std::uint64_t fingerprint(const UnitPoint& point) {
  return hash64({reinterpret_cast<const char*>(point.data()), point.size() * sizeof(double)});
}

}  // namespace tune
