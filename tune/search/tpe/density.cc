#include "tune/search/tpe/density.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "tune/search/normal_distribution.h"
#include "tune/search/tpe/normal_mass.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kPrior = 0;  // its place among the kernels
constexpr double kPriorPlace = 0.5;
constexpr double kPriorWidth = 1;

// So many standard deviations from a bound, nothing of a kernel lies beyond it.
template <class Real>
constexpr Real kWellInside = 8.5;
template <>
constexpr float kWellInside<float> = 5.5F;

// The logarithm of a kernel's mass in [0, 1], in which its place is.
template <class Real>
Real log_mass_inside(Real place, Real width) {
  const Real root_half = std::numbers::sqrt2_v<Real> / 2;
  const Real below = std::erfc(place / width * root_half);
  const Real above = std::erfc((1 - place) / width * root_half);
  return std::log1p(-(below + above) / 2);
}

// The same for the narrowest kernels there are, which reach beyond one bound at most. Most of those
// that do anything at all are of this kind; so with float it is looked up, right to 3e-6.
double log_mass_at_bound(double distance) {
  return log_mass_inside(distance, kNarrowestWidth);
}
float log_mass_at_bound(float distance) {
  constexpr std::size_t kSteps = 1024;
  constexpr float kStep =
      kWellInside<float> * static_cast<float>(kNarrowestWidth) / static_cast<float>(kSteps);
  static const std::vector<float> table = [] {
    std::vector<float> made;
    for (std::size_t i = 0; i <= kSteps + 1; ++i) {
      const double at = static_cast<double>(kStep) * static_cast<double>(i);
      made.push_back(static_cast<float>(log_mass_inside(at, kNarrowestWidth)));
    }
    return made;
  }();
  const float steps = distance / kStep;
  const auto i = std::min(static_cast<std::size_t>(static_cast<int>(steps)), kSteps);
  return table[i] + (table[i + 1] - table[i]) * (steps - static_cast<float>(i));
}

std::size_t in_blocks(std::size_t kernels) {
  return (kernels + kBlock - 1) / kBlock * kBlock;
}

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

// Numbers kernels that differ in place or width, in the order in which they come.
template <class Real>
class KindTable {
 public:
  KindTable(const std::vector<Real>& places, const std::vector<Real>& widths)
      : places_(places), widths_(widths), slots_(std::bit_ceil(2 * places.size()), kFree) {}

  std::uint32_t kind_of(std::size_t kernel) {
    for (std::size_t slot = hash_of(kernel);; ++slot) {
      std::uint32_t& kind = slots_[slot & (slots_.size() - 1)];
      if (kind == kFree) {
        kind = static_cast<std::uint32_t>(examples_.size());
        examples_.push_back(kernel);
      }
      if (are_alike(examples_[kind], kernel)) return kind;
    }
  }
  // One kernel of each kind.
  std::vector<std::size_t> examples() && { return std::move(examples_); }

 private:
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

  bool are_alike(std::size_t a, std::size_t b) const {
    return places_[a] == places_[b] && widths_[a] == widths_[b];
  }
  std::size_t hash_of(std::size_t kernel) const {
    const double both =
        static_cast<double>(places_[kernel]) + 8 * static_cast<double>(widths_[kernel]);
    return std::bit_cast<std::uint64_t>(both) * 0x9e3779b97f4a7c15ULL >> 40;
  }

  const std::vector<Real>& places_;
  const std::vector<Real>& widths_;
  std::vector<std::uint32_t> slots_;  // kinds by hash
  std::vector<std::size_t> examples_;
};

std::size_t options_in(const UnitDomain& domain) {
  return static_cast<std::size_t>(domain.count().value_or(1));
}

}  // namespace

template <class Real>
Density<Real>::Density(const Encoding& encoding, const SubSpace& sub_space, const Columns& points)
    : encoding_(encoding), sub_space_(sub_space) {
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
  reserve_columns();
  // Numbers first: where their products are small, no table is looked into.
  for (const std::size_t parameter : sub_space.parameters) {
    if (!is_choice(parameter)) add_normals(parameter, places_of(parameter, points));
  }
  for (const std::size_t parameter : sub_space.parameters) {
    if (is_choice(parameter)) add_options(parameter, places_of(parameter, points));
  }
}

