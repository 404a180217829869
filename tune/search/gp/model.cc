#include "tune/search/gp/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/fitting.h"
#include "tune/search/gp/mixed_expectations.h"
#include "tune/search/gp/scale_draws.h"

namespace tune::search::gp {

namespace {

constexpr std::size_t kNeighbours = 3;
constexpr std::uint64_t kManyResults = 128;

std::vector<UnitPoint> points_of(const std::vector<Observation>& observations) {
  std::vector<UnitPoint> points;
  for (const Observation& each : observations) points.push_back(each.point);
  return points;
}

// Of observations, then of pending points.
Eigen::MatrixXd all_features(const TrainingSet& known, const std::vector<UnitPoint>& pending,
                             const Encoding& encoding) {
  std::vector<UnitPoint> points = points_of(known.observations);
  points.insert(points.end(), pending.begin(), pending.end());
  return features_of(points, encoding);
}

Eigen::VectorXd as_vector(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

// Of few results there may be several fits, and a better one than near the last: whether there was
// a power of two meanwhile.
bool needs_care(std::uint64_t before, std::uint64_t now) {
  return before < kManyResults && std::bit_width(before) != std::bit_width(now);
}

}  // namespace

ModelOutcome Model::make(const TrainingSet& known, const std::vector<double>& targets,
                         const std::vector<UnitPoint>& pending, const Encoding& encoding,
                         const Fit& fit, const Wanted& wanted, RandomStream& random) {
  if (targets.empty()) return {{}, "all results are alike"};
  const Eigen::MatrixXd features = all_features(known, pending, encoding);
  const Eigen::VectorXd y = as_vector(targets);
  Fit used = fit;
  if (used.scales.log_lengths.size() != encoding.feature_count()) {
    used = first_fit(encoding.feature_count());
  }
  if (is_due(used, known.results_known)) {
    const bool is_hasty = wanted.in_haste && !needs_care(used.results, known.results_known);
    const auto points_known = features.leftCols(y.size());
    FitOutcome outcome =
        is_hasty ? fitted_in_haste(points_known, y, used) : fitted(points_known, y, used);
    if (!outcome.fit) return {{}, outcome.trouble};
    used = std::move(*outcome.fit);
    used.results = known.results_known;
  }
  used.in_haste = wanted.in_haste;
  std::optional<Posterior> posterior = Posterior::make(features, y, used.scales, wanted.count);
  if (!posterior) return {{}, "the covariance is not positive definite"};
  Model model(encoding, std::move(used), std::move(*posterior), wanted.margin);
  if (wanted.in_haste) {
    model.rough_.emplace(model.posterior_);
  } else if (targets.size() <= wanted.averaged_up_to) {
    model.average_over_draws(features, y, wanted.count, random);
  }
  model.best_points_ = best_of(points_of(known.observations), targets);
  for (const Observation& each : known.observations) model.trials_.push_back(each.trial);
  return {std::move(model), {}};
}

// One whose covariance is not positive definite is left out.
void Model::average_over_draws(const Eigen::MatrixXd& features, const Eigen::VectorXd& targets,
                               int count, RandomStream& random) {
  const auto observed = features.leftCols(targets.size());
  for (const Scales& each : drawn_scales(observed, targets, fit_.scales, random)) {
    auto posterior = Posterior::make(features, targets, each, count);
    if (posterior) by_draws_.push_back(std::move(*posterior));
  }
}

Prediction Model::predict(const std::vector<UnitPoint>& points) const {
  return posterior_.predict(features_of(points, *encoding_));
}

Prediction Model::predict_roughly(const std::vector<UnitPoint>& points) const {
  return rough_->predict(features_of(points, *encoding_));
}

std::vector<Prediction> Model::predictions_by_draw(const std::vector<UnitPoint>& points) const {
  const Eigen::MatrixXd features = features_of(points, *encoding_);
  std::vector<Prediction> all;
  for (const Posterior& each : draws()) all.push_back(each.predict(features));
  return all;
}

void Model::follow(const std::vector<UnitPoint>& points) {
  rough_->follow(features_of(points, *encoding_));
}

std::span<const Posterior> Model::draws() const {
  if (by_draws_.empty()) return {&posterior_, 1};
  return by_draws_;
}

std::vector<Expectation> Model::expected(const Prediction& prediction, double best) const {
  const Eigen::VectorXd values = log_expected_improvement(prediction, best + margin_);
  std::vector<Expectation> expected;
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    expected.push_back({prediction.mean[i], prediction.standard_deviation[i], values[i]});
  }
  return expected;
}

std::vector<Expectation> Model::expected_at(const std::vector<UnitPoint>& points) const {
  const Eigen::MatrixXd features = features_of(points, *encoding_);
  std::vector<std::vector<Expectation>> by_draw;
  for (const Posterior& each : draws()) {
    by_draw.push_back(expected(each.predict(features), each.best()));
  }
  return mixed(by_draw);
}

std::optional<Proposal> Model::best_candidate(const TriedPoints& tried,
                                              RandomStream& random) const {
  const auto score = [&](const std::vector<UnitPoint>& points) { return expected_at(points); };
  return proposal_of(gp::best_candidate(best_points_, score, *encoding_, tried, random));
}

std::optional<Proposal> Model::best_candidate_in_haste(const TriedPoints& tried,
                                                       RandomStream& random) {
  const double best = posterior_.best();
  const Following following = {
      .score = [&](const auto& points) { return expected(predict_roughly(points), best); },
      .follow = [&](const auto& points) { follow(points); },
      .unfollow = [&](std::size_t place) { unfollow(place); },
      .expected = [&](std::size_t first) { return expected(predict_followed(first), best); }};
  return proposal_of(pool_.best(best_points_, following, *encoding_, tried, random));
}

std::optional<Proposal> Model::proposal_of(std::optional<Scored> found) const {
  if (!found) return std::nullopt;
  Proposal proposal;
  proposal.point = std::move(found->point);
  proposal.origin = ProposalOrigin::kModel;
  proposal.expected = found->expected;
  proposal.margin = margin_;
  proposal.neighbours = neighbours_of(proposal.point);
  return proposal;
}

std::vector<TrialNumber> Model::neighbours_of(const UnitPoint& point) const {
  std::vector<TrialNumber> neighbours;
  const Eigen::MatrixXd place = features_of({point}, *encoding_);
  for (const std::size_t i : posterior_.nearest(place.col(0), kNeighbours)) {
    if (trials_[i]) neighbours.push_back(*trials_[i]);
  }
  return neighbours;
}

void Model::believe(const UnitPoint& point) {
  pool_.remove(point, [&](std::size_t place) { unfollow(place); });
  const Eigen::VectorXd place = features_of({point}, *encoding_).col(0);
  for (Posterior& each : by_draws_) each.believe(place);
  const bool is_taken = posterior_.believe(place);
  if (is_taken && rough_) rough_->take_newest(posterior_);
}

}  // namespace tune::search::gp
