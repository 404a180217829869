#include "tune/search/tpe/density.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "tune/search/normal_distribution.h"
#include "tune/search/tpe/kernel_norms.h"
#include "tune/search/tpe/normal_mass.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kPrior = 0;  // its place among the kernels

template <class Real>
constexpr Real kRootHalf = std::numbers::sqrt2_v<Real> / 2;

bool has_cells(const UnitDomain& domain) {
  return domain.cell(0.5).width() >= kNarrowCell;
}

// Where in the weights' cumulated sum a number in [0, 1) falls.
std::size_t drawn_kernel(const std::vector<double>& weights, double unit) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    sum += weights[i];
    if (unit < sum) return i;
  }
  return weights.size() - 1;
}

std::size_t options_in(const UnitDomain& domain) {
  return static_cast<std::size_t>(domain.count().value_or(1));
}

}  // namespace

template <class Real>
Density<Real>::Density(const Encoding& encoding, const SubSpace& sub_space,
                       const Columns<Real>& points)
    : encoding_(encoding) {
  const auto first = points.column(sub_space.parameters.front());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] >= 0) active_.push_back(i);
  }
  trials_ = active_.size();
  weights_ = kernel_weights(trials_);
  std::rotate(weights_.begin(), weights_.end() - 1, weights_.end());
  columns_.kernels = in_blocks(trials_ + 1);
  columns_.constants.assign(columns_.kernels, std::numeric_limits<Real>::lowest());
  for (std::size_t i = 0; i <= trials_; ++i) {
    columns_.constants[i] = std::log(static_cast<Real>(weights_[i]));
  }
  for (const std::size_t parameter : sub_space.parameters) {
    if (is_choice(parameter)) {
      add_options(parameter, points);
    } else if (has_cells(encoding.parameters()[parameter].domain)) {
      add_cells(parameter, points);
    } else {
      add_number(parameter, points);
    }
  }
}

// ---- Columns ------------------------------------------------------------------------------------

template <class Real>
std::vector<Real>& Density<Real>::new_column() {
  return own_columns_.emplace_back(columns_.kernels);
}

template <class Real>
std::span<std::uint32_t> Density<Real>::new_kinds() {
  own_kinds_.emplace_back(columns_.kernels);
  columns_.kinds.push_back(own_kinds_.back().data());
  return {own_kinds_.back().data(), trials_ + 1};
}

// The points' own column when the sub-space is active in all of them.
template <class Real>
std::span<const Real> Density<Real>::places_of(std::size_t parameter, const Columns<Real>& points) {
  const auto all = points.with_middle(parameter);
  if (active_.size() == points.size()) return all;
  std::vector<Real>& places = new_column();
  places[kPrior] = all.front();
  for (std::size_t i = 0; i < trials_; ++i) places[i + 1] = all[active_[i] + 1];
  return std::span<const Real>(places).first(trials_ + 1);
}

// Widths and scales of kernels that all are of the narrowest width but the prior.
template <class Real>
void Density<Real>::set_narrowest() {
  if (!narrowest_widths_.empty()) return;
  const auto narrowest = static_cast<Real>(narrowest_width(trials_));
  narrowest_widths_.assign(trials_ + 1, narrowest);
  narrowest_widths_[kPrior] = static_cast<Real>(kPriorWidth);
  narrowest_scales_.assign(columns_.kernels, kRootHalf<Real> / narrowest);
  narrowest_scales_[kPrior] = kRootHalf<Real> / static_cast<Real>(kPriorWidth);
}

// Kernels keep what they have within the bounds: the constants make up for what is beyond.
template <class Real>
void Density<Real>::add_number(std::size_t parameter, const Columns<Real>& points) {
  const std::span<const Real> places = places_of(parameter, points);
  numbers_.push_back({parameter, columns_.places.size()});
  columns_.places.push_back(places.data());
  if (are_dense(places.subspan(1))) {
    set_narrowest();
    subtract_norms(places, std::span<const Real>(narrowest_widths_), columns_.constants);
    columns_.scales.push_back(narrowest_scales_.data());
    return;
  }
  std::vector<Real>& scales = new_column();
  const std::span<Real> widths(scales.data(), trials_ + 1);
  write_widths(places.subspan(1), widths.subspan(1));
  widths[kPrior] = static_cast<Real>(kPriorWidth);
  subtract_norms(places, std::span<const Real>(widths), columns_.constants);
  for (Real& width : widths) width = kRootHalf<Real> / width;
  columns_.scales.push_back(scales.data());
}

template <class Real>
void Density<Real>::add_cells(std::size_t parameter, const Columns<Real>& points) {
  const std::span<std::uint32_t> kinds = new_kinds();
  CellKinds<Real> found = cell_kinds(places_of(parameter, points), kinds);
  const UnitDomain& domain = encoding_.parameters()[parameter].domain;
  const auto even = domain.is_even() ? static_cast<std::uint32_t>(*domain.count()) : 0;
  cells_.push_back({parameter, columns_.kinds.size() - 1, even, std::move(found)});
}

// Kinds are the options, and after them the prior.
template <class Real>
void Density<Real>::add_options(std::size_t parameter, const Columns<Real>& points) {
  const std::size_t count = options_in(encoding_.parameters()[parameter].domain);
  const std::span<const Real> places = places_of(parameter, points);
  const std::span<std::uint32_t> kinds = new_kinds();
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    const auto option = static_cast<std::uint32_t>(places[i] * static_cast<Real>(count));
    kinds[i] = std::min(option, static_cast<std::uint32_t>(count - 1));
  }
  kinds[kPrior] = static_cast<std::uint32_t>(count);
  options_.push_back({parameter, columns_.kinds.size() - 1, count});
}