// Of the prior first, then of the trials.
template <class Real>
std::vector<Real> Density<Real>::places_of(std::size_t parameter, const Columns& points) const {
  const auto column = points.column(parameter);
  std::vector<Real> places(trials_ + 1);
  places[kPrior] = static_cast<Real>(kPriorPlace);
  if (active_.size() == column.size()) {
    std::transform(column.begin(), column.end(), places.begin() + 1,
                   [](double unit) { return static_cast<Real>(unit); });
  } else {
    std::transform(active_.begin(), active_.end(), places.begin() + 1,
                   [&](std::size_t i) { return static_cast<Real>(column[i]); });
  }
  return places;
}

template <class Real>
void Density<Real>::reserve_columns() {
  const std::size_t most = sub_space_.parameters.size() * columns_.kernels;
  const auto is_number = [&](std::size_t i) {
    return !is_choice(i) && !has_cells(encoding_.parameters()[i].domain);
  };
  const auto numbers = static_cast<std::size_t>(
      std::count_if(sub_space_.parameters.begin(), sub_space_.parameters.end(), is_number));
  columns_.places.reserve(numbers * columns_.kernels);
  columns_.scales.reserve(numbers * columns_.kernels);
  columns_.kinds.reserve(most - numbers * columns_.kernels);
}

// ---- Columns ------------------------------------------------------------------------------------

template <class Real>
void Density<Real>::add_normals(std::size_t parameter, std::vector<Real> places) {
  Normals normals = {parameter, std::move(places), std::vector<Real>(trials_ + 1)};
  normals.all_narrowest = write_widths(std::span<const Real>(normals.places).subspan(1),
                                       std::span<Real>(normals.widths).subspan(1));
  normals.widths[kPrior] = static_cast<Real>(kPriorWidth);
  cut_off(normals);
  normals.cells = has_cells(encoding_.parameters()[parameter].domain);
  if (normals.cells) {
    add_cell_column(normals);
  } else {
    add_number_column(normals);
  }
  normals_.push_back(std::move(normals));
}

// Kernels keep what they have within the bounds.
template <class Real>
void Density<Real>::cut_off(const Normals& normals) {
  const auto narrowest = static_cast<Real>(kNarrowestWidth);
  const Real well_inside = kWellInside<Real> * narrowest;
  for (std::size_t i = 0; i < normals.places.size(); ++i) {
    const Real place = normals.places[i];
    const Real width = normals.widths[i];
    if (width == narrowest) {
      const Real distance = std::min(place, 1 - place);
      if (distance < well_inside) columns_.constants[i] -= log_mass_at_bound(distance);
    } else {
      columns_.constants[i] -= log_mass_inside(place, width);
    }
  }
}

template <class Real>
void Density<Real>::add_number_column(const Normals& normals) {
  const auto narrowest = static_cast<Real>(narrowest_width(trials_));
  const Real log_root = std::log(2 * std::numbers::pi_v<Real>) / 2;
  const Real log_narrowest = std::log(narrowest) + log_root;
  const Real root_half = std::numbers::sqrt2_v<Real> / 2;
  const std::size_t begin = columns_.numbers * columns_.kernels;
  columns_.places.resize(begin + columns_.kernels);
  columns_.scales.resize(begin + columns_.kernels, root_half / narrowest);
  std::copy(normals.places.begin(), normals.places.end(), columns_.places.data() + begin);
  ++columns_.numbers;
  const auto set = [&](std::size_t i) {
    const Real width = normals.widths[i];
    columns_.scales[begin + i] = root_half / width;
    columns_.constants[i] -= width == narrowest ? log_narrowest : std::log(width) + log_root;
  };
  set(kPrior);
  if (normals.all_narrowest) {
    for (std::size_t i = 1; i <= trials_; ++i) columns_.constants[i] -= log_narrowest;
  } else {
    for (std::size_t i = 1; i <= trials_; ++i) set(i);
  }
}

template <class Real>
void Density<Real>::add_cell_column(Normals& normals) {
  const std::size_t begin = columns_.tables * columns_.kernels;
  columns_.kinds.resize(begin + columns_.kernels);
  KindTable<Real> table(normals.places, normals.widths);
  for (std::size_t i = 0; i <= trials_; ++i) columns_.kinds[begin + i] = table.kind_of(i);
  normals.kinds = std::move(table).examples();
  ++columns_.tables;
}

