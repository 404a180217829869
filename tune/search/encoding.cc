#include "tune/search/encoding.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"

namespace tune {

namespace {

// Above all that is counted: sums and products end here.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 54;
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 53;

std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > kEndless / b ? kEndless : std::min(a * b, kEndless);
}

const std::vector<Value>& options_of(const Parameter& choice) {
  return std::get<Domain::Choice>(choice.domain.domain().kind()).values;
}

[[noreturn]] void refuse_grids(const std::vector<std::string>& paths) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("config: {} {} grid_search, of which every value is tried: a searcher "
                          "that learns from results has no use for it; write choice instead of "
                          "grid_search, or take the searcher basic_variant",
                          join(paths, ", "), paths.size() == 1 ? "is a" : "are"));
}

}  // namespace

Encoding::Encoding(const SearchSpace& space) : frame_(Value::make_map()) {
  std::vector<std::string> grids;
  const auto walk = [&](const SearchSpace& node, const std::string& path,
                        const auto& self) -> Value {
    if (node.is_constant()) return node.constant();
    if (node.is_map()) {
      Value::Map map;
      for (const SpaceMember& member : node.members()) {
        const std::string below = path.empty() ? member.key : path + "/" + member.key;
        map.emplace_back(member.key, self(member.value, below, self));
      }
      return Value::make_map(std::move(map));
    }
    if (node.domain().is_grid()) {
      grids.push_back("'" + path + "'");
    } else if (node.domain().is_function()) {
      functions_.push_back({path, std::get<Domain::SampleFrom>(node.domain().kind()).function});
    } else {
      UnitDomain domain(node.domain());
      if (domain.count() == 1) return domain.value(0);
      parameters_.push_back({path, std::move(domain), {}});
    }
    return {};
  };
  if (!space.is_map()) {
    throw Error(ErrorCode::kBadInput, "config must be a map of parameters, as in {lr: 0.1}");
  }
  frame_ = Config(walk(space, {}, walk));
  if (!grids.empty()) refuse_grids(grids);
  count_features();
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
      count = bounded_product(count, count_of(i));
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
    if (!parameters_[i].condition) count = bounded_product(count, count_of(i));
  }
  if (count > kMostCounted) return std::nullopt;
  return count;
}

// ---- Points -------------------------------------------------------------------------------------

bool Encoding::is_active(std::size_t parameter, const UnitPoint& point) const {
  const auto& condition = parameters_[parameter].condition;
  // The choice before it is settled: an inactive one has the coordinate kInactive.
  if (!condition) return true;
  return point[condition->choice] >= 0 && option(condition->choice, point) == condition->option;
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

UnitPoint Encoding::draw(RandomStream& random) const {
  return settled(UnitPoint(size(), kInactive), random);
}

Config Encoding::decode(const UnitPoint& point) const {
  TUNE_CHECK(point.size() == size());
  Config config = frame_;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_active(i, point)) config.set(parameters_[i].path, parameters_[i].domain.value(point[i]));
  }
  compute_functions(config, functions_);
  return config;
}

// The option whose keys and constants the value has; what is searched below it may be anything.
std::optional<std::size_t> Encoding::option_taken(std::size_t choice, const Value& value) const {
  const std::vector<Value>& options = options_of(parameters_[choice]);
  const std::string above = parameters_[choice].path + "/";
  for (std::size_t option = 0; option < options.size(); ++option) {
    Value bare = value;
    for (const Parameter& parameter : parameters_) {
      if (parameter.condition != Condition{choice, option} || !bare.is_map()) continue;
      const std::string_view below = std::string_view(parameter.path).substr(above.size());
      if (bare.contains(below)) bare.set(below, Value());
    }
    if (bare == options[option]) return option;
  }
  return std::nullopt;
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
        const auto count = static_cast<double>(options_of(parameters_[i]).size());
        unit = domain.cell((static_cast<double>(*option) + 0.5) / count).at;
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