// ---- At points ----------------------------------------------------------------------------------

template <class Real>
FactorTable<Real> Density<Real>::cell_table(const Cells& cells, double unit,
                                            EvenMasses<Real>& masses) const {
  const UnitDomain& domain = encoding_.parameters()[cells.parameter].domain;
  const CellKinds<Real>& kinds = cells.kinds;
  const std::uint32_t even = cells.even;
  // Of what the kernel has in [0, 1]; rounding may reach beyond all of it.
  const auto share = [&kinds](Real log_mass, std::uint32_t kind) {
    return std::min(log_mass - kinds.log_masses[kind], Real{0});
  };
  std::vector<Real> unknown(kinds.places.size(), kUnknown<Real>);
  if (even > 0) {
    return {std::move(unknown),
            [=, at = domain.cell(unit).at, &kinds, &masses](std::uint32_t kind) {
              const double distance = std::abs(at - static_cast<double>(kinds.places[kind]));
              const auto halves = static_cast<std::uint32_t>(2 * even * distance + 0.5);
              return share(masses.log_mass(even, halves, kinds.widths[kind]), kind);
            }};
  }
  return {std::move(unknown), [=, cell = domain.cell(unit), &kinds](std::uint32_t kind) {
            const double mass =
                log_mass(cell.low, cell.high, static_cast<double>(kinds.places[kind]),
                         static_cast<double>(kinds.widths[kind]));
            return share(static_cast<Real>(mass), kind);
          }};
}

template <class Real>
FactorTable<Real> Density<Real>::option_table(const Options& options, std::size_t option) const {
  const auto kernels = static_cast<double>(trials_ + 1);
  const auto count = static_cast<double>(options.count);
  const double sum = 1 + count / kernels;
  std::vector<Real> table(options.count, static_cast<Real>(std::log(1 / kernels / sum)));
  table[option] = static_cast<Real>(std::log((1 + 1 / kernels) / sum));
  table.push_back(static_cast<Real>(-std::log(count)));
  return {std::move(table)};
}

template <class Real>
std::vector<double> Density<Real>::log_densities(const std::vector<UnitPoint>& points) const {
  std::vector<SumPoint<Real>> asked(points.size());
  // One for each coordinate that points have, the same for all that have it.
  std::map<std::pair<std::size_t, double>, FactorTable<Real>> tables;
  const auto set_tables = [&](const auto& columns, const auto& table_at) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (const auto& each : columns) {
        const auto [at, is_new] = tables.try_emplace({each.parameter, points[i][each.parameter]});
        if (is_new) at->second = table_at(each, points[i]);
        asked[i].tables[each.column] = &at->second;
      }
    }
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const Number& each : numbers_) {
      asked[i].numbers.push_back(static_cast<Real>(points[i][each.parameter]));
    }
    asked[i].tables.resize(columns_.kinds.size());
  }
  EvenMasses<Real> masses;
  set_tables(cells_, [&](const Cells& each, const UnitPoint& point) {
    return cell_table(each, point[each.parameter], masses);
  });
  set_tables(options_, [&](const Options& each, const UnitPoint& point) {
    return option_table(each, encoding_.option(each.parameter, point));
  });
  return log_sums(columns_, asked);
}

// ---- Draws --------------------------------------------------------------------------------------

template <class Real>
void Density<Real>::draw(UnitPoint& point, RandomStream& random) const {
  const std::size_t kernel = drawn_kernel(weights_, random.uniform());
  const auto set = [&](std::size_t parameter, double unit) {
    point[parameter] = encoding_.parameters()[parameter].domain.cell(unit).at;
  };
  for (const Number& each : numbers_) {
    const Real place = columns_.places[each.column][kernel];
    const Real width = kRootHalf<Real> / columns_.scales[each.column][kernel];
    set(each.parameter,
        drawn_normal(static_cast<double>(place), static_cast<double>(width), random));
  }
  for (const Cells& each : cells_) {
    const std::uint32_t of = columns_.kinds[each.column][kernel];
    set(each.parameter, drawn_normal(static_cast<double>(each.kinds.places[of]),
                                     static_cast<double>(each.kinds.widths[of]), random));
  }
  for (const Options& each : options_) set(each.parameter, drawn_option(each, kernel, random));
}

// Cut off at the bounds.
template <class Real>
double Density<Real>::drawn_normal(double place, double width, RandomStream& random) const {
  const double low = normal_cdf(-place / width);
  const double high = normal_cdf((1 - place) / width);
  const double share = std::clamp(low + random.uniform() * (high - low), 1e-300, 1 - 1e-16);
  return std::clamp(place + width * normal_quantile(share), 0.0, 1.0);
}

template <class Real>
double Density<Real>::drawn_option(const Options& options, std::size_t kernel,
                                   RandomStream& random) const {
  const auto kernels = static_cast<double>(trials_ + 1);
  const auto count = static_cast<double>(options.count);
  // The trial's own option gets 1 besides the 1 / n that all get; the prior's kernel has none.
  const double all = count / kernels;
  const double drawn = random.uniform() * (kernel == kPrior ? all : 1 + all);
  double option = std::floor(std::min(drawn * kernels, count - 1));
  if (drawn >= all) option = static_cast<double>(columns_.kinds[options.column][kernel]);
  return (option + 0.5) / count;
}

template class Density<float>;
template class Density<double>;

}  // namespace tune::search::tpe
