#include "tune/search/search_space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/search/quantised.h"
#include "tune/search/whole_numbers.h"

namespace tune {

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {}", what, why));
}

void check_range(const std::string& name, double low, double high, bool log) {
  const std::string what = fmt::format("{}({}, {})", name, low, high);
  if (!std::isfinite(low) || !std::isfinite(high)) refuse(what, "the bounds must be finite");
  if (!(low < high)) refuse(what, "the lower bound must be below the upper one");
  if (!std::isfinite(high - low)) refuse(what, "the bounds are too far apart");
  if (log && !(low > 0)) {
    refuse(what, "the lower bound must be above 0 (bounds are values, not exponents)");
  }
}

void check_steps(const std::string& name, double low, double high, double q) {
  const std::string what = fmt::format("{}({}, {}, {})", name, low, high, q);
  if (!(q > 0) || !std::isfinite(q)) refuse(what, "q must be above 0");
  if (!is_multiple(low, q) || !is_multiple(high, q)) {
    refuse(what, fmt::format("both bounds must be multiples of q, {}", q));
  }
}

void check_integers(const std::string& name, std::int64_t low, std::int64_t high) {
  if (low >= high) {
    refuse(fmt::format("{}({}, {})", name, low, high),
           "the lower bound must be below the upper one, which is excluded");
  }
}

void check_normal(const std::string& name, double mean, double sd) {
  if (std::isfinite(mean) && sd > 0 && std::isfinite(sd)) return;
  refuse(fmt::format("{}({}, {})", name, mean, sd), "sd must be above 0 and both finite");
}

// For b > 0.
struct Draw {
  RandomStream& random;

  Value operator()(const Domain::Uniform& d) const {
    const double u = random.uniform();
    double value = d.log ? std::exp(std::log(d.low) + u * (std::log(d.high) - std::log(d.low)))
                         : d.low + u * (d.high - d.low);
    if (d.q > 0) return std::clamp(quantised(value, d.q), d.low, d.high);
    // Rounding may reach the excluded bound.
    if (value >= d.high) value = std::nextafter(d.high, d.low);
    return std::max(value, d.low);
  }
  Value operator()(const Domain::Integer& d) const {
    if (d.q > 0) {
      const std::int64_t first = -floor_division(-d.low, d.q);
      return d.q * random.integer(first, floor_division(d.high, d.q) + 1);
    }
    if (!d.log) return random.integer(d.low, d.high);
    const double low = std::log(static_cast<double>(d.low));
    const double high = std::log(static_cast<double>(d.high));
    const double value = std::floor(std::exp(low + random.uniform() * (high - low)));
    if (value >= static_cast<double>(d.high)) return d.high - 1;  // rounding reached the bound
    return std::clamp(static_cast<std::int64_t>(value), d.low, d.high - 1);
  }
  Value operator()(const Domain::Normal& d) const {
    const double value = d.mean + d.sd * random.normal();
    return d.q > 0 ? quantised(value, d.q) : value;
  }
  Value operator()(const Domain::Choice& d) const {
    return d.values[static_cast<std::size_t>(
        random.integer(0, static_cast<std::int64_t>(d.values.size())))];
  }
  Value operator()(const Domain::Grid&) const {
    TUNE_CHECK(false);
    return {};
  }
  Value operator()(const Domain::SampleFrom&) const {
    TUNE_CHECK(false);
    return {};
  }
};

}  // namespace

Value Domain::draw(RandomStream& random) const {
  return std::visit(Draw{random}, kind_);
}

const Domain::Choice* Domain::conditional() const {
  const auto* choice = std::get_if<Choice>(&kind_);
  return choice != nullptr && !choice->spaces.empty() ? choice : nullptr;
}

// ---- Domains ------------------------------------------------------------------------------------

namespace {

void check_option(const SearchSpace& option) {
  if (option.is_domain()) {
    refuse("choice", fmt::format("the option {} is a domain by itself: an option is a value, or a "
                                 "map of keys that may hold domains",
                                 to_json(option.domain().describe())));
  }
  for (const auto& [path, domain] : option.domains()) {
    if (!domain->is_grid()) continue;
    refuse("choice",
           fmt::format("'{}' of the option {} is a grid_search: a grid has the same cells "
                       "whatever is drawn; write choice instead",
                       path, to_json(option.describe())));
  }
}

}  // namespace

