#include "tune/search/cma_es/update.h"

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "tune/search/cma_es/categories.h"
#include "tune/search/cma_es/distribution.h"
#include "tune/search/cma_es/margin.h"
#include "tune/search/cma_es/rates.h"

namespace tune::search::cma_es {

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kLargestStep = 1e32;
constexpr double kLeastEigenvalue = 1e-30;

Eigen::Map<const Vector> mapped(const std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

Eigen::Map<Vector> mapped(std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

Matrix covariance_of(const Distribution& distribution) {
  const auto count = static_cast<Eigen::Index>(distribution.mean.size());
  return Eigen::Map<const RowMajor>(distribution.covariance.data(), count, count);
}

struct Parts {
  Matrix axes;     // columns
  Vector lengths;  // square roots of eigenvalues
};

std::optional<Parts> parts_of(const Matrix& covariance) {
  const Matrix symmetric = (covariance + covariance.transpose()) / 2;
  if (!symmetric.allFinite()) return std::nullopt;
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(symmetric);
  if (solver.info() != Eigen::Success) return std::nullopt;
  const auto floored = [](double value) { return value < 0 ? kTiny : value; };
  return Parts{solver.eigenvectors(), solver.eigenvalues().unaryExpr(floored).cwiseSqrt()};
}

Matrix inverse_root(const Parts& parts) {
  return parts.axes * parts.lengths.cwiseInverse().asDiagonal() * parts.axes.transpose();
}

// ---- Bounds -------------------------------------------------------------------------------------

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Keeps how far apart the better and the worse quarter of the losses are.
void note_range(Distribution& distribution, const std::vector<Judged>& sorted) {
  const std::size_t population = sorted.size();
  std::vector<double>& ranges = distribution.ranges;
  const double range = sorted[3 * population / 4].loss - sorted[population / 4].loss;
  if (std::isfinite(range) && range > 0) {
    ranges.insert(ranges.begin(), range);
  } else if (range > 0 && ranges.size() > 1) {
    ranges.insert(ranges.begin(), *std::max_element(ranges.begin(), ranges.end()));
  }
  const double dimensions = static_cast<double>(distribution.mean.size());
  const auto most =
      20 + static_cast<std::size_t>(std::ceil(3 * dimensions / static_cast<double>(population)));
  if (ranges.size() > most) ranges.pop_back();
}

// The penalty of a number beyond the bounds, for the square of how far it is (Hansen et al.,
// "A Method for Handling Uncertainty in Evolutionary Optimization", 2009).
Vector penalty_factors(const Distribution& distribution, const Variables& variables,
                       const Rates& rates) {
  const auto dimensions = static_cast<double>(variables.numbers());
  const Vector spread =
      covariance_of(distribution).diagonal().cwiseProduct(mapped(distribution.scales));
  const double square_step = distribution.step_size * distribution.step_size;
  const double usual = 2 * median(distribution.ranges) / (square_step * spread.sum());
  Vector factors = Vector::Constant(spread.size(), usual);
  for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(variables.continuous()); ++i) {
    const double mean = distribution.mean[static_cast<std::size_t>(i)];
    const double beyond = std::max(-mean, mean - 1);
    const double far = 3 * distribution.step_size * std::sqrt(spread[i]) *
                       std::max(1.0, std::sqrt(dimensions) / rates.effective);
    if (beyond > 0 && beyond > far) {
      factors[i] *= std::pow(1.1, std::max(1.0, rates.effective / (10 * dimensions)));
    }
  }
  const Vector logs = spread.array().log();
  const Vector shares = (0.9 * (logs.array() - logs.sum() / dimensions)).exp();
  return factors.cwiseQuotient(shares);
}

void add_penalties(std::vector<Judged>& sorted, Distribution& distribution,
                   const Variables& variables, const Rates& rates) {
  note_range(distribution, sorted);
  if (distribution.ranges.empty()) return;
  const Vector factors = penalty_factors(distribution, variables, rates);
  for (Judged& each : sorted) {
    for (std::size_t i = 0; i < variables.continuous(); ++i) {
      const double unit = each.drawn.numbers[i];
      const double beyond = std::clamp(unit, 0.0, 1.0) - unit;
      each.loss += factors[static_cast<Eigen::Index>(i)] * beyond * beyond;
    }
  }
}

void sort_by_loss(std::vector<Judged>& judged) {
  std::stable_sort(judged.begin(), judged.end(),
                   [](const Judged& a, const Judged& b) { return a.loss < b.loss; });
}

// ---- The normal distribution --------------------------------------------------------------------

// The covariance as it is kept: without a negative eigenvalue. False when numbers failed.
bool keep(Distribution& distribution, const Matrix& covariance) {
  const std::optional<Parts> parts = parts_of(covariance);
  if (!parts) return false;
  const double least = parts->lengths.minCoeff();
  distribution.step_size = std::max(distribution.step_size, std::sqrt(kLeastEigenvalue / least));
  const auto count = static_cast<Eigen::Index>(distribution.mean.size());
  Eigen::Map<RowMajor>(distribution.covariance.data(), count, count) =
      parts->axes * parts->lengths.cwiseAbs2().asDiagonal() * parts->axes.transpose();
  return true;
}

// Moves the step size by its path; whether the path is short enough for the other one to go on.
bool move_step_size(Distribution& distribution, const Rates& rates, const Vector& move) {
  const double rate = rates.step_path;
  Eigen::Map<Vector> path = mapped(distribution.path_step);
  path = (1 - rate) * path + std::sqrt(rate * (2 - rate) * rates.effective) * move;
  const double length = path.norm();
  distribution.step_size *=
      std::exp(rate / rates.step_damping * (length / rates.expected_length - 1));
  distribution.step_size = std::min(distribution.step_size, kLargestStep);
  const auto generations = static_cast<double>(distribution.generation);
  return length / std::sqrt(1 - std::pow(1 - rate, 2 * (generations + 1))) <
         (1.4 + 2 / (rates.dimensions + 1)) * rates.expected_length;
}

bool update_normal(Distribution& distribution, const Rates& rates, const Matrix& drawn) {
  const Matrix covariance = covariance_of(distribution);
  const std::optional<Parts> parts = parts_of(covariance);
  if (!parts) return false;
  const Matrix to_sphere = inverse_root(*parts);
  const Matrix steps = mapped(distribution.scales).cwiseInverse().asDiagonal() *
                       (drawn.colwise() - mapped(distribution.mean)) / distribution.step_size;
  const Eigen::Map<const Vector> weights = mapped(rates.weights);
  const auto better = static_cast<Eigen::Index>(rates.better);
  const Vector move = steps.leftCols(better) * weights.head(better);
  mapped(distribution.mean) += distribution.step_size * move;

  const bool goes_on = move_step_size(distribution, rates, to_sphere * move);
  const double rate = rates.path;
  Eigen::Map<Vector> path = mapped(distribution.path);
  path *= 1 - rate;
  if (goes_on) path += std::sqrt(rate * (2 - rate) * rates.effective) * move;

  Vector each = weights;
  for (Eigen::Index i = 0; i < each.size(); ++i) {
    if (each[i] < 0)
      each[i] *= rates.dimensions / ((to_sphere * steps.col(i)).squaredNorm() + kTiny);
  }
  const double rest = goes_on ? 0 : rates.rank_one * rate * (2 - rate);
  return keep(distribution,
              (1 + rest - rates.rank_one - rates.rank_many * weights.sum()) * covariance +
                  rates.rank_one * path * path.transpose() +
                  rates.rank_many * steps * each.asDiagonal() * steps.transpose());
}

Matrix columns_of(const std::vector<Judged>& sorted, std::size_t numbers) {
  Matrix columns(numbers, sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    columns.col(static_cast<Eigen::Index>(i)) = mapped(sorted[i].drawn.numbers);
  }
  return columns;
}

}  // namespace

bool update(Distribution& distribution, const Variables& variables, std::vector<Judged> judged) {
  TUNE_CHECK(judged.size() == distribution.population);
  const Rates rates = rates_of(variables, judged.size());
  Distribution next = distribution;
  sort_by_loss(judged);
  if (variables.continuous() > 0) {
    add_penalties(judged, next, variables, rates);
    sort_by_loss(judged);
  }
  ++next.generation;
  if (variables.numbers() > 0) {
    if (variables.in_cells() > 0) centre(judged, next, variables, rates.better);
    if (!update_normal(next, rates, columns_of(judged, variables.numbers()))) return false;
    if (variables.in_cells() > 0) correct_margin(next, variables);
  }
  if (!next.chances.empty()) update_chances(next, judged, rates, margin_of(variables));
  if (!fits(next, variables)) return false;
  distribution = std::move(next);
  return true;
}

void pull_in(Drawn& drawn, const Distribution& distribution) {
  if (drawn.numbers.empty()) return;
  const std::optional<Parts> parts = parts_of(covariance_of(distribution));
  if (!parts) return;
  const auto mean = mapped(distribution.mean);
  const Vector away = mapped(std::as_const(drawn).numbers) - mean;
  const Vector step = away.cwiseQuotient(mapped(distribution.scales)) / distribution.step_size;
  const auto dimensions = static_cast<double>(step.size());
  const double far = std::sqrt(dimensions) + 2 * dimensions / (dimensions + 2);
  const double length = (inverse_root(*parts) * step).norm();
  if (length > far) mapped(drawn.numbers) = mean + away * (far / length);
}

}  // namespace tune::search::cma_es
