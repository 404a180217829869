#include "tune/search/unit_domain.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tune/search/normal_distribution.h"
#include "tune/search/quantised.h"
#include "tune/search/whole_numbers.h"

namespace tune {

namespace {

constexpr double kMostWhole = 0x1p53;
// The normal scale ends here on both sides: coordinates nearer to 0 or 1 are not told apart.
constexpr double kTail = 1e-15;
// The share of a normal domain's draws beyond 3.5 standard deviations, on either side.
constexpr double kRare = 2.326e-4;

// For b > 0.
std::int64_t size_of(const std::vector<Value>& values) {
  return static_cast<std::int64_t>(values.size());
}

}  // namespace

bool are_alike(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (!a.is_map() || !b.is_map()) return false;
  return a.map().size() == b.map().size() &&
         std::all_of(a.map().begin(), a.map().end(), [&](const Member& member) {
           const Value* other = b.find(member.key);
           return other != nullptr && are_alike(member.value, *other);
         });
}

std::optional<std::int64_t> whole_number(const Value& value) {
  if (!value.is_number()) return std::nullopt;
  if (value.type() == Value::Type::kInt) return value.integer();
  const double number = value.number();
  if (!(std::abs(number) < 0x1p63) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

UnitDomain::UnitDomain(Domain domain) : domain_(std::move(domain)) {
  TUNE_CHECK(domain_.is_grid() == false);
  TUNE_CHECK(domain_.is_function() == false);
  if (const auto* d = std::get_if<Domain::Uniform>(&domain_.kind())) {
    q_ = d->q;
    lay(d->log ? Scale::kLog : Scale::kLinear, d->low, d->high,
        d->q > 0 ? Lattice::kMultiples : Lattice::kNone);
  } else if (const auto* d = std::get_if<Domain::Normal>(&domain_.kind())) {
    q_ = d->q;
    lay(Scale::kNormal, d->mean, d->sd, d->q > 0 ? Lattice::kMultiples : Lattice::kNone);
  } else if (const auto* d = std::get_if<Domain::Integer>(&domain_.kind())) {
    step_ = std::max<std::int64_t>(d->q, 1);
    first_ = d->q > 0 ? -floor_division(-d->low, d->q) : d->low;
    last_ = d->q > 0 ? floor_division(d->high, d->q) : d->high - 1;
    lay(d->log ? Scale::kLog : Scale::kLinear, static_cast<double>(first_),
        static_cast<double>(last_) + 1, Lattice::kWhole);
  } else if (const auto* d = std::get_if<Domain::Choice>(&domain_.kind())) {
    last_ = size_of(d->values) - 1;
    lay(Scale::kLinear, 0, static_cast<double>(d->values.size()), Lattice::kWhole);
  }
}

void UnitDomain::lay(Scale scale, double low, double high, Lattice lattice) {
  scale_ = scale;
  low_ = low;
  high_ = high;
  lattice_ = lattice;
}

bool UnitDomain::is_choice() const {
  return std::holds_alternative<Domain::Choice>(domain_.kind());
}

std::optional<std::uint64_t> UnitDomain::count() const {
  double count = HUGE_VAL;
  if (lattice_ == Lattice::kWhole) {
    count = static_cast<double>(last_) - static_cast<double>(first_) + 1;
  } else if (lattice_ == Lattice::kMultiples && scale_ != Scale::kNormal) {
    count = std::round(high_ / q_) - std::round(low_ / q_) + 1;
  }
  if (!(count <= kMostWhole)) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

double UnitDomain::number(double unit) const {
  const double u = std::clamp(unit, 0.0, 1.0);
  switch (scale_) {
    case Scale::kLinear:
      return low_ + u * (high_ - low_);
    case Scale::kLog:
      return std::exp(std::log(low_) + u * (std::log(high_) - std::log(low_)));
    case Scale::kNormal:
      break;
  }
  return low_ + high_ * normal_quantile(std::clamp(u, kTail, 1 - kTail));
}

double UnitDomain::coordinate(double number) const {
  double unit = 0;
  switch (scale_) {
    case Scale::kLinear:
      unit = (number - low_) / (high_ - low_);
      break;
    case Scale::kLog:
      unit = (std::log(number) - std::log(low_)) / (std::log(high_) - std::log(low_));
      break;
    case Scale::kNormal:
      unit = normal_cdf((number - low_) / high_);
      break;
  }
  return std::clamp(unit, 0.0, 1.0);
}

std::int64_t UnitDomain::whole(double unit) const {
  const double floor = std::floor(number(unit));
  // Rounding may reach the bound; and not every double has its place among the integers.
  if (floor >= static_cast<double>(last_)) return last_;
  if (floor <= static_cast<double>(first_)) return first_;
  return static_cast<std::int64_t>(floor);
}

double UnitDomain::multiple(double unit) const {
  const double value = quantised(number(unit), q_);
  return scale_ == Scale::kNormal ? value : std::clamp(value, low_, high_);
}

Value UnitDomain::value(double unit) const {
  if (lattice_ == Lattice::kMultiples) return multiple(unit);
  if (lattice_ == Lattice::kWhole) {
    const std::int64_t found = whole(unit);
    const auto* choice = std::get_if<Domain::Choice>(&domain_.kind());
    if (choice == nullptr) return found * step_;
    return choice->values[static_cast<std::size_t>(found)];
  }
  const double value = number(unit);
  if (scale_ == Scale::kNormal) return value;
  // The upper bound is never drawn.
  return std::clamp(value, low_, std::nextafter(high_, low_));
}

UnitCell UnitDomain::cell(double unit) const {
  if (scale_ == Scale::kNormal) unit = std::clamp(unit, kRare, 1 - kRare);
  switch (lattice_) {
    case Lattice::kNone:
      break;
    case Lattice::kWhole: {
      UnitCell cell = whole_cell(whole(unit));
      if (is_choice()) cell.at = whole_cell(first_alike(whole(unit))).at;
      return cell;
    }
    case Lattice::kMultiples:
      return multiple_cell(multiple(unit));
  }
  const double at = std::clamp(unit, 0.0, 1.0);
  return {at, at, at};
}

// Maps that look alike may differ in what is searched below them.
std::int64_t UnitDomain::first_alike(std::int64_t option) const {
  const auto& values = std::get<Domain::Choice>(domain_.kind()).values;
  const Value& value = values[static_cast<std::size_t>(option)];
  if (value.is_map()) return option;
  return std::find(values.begin(), values.end(), value) - values.begin();
}

UnitCell UnitDomain::whole_cell(std::int64_t number) const {
  const double low = coordinate(static_cast<double>(number));
  const double high = coordinate(static_cast<double>(number) + 1);
  return {low, (low + high) / 2, high};
}

UnitCell UnitDomain::multiple_cell(double number) const {
  double low = number - q_ / 2;
  double high = number + q_ / 2;
  if (scale_ != Scale::kNormal) {
    low = std::max(low, low_);
    high = std::min(high, high_);
  }
  return {coordinate(low), coordinate(number), coordinate(high)};
}

std::optional<double> UnitDomain::unit(const Value& value) const {
  if (const auto* choice = std::get_if<Domain::Choice>(&domain_.kind())) {
    for (std::int64_t i = 0; i < size_of(choice->values); ++i) {
      if (are_alike(choice->values[static_cast<std::size_t>(i)], value)) return whole_cell(i).at;
    }
    return std::nullopt;
  }
  if (lattice_ == Lattice::kWhole) {
    const std::optional<std::int64_t> number = whole_number(value);
    if (!number || *number % step_ != 0) return std::nullopt;
    const std::int64_t index = *number / step_;
    if (index < first_ || index > last_) return std::nullopt;
    return whole_cell(index).at;
  }
  if (!value.is_number() || !std::isfinite(value.number())) return std::nullopt;
  const double number = value.number();
  if (scale_ != Scale::kNormal && (number < low_ || number > high_)) return std::nullopt;
  if (lattice_ == Lattice::kMultiples && !is_multiple(number, q_)) return std::nullopt;
  return coordinate(number);
}

}  // namespace tune