Domain uniform(double low, double high) {
  check_range("uniform", low, high, false);
  return Domain(Domain::Uniform{low, high, 0, false});
}
Domain quniform(double low, double high, double q) {
  check_range("quniform", low, high, false);
  check_steps("quniform", low, high, q);
  return Domain(Domain::Uniform{low, high, q, false});
}
Domain loguniform(double low, double high) {
  check_range("loguniform", low, high, true);
  return Domain(Domain::Uniform{low, high, 0, true});
}
Domain qloguniform(double low, double high, double q) {
  check_range("qloguniform", low, high, true);
  check_steps("qloguniform", low, high, q);
  return Domain(Domain::Uniform{low, high, q, true});
}
Domain randint(std::int64_t low, std::int64_t high) {
  check_integers("randint", low, high);
  return Domain(Domain::Integer{low, high, 0, false});
}
Domain qrandint(std::int64_t low, std::int64_t high, std::int64_t q) {
  const std::string what = fmt::format("qrandint({}, {}, {})", low, high, q);
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  if (q < 1) refuse(what, "q must be at least 1");
  if (low < -kLimit || high > kLimit) refuse(what, "the bounds must be within 2^62 of 0");
  if (low > high || -floor_division(-low, q) > floor_division(high, q)) {
    refuse(what, "there is no multiple of q from the lower to the upper bound");
  }
  return Domain(Domain::Integer{low, high, q, false});
}
Domain lograndint(std::int64_t low, std::int64_t high) {
  check_integers("lograndint", low, high);
  if (low < 1) {
    refuse(fmt::format("lograndint({}, {})", low, high),
           "the lower bound must be above 0 (bounds are values, not exponents)");
  }
  return Domain(Domain::Integer{low, high, 0, true});
}
Domain randn(double mean, double sd) {
  check_normal("randn", mean, sd);
  return Domain(Domain::Normal{mean, sd, 0});
}
Domain qrandn(double mean, double sd, double q) {
  check_normal("qrandn", mean, sd);
  if (!(q > 0) || !std::isfinite(q)) {
    refuse(fmt::format("qrandn({}, {}, {})", mean, sd, q), "q must be above 0");
  }
  return Domain(Domain::Normal{mean, sd, q});
}
Domain choice(std::initializer_list<SearchSpace> options) {
  return choice(std::vector<SearchSpace>(options));
}
Domain choice(std::vector<SearchSpace> options) {
  Domain::Choice choice;
  bool has_domains = false;
  for (SearchSpace& option : options) {
    check_option(option);
    const bool is_space = !option.placed_domains().empty();
    has_domains = has_domains || is_space;
    choice.values.push_back(option.frame());
    choice.spaces.push_back(is_space ? std::make_shared<const SearchSpace>(std::move(option))
                                     : nullptr);
  }
  if (choice.values.empty()) refuse("choice([])", "give at least one value");
  if (!has_domains) choice.spaces.clear();
  return Domain(std::move(choice));
}
Domain choice(std::vector<Value> values) {
  if (values.empty()) refuse("choice([])", "give at least one value");
  return Domain(Domain::Choice{std::move(values)});
}
Domain grid_search(std::initializer_list<Value> values) {
  return grid_search(std::vector<Value>(values));
}
Domain grid_search(std::vector<Value> values) {
  if (values.empty()) refuse("grid_search([])", "give at least one value");
  return Domain(Domain::Grid{std::move(values)});
}
Domain sample_from(std::function<Value(const Config&)> function) {
  if (!function) refuse("sample_from", "the function is empty");
  return Domain(Domain::SampleFrom{std::move(function)});
}

// ---- Spaces -------------------------------------------------------------------------------------

SpaceMember::SpaceMember(std::string key, SearchSpace value)
    : key(Member(std::move(key), Value()).key), value(std::move(value)) {}

SearchSpace::SearchSpace(std::initializer_list<SpaceMember> members)
    : node_(std::vector<SpaceMember>{}) {
  for (const SpaceMember& member : members) {
    if (find(member.key) != nullptr) {
      refuse("config", fmt::format("the key '{}' is given twice", member.key));
    }
    std::get<std::vector<SpaceMember>>(node_).push_back(member);
  }
}

SearchSpace::SearchSpace(Value constant) {
  if (!constant.is_map()) {
    node_ = std::move(constant);
    return;
  }
  std::vector<SpaceMember> members;
  for (Member& member : constant.map()) {
    members.emplace_back(std::move(member.key), SearchSpace(std::move(member.value)));
  }
  node_ = std::move(members);
}

const std::vector<SpaceMember>& SearchSpace::members() const {
  TUNE_CHECK(is_map());
  return std::get<std::vector<SpaceMember>>(node_);
}

const SearchSpace* SearchSpace::find(std::string_view path) const {
  if (!is_map()) return nullptr;
  const std::size_t slash = path.find('/');
  for (const SpaceMember& member : members()) {
    if (member.key != path.substr(0, slash)) continue;
    return slash == std::string_view::npos ? &member.value
                                           : member.value.find(path.substr(slash + 1));
  }
  return nullptr;
}

}  // namespace tune
