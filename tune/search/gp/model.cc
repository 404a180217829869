#include "tune/search/gp/model.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/fitting.h"

namespace tune::search::gp {

namespace {

constexpr std::size_t kNeighbours = 3;
constexpr std::uint64_t kManyResults = 128;

std::vector<UnitPoint> points_of(const std::vector<Observation>& observations) {
  std::vector<UnitPoint> points;
  for (const Observation& each : observations) points.push_back(each.point);
  return points;
}

// Of few results there may be several fits, and a better one than near the last: whether there was
// a power of two meanwhile.
bool needs_care(std::uint64_t before, std::uint64_t now) {
  return before < kManyResults && std::bit_width(before) != std::bit_width(now);
}

}  // namespace

ModelOutcome Model::make(const TrainingSet& known, const std::vector<UnitPoint>& pending,
                         const Encoding& encoding, const Fit& fit, Targets targets,
                         const Wanted& wanted) {
  const std::vector<double> scores = targets_of(known.observations, targets);
  if (scores.empty()) return {{}, "all results are alike"};
  return make(known, scores, pending, encoding, fit, wanted);
}

ModelOutcome Model::make(const TrainingSet& known, const std::vector<double>& targets,
                         const std::vector<UnitPoint>& pending, const Encoding& encoding,
                         const Fit& fit, const Wanted& wanted) {
  std::vector<UnitPoint> points = points_of(known.observations);
  const std::vector<UnitPoint> best = best_of(points, targets);
  points.insert(points.end(), pending.begin(), pending.end());
  const Eigen::MatrixXd features = features_of(points, encoding);
  const Eigen::VectorXd y =
      Eigen::Map<const Eigen::VectorXd>(targets.data(), static_cast<Eigen::Index>(targets.size()));

  Fit used = fit;
  if (used.log_length_scales.size() != encoding.feature_count()) {
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
  std::optional<Posterior> posterior = Posterior::make(features, y, used, wanted.count);
  if (!posterior) return {{}, "the covariance is not positive definite"};
  const double margin = known.stopped_early ? kMarginUnderStopping : 0;
  Model model(encoding, std::move(used), std::move(*posterior), margin);
  if (wanted.in_haste) model.rough_.emplace(model.posterior_);
  model.best_points_ = best;
  for (const Observation& each : known.observations) model.trials_.push_back(each.trial);
  return {std::move(model), {}};
}

Prediction Model::predict(const std::vector<UnitPoint>& points) const {
  return posterior_.predict(features_of(points, *encoding_));
}

Prediction Model::predict_roughly(const std::vector<UnitPoint>& points) const {
  return rough_->predict(features_of(points, *encoding_));
}

void Model::follow(const std::vector<UnitPoint>& points) {
  rough_->follow(features_of(points, *encoding_));
}

std::vector<Expectation> Model::expected(const Prediction& prediction) const {
  const Eigen::VectorXd values = log_expected_improvement(prediction, posterior_.best() + margin_);
  std::vector<Expectation> expected;
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    expected.push_back({prediction.mean[i], prediction.standard_deviation[i], values[i]});
  }
  return expected;
}

std::optional<Proposal> Model::best_candidate(const TriedPoints& tried,
                                              RandomStream& random) const {
  const auto score = [&](const std::vector<UnitPoint>& points) {
    return expected(predict(points));
  };
  return proposal_of(gp::best_candidate(best_points_, score, *encoding_, tried, random));
}

std::optional<Proposal> Model::best_candidate_in_haste(const TriedPoints& tried,
                                                       RandomStream& random) {
  const Following following = {
      .score = [&](const auto& points) { return expected(predict_roughly(points)); },
      .follow = [&](const auto& points) { follow(points); },
      .unfollow = [&](std::size_t place) { unfollow(place); },
      .expected = [&](std::size_t first) { return expected(predict_followed(first)); }};
  return proposal_of(pool_.best(best_points_, following, *encoding_, tried, random));
}

std::optional<Proposal> Model::proposal_of(std::optional<Scored> found) const {
  if (!found) return std::nullopt;
  Proposal proposal;
  proposal.point = std::move(found->point);
  proposal.origin = ProposalOrigin::kModel;
  proposal.expected = found->expected;
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
  const bool is_taken = posterior_.believe(features_of({point}, *encoding_).col(0));
  if (is_taken && rough_) rough_->take_newest(posterior_);
}

}  // namespace tune::search::gp
