#include "tune/search/gp/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/fitting.h"
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

// Of several predictions of the same points, all as likely.
class MixedExpectations {
 public:
  MixedExpectations(Eigen::Index points, std::size_t predictions)
      : count_(static_cast<double>(predictions)),
        mean_(Eigen::ArrayXd::Zero(points)),
        square_(Eigen::ArrayXd::Zero(points)) {}

  void add(const Prediction& prediction, const Eigen::VectorXd& log_improvement) {
    mean_ += prediction.mean.array() / count_;
    square_ += (prediction.mean.array().square() + prediction.standard_deviation.array().square()) /
               count_;
    log_improvements_.push_back(log_improvement);
  }
  std::vector<Expectation> all() const {
    std::vector<Expectation> all;
    for (Eigen::Index i = 0; i < mean_.size(); ++i) {
      const double variance = std::max(square_[i] - mean_[i] * mean_[i], 0.0);
      all.push_back({mean_[i], std::sqrt(variance), log_mean(i)});
    }
    return all;
  }

 private:
  double log_mean(Eigen::Index point) const {
    double top = log_improvements_.front()[point];
    for (const Eigen::VectorXd& each : log_improvements_) top = std::max(top, each[point]);
    double sum = 0;
    for (const Eigen::VectorXd& each : log_improvements_) sum += std::exp(each[point] - top);
    return top + std::log(sum / count_);
  }

  double count_;
  Eigen::ArrayXd mean_;
  Eigen::ArrayXd square_;
  std::vector<Eigen::VectorXd> log_improvements_;
};

// Of few results there may be several fits, and a better one than near the last: whether there was
// a power of two meanwhile.
bool needs_care(std::uint64_t before, std::uint64_t now) {
  return before < kManyResults && std::bit_width(before) != std::bit_width(now);
}

}  // namespace

ModelOutcome Model::make(const TrainingSet& known, const std::vector<UnitPoint>& pending,
                         const Encoding& encoding, const Fit& fit, Targets targets,
                         const Wanted& wanted, RandomStream& random) {
  const std::vector<double> scores = targets_of(known.observations, targets);
  if (scores.empty()) return {{}, "all results are alike"};
  ModelOutcome outcome = make(known, scores, pending, encoding, fit, wanted);
  if (!outcome.model || wanted.in_haste || scores.size() > wanted.averaged_up_to) return outcome;
  outcome.model->average_over_draws(all_features(known, pending, encoding), as_vector(scores),
                                    wanted.count, random);
  return outcome;
}

ModelOutcome Model::make(const TrainingSet& known, const std::vector<double>& targets,
                         const std::vector<UnitPoint>& pending, const Encoding& encoding,
                         const Fit& fit, const Wanted& wanted) {
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
  const double margin = known.stopped_early ? kMarginUnderStopping : 0;
  Model model(encoding, std::move(used), std::move(*posterior), margin);
  if (wanted.in_haste) model.rough_.emplace(model.posterior_);
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

// Mean and deviation are those of the mixture, the acquisition is the logarithm of the mean
// improvement.
std::vector<Expectation> Model::expected_at(const std::vector<UnitPoint>& points) const {
  if (by_draws_.empty()) return expected(predict(points));
  const Eigen::MatrixXd features = features_of(points, *encoding_);
  MixedExpectations mixed(features.cols(), by_draws_.size());
  for (const Posterior& each : by_draws_) {
    const Prediction prediction = each.predict(features);
    mixed.add(prediction, log_expected_improvement(prediction, each.best() + margin_));
  }
  return mixed.all();
}

std::optional<Proposal> Model::best_candidate(const TriedPoints& tried,
                                              RandomStream& random) const {
  const auto score = [&](const std::vector<UnitPoint>& points) { return expected_at(points); };
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
  const Eigen::VectorXd place = features_of({point}, *encoding_).col(0);
  for (Posterior& each : by_draws_) each.believe(place);
  const bool is_taken = posterior_.believe(place);
  if (is_taken && rough_) rough_->take_newest(posterior_);
}

}  // namespace tune::search::gp
