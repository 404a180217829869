#include "tune/search/gp/model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>

#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/candidates.h"
#include "tune/search/gp/fitting.h"

namespace tune::search::gp {

namespace {

constexpr int kDrawn = 500;
constexpr std::size_t kBestPoints = 5;
constexpr int kNearEach = 60;
constexpr double kWideChance = 0.4;  // that one near an observation is further off
constexpr double kWide = 0.15;
constexpr double kNarrow = 0.02;
constexpr std::array kRoundScales = {0.08, 0.03, 0.01};
constexpr std::size_t kKept = 4;  // from round to round
constexpr int kNearKept = 40;
constexpr std::size_t kNeighbours = 3;

Eigen::MatrixXd features_of(const std::vector<UnitPoint>& points, const Encoding& encoding) {
  const auto rows = encoding.feature_count();
  Eigen::MatrixXd features(rows, points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    encoding.write_features(points[i], std::span(features.data() + i * rows, rows));
  }
  return features;
}

std::vector<UnitPoint> points_of(const std::vector<Observation>& observations) {
  std::vector<UnitPoint> points;
  for (const Observation& each : observations) points.push_back(each.point);
  return points;
}

std::vector<UnitPoint> best_of(const std::vector<UnitPoint>& points,
                               const std::vector<double>& targets) {
  std::vector<std::size_t> order(targets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return targets[a] > targets[b]; });
  order.resize(std::min(order.size(), kBestPoints));
  std::vector<UnitPoint> best;
  for (const std::size_t i : order) best.push_back(points[i]);
  return best;
}

}  // namespace

ModelOutcome Model::make(const TrainingSet& known, const std::vector<UnitPoint>& pending,
                         const Encoding& encoding, const Fit& fit, Targets targets, int more) {
  const std::vector<double> scores = targets_of(known.observations, targets);
  if (scores.empty()) return {{}, "all results are alike"};
  std::vector<UnitPoint> points = points_of(known.observations);
  const std::vector<UnitPoint> best = best_of(points, scores);
  points.insert(points.end(), pending.begin(), pending.end());
  const Eigen::MatrixXd features = features_of(points, encoding);
  const Eigen::VectorXd y =
      Eigen::Map<const Eigen::VectorXd>(scores.data(), static_cast<Eigen::Index>(scores.size()));

  Fit used = fit;
  if (used.log_length_scales.size() != encoding.feature_count()) {
    used = first_fit(encoding.feature_count());
  }
  if (is_due(used, known.results_known)) {
    FitOutcome outcome = fitted(features.leftCols(y.size()), y, used);
    if (!outcome.fit) return {{}, outcome.trouble};
    used = std::move(*outcome.fit);
    used.results = known.results_known;
  }
  std::optional<Posterior> posterior = Posterior::make(features, y, used, more);
  if (!posterior) return {{}, "the covariance is not positive definite"};
  Model model(encoding, std::move(used), std::move(*posterior));
  model.best_points_ = best;
  for (const Observation& each : known.observations) model.trials_.push_back(each.trial);
  return {std::move(model), {}};
}

std::vector<UnitPoint> Model::first_candidates(RandomStream& random) const {
  std::vector<UnitPoint> points;
  for (int i = 0; i < kDrawn; ++i) points.push_back(encoding_->draw(random));
  for (const UnitPoint& best : best_points_) {
    for (int i = 0; i < kNearEach; ++i) {
      const double scale = random.uniform() < kWideChance ? kWide : kNarrow;
      points.push_back(near(best, scale, *encoding_, random));
    }
  }
  return points;
}

// Adds those that hold and were not tried, and leaves the best kKept of all.
void Model::add_scored(std::vector<UnitPoint> points, const TriedPoints& tried,
                       std::vector<Scored>& scored) const {
  std::erase_if(points, [&](const UnitPoint& point) {
    return tried.contains(point) || !encoding_->holds(point);
  });
  if (points.empty()) return;
  const Prediction prediction = posterior_.predict(features_of(points, *encoding_));
  const Eigen::VectorXd values = log_expected_improvement(prediction, posterior_.best());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    scored.push_back({std::move(points[i]),
                      {prediction.mean[at], prediction.standard_deviation[at], values[at]}});
  }
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    return a.expected.acquisition > b.expected.acquisition;
  });
  const auto same = [](const Scored& a, const Scored& b) { return a.point == b.point; };
  scored.erase(std::unique(scored.begin(), scored.end(), same), scored.end());
  if (scored.size() > kKept) scored.resize(kKept);
}

std::optional<Proposal> Model::best_candidate(const TriedPoints& tried,
                                              RandomStream& random) const {
  std::vector<Scored> kept;
  add_scored(first_candidates(random), tried, kept);
  for (const double scale : kRoundScales) {
    std::vector<UnitPoint> points;
    for (const Scored& each : kept) {
      for (int i = 0; i < kNearKept; ++i) {
        points.push_back(near(each.point, scale, *encoding_, random));
      }
    }
    add_scored(std::move(points), tried, kept);
  }
  if (kept.empty()) return std::nullopt;
  Proposal proposal;
  proposal.point = std::move(kept.front().point);
  proposal.origin = ProposalOrigin::kModel;
  proposal.expected = kept.front().expected;
  const Eigen::MatrixXd place = features_of({proposal.point}, *encoding_);
  for (const std::size_t i : posterior_.nearest(place.col(0), kNeighbours)) {
    if (trials_[i]) proposal.neighbours.push_back(*trials_[i]);
  }
  return proposal;
}

void Model::believe(const UnitPoint& point) {
  posterior_.believe(features_of({point}, *encoding_).col(0));
}

}  // namespace tune::search::gp