// Kinds are the options, and after them the prior.
template <class Real>
void Density<Real>::add_options(std::size_t parameter, const std::vector<Real>& places) {
  const std::size_t count = options_in(encoding_.parameters()[parameter].domain);
  Options options = {parameter, count};
  const std::size_t begin = columns_.tables * columns_.kernels;
  columns_.kinds.resize(begin + columns_.kernels);
  columns_.kinds[begin] = static_cast<std::uint32_t>(count);
  for (std::size_t i = 1; i < places.size(); ++i) {
    const auto option = static_cast<std::uint32_t>(places[i] * static_cast<Real>(count));
    options.taken.push_back(std::min(option, static_cast<std::uint32_t>(count - 1)));
    columns_.kinds[begin + i] = options.taken.back();
  }
  options_.push_back(std::move(options));
  ++columns_.tables;
}

// ---- At points ----------------------------------------------------------------------------------

template <class Real>
std::vector<Real> Density<Real>::cell_table(const Normals& normals, double unit) const {
  const UnitCell cell = encoding_.parameters()[normals.parameter].domain.cell(unit);
  std::vector<Real> table;
  for (const std::size_t kernel : normals.kinds) {
    table.push_back(
        static_cast<Real>(log_mass(cell.low, cell.high, static_cast<double>(normals.places[kernel]),
                                   static_cast<double>(normals.widths[kernel]))));
  }
  return table;
}

template <class Real>
std::vector<Real> Density<Real>::option_table(const Options& options, std::size_t option) const {
  const auto kernels = static_cast<double>(trials_ + 1);
  const auto count = static_cast<double>(options.count);
  const double sum = 1 + count / kernels;
  std::vector<Real> table(options.count, static_cast<Real>(std::log(1 / kernels / sum)));
  table[option] = static_cast<Real>(std::log((1 + 1 / kernels) / sum));
  table.push_back(static_cast<Real>(-std::log(count)));
  return table;
}

template <class Real>
std::vector<double> Density<Real>::log_densities(const std::vector<UnitPoint>& points) const {
  std::vector<SumPoint<Real>> asked(points.size());
  // One for each coordinate that points have, the same for all that have it.
  std::map<std::pair<std::size_t, double>, std::vector<Real>> tables;
  const auto table_at = [&](std::size_t parameter, double unit, const auto& make) {
    const auto [at, is_new] = tables.try_emplace({parameter, unit});
    if (is_new) at->second = make();
    return at->second.data();
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const Normals& each : normals_) {
      const double unit = points[i][each.parameter];
      if (each.cells) {
        asked[i].tables.push_back(
            table_at(each.parameter, unit, [&] { return cell_table(each, unit); }));
      } else {
        asked[i].numbers.push_back(static_cast<Real>(unit));
      }
    }
    for (const Options& each : options_) {
      const auto make = [&] {
        return option_table(each, encoding_.option(each.parameter, points[i]));
      };
      asked[i].tables.push_back(table_at(each.parameter, points[i][each.parameter], make));
    }
  }
  return log_sums(columns_, asked);
}

// ---- Draws --------------------------------------------------------------------------------------

template <class Real>
void Density<Real>::draw(UnitPoint& point, RandomStream& random) const {
  const std::size_t kernel = drawn_kernel(weights_, random.uniform());
  for (const Normals& each : normals_) draw_normal(each, kernel, point, random);
  for (const Options& each : options_) draw_option(each, kernel, point, random);
}

template <class Real>
void Density<Real>::draw_normal(const Normals& normals, std::size_t kernel, UnitPoint& point,
                                RandomStream& random) const {
  const auto place = static_cast<double>(normals.places[kernel]);
  const auto width = static_cast<double>(normals.widths[kernel]);
  const double low = normal_cdf(-place / width);
  const double high = normal_cdf((1 - place) / width);
  const double share = std::clamp(low + random.uniform() * (high - low), 1e-300, 1 - 1e-16);
  const double unit = std::clamp(place + width * normal_quantile(share), 0.0, 1.0);
  point[normals.parameter] = encoding_.parameters()[normals.parameter].domain.cell(unit).at;
}

template <class Real>
void Density<Real>::draw_option(const Options& options, std::size_t kernel, UnitPoint& point,
                                RandomStream& random) const {
  const auto kernels = static_cast<double>(trials_ + 1);
  const auto count = static_cast<double>(options.count);
  // The trial's own option gets 1 besides what all get.
  double own = random.uniform() * (1 + count / kernels);
  if (kernel == kPrior) own = 1 + random.uniform() * count / kernels;
  const double other = std::min((own - 1) * kernels, count - 1);
  const double option =
      own < 1 ? static_cast<double>(options.taken[kernel - 1]) : std::floor(other);
  point[options.parameter] =
      encoding_.parameters()[options.parameter].domain.cell((option + 0.5) / count).at;
}

template class Density<float>;
template class Density<double>;

}  // namespace tune::search::tpe
