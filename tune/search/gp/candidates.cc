#include "tune/search/gp/candidates.h"

#include <algorithm>
#include <cmath>

namespace tune::search::gp {

namespace {

constexpr double kMovedParameters = 20;
constexpr double kChanceOfOption =
    0.15;  // that a choice changes; fewer when there are many choices

double moved(double unit, double noise, const UnitDomain& domain, RandomStream& random) {
  const UnitCell cell = domain.cell(unit);
  if (std::abs(noise) >= cell.width()) return std::clamp(unit + noise, 0.0, 1.0);
  if (random.uniform() * cell.width() >= std::abs(noise)) return unit;
  // Half of the next cell's width is unknown here; a hair beyond the bound is in it.
  const double beyond = noise > 0 ? cell.high + 1e-9 : cell.low - 1e-9;
  return std::clamp(beyond, 0.0, 1.0);
}

double other_option(double unit, const UnitDomain& domain, RandomStream& random) {
  const auto count = static_cast<std::int64_t>(domain.count().value_or(1));
  if (count < 2) return unit;
  const auto old = static_cast<std::int64_t>(unit * static_cast<double>(count));
  const std::int64_t drawn = random.integer(0, count - 1);
  const std::int64_t option = drawn + (drawn >= old ? 1 : 0);
  return (static_cast<double>(option) + 0.5) / static_cast<double>(count);
}

}  // namespace

UnitPoint near(const UnitPoint& point, const Move& move, const Encoding& encoding,
               RandomStream& random) {
  const auto& parameters = encoding.parameters();
  const auto count = static_cast<double>(parameters.size());
  const double chance = std::min(move.share, kMovedParameters / count);
  const auto choices = static_cast<double>(
      std::count_if(parameters.begin(), parameters.end(),
                    [](const Parameter& parameter) { return parameter.domain.is_choice(); }));
  const double chance_of_option = std::min(kChanceOfOption, 1 / std::max(choices, 1.0));
  UnitPoint result = point;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (result[i] < 0) continue;
    const UnitDomain& domain = parameters[i].domain;
    if (domain.is_choice()) {
      if (random.uniform() < chance_of_option) result[i] = other_option(result[i], domain, random);
    } else if (chance >= 1 || random.uniform() < chance) {
      result[i] = moved(result[i], move.scale * random.normal(), domain, random);
    }
  }
  return encoding.settled(std::move(result), random);
}

}  // namespace tune::search::gp
