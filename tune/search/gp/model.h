// A fitted process and the search for the best acquisition under it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/gp/candidate_pool.h"
#include "tune/search/gp/candidate_search.h"
#include "tune/search/gp/fit.h"
#include "tune/search/gp/posterior.h"
#include "tune/search/gp/rough_posterior.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/proposal.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

struct ModelOutcome;

// The proposals that a model is to make.
struct Wanted {
  int count = 1;
  bool in_haste = false;           // with less effort for each
  std::size_t averaged_up_to = 0;  // so many results, over draws of scales; not in haste
  double margin = 0;               // above the best, from where improvements count
};

class Model {
 public:
  // Fits anew when that is due, from `fit` on. `pending` are the points whose results are not
  // known; there is room for those that are wanted. There is a target for each observation, of about
  // mean 0 and variance 1, or none at all. Nothing but a reason when there can be no model. While
  // results are few, and not in haste, the acquisition is averaged over draws of the length scales
  // (scale_draws.h).
  static ModelOutcome make(const TrainingSet& known, const std::vector<double>& targets,
                           const std::vector<UnitPoint>& pending, const Encoding& encoding,
                           const Fit& fit, const Wanted& wanted, RandomStream& random);

  // The best of many candidates that were never tried, with what is expected of it and its
  // neighbours; nothing when all candidates were.
  std::optional<Proposal> best_candidate(const TriedPoints& tried, RandomStream& random) const;
  // The same in haste: in a small part of the time but for the first.
  std::optional<Proposal> best_candidate_in_haste(const TriedPoints& tried, RandomStream& random);
  Prediction predict(const std::vector<UnitPoint>& points) const;
  // By each draw of the length scales; where there are none, by the likeliest.
  std::vector<Prediction> predictions_by_draw(const std::vector<UnitPoint>& points) const;
  // In haste alone: of any points, and of points whose predictions are kept (rough_posterior.h).
  Prediction predict_roughly(const std::vector<UnitPoint>& points) const;
  void follow(const std::vector<UnitPoint>& points);
  void unfollow(std::size_t place) { rough_->unfollow(place); }
  Prediction predict_followed(std::size_t first) const { return rough_->predict_followed(first); }
  // The trials most like a point, the nearest first; those of earlier experiments are left out.
  std::vector<TrialNumber> neighbours_of(const UnitPoint& point) const;
  void believe(const UnitPoint& point);
  const Fit& fit() const { return fit_; }

 private:
  Model(const Encoding& encoding, Fit fit, Posterior posterior, double margin)
      : encoding_(&encoding),
        fit_(std::move(fit)),
        posterior_(std::move(posterior)),
        margin_(margin) {}
  void average_over_draws(const Eigen::MatrixXd& features, const Eigen::VectorXd& targets,
                          int count, RandomStream& random);
  std::span<const Posterior> draws() const;  // to average over; never empty
  std::vector<Expectation> expected(const Prediction& prediction, double best) const;
  std::vector<Expectation> expected_at(const std::vector<UnitPoint>& points) const;
  std::optional<Proposal> proposal_of(std::optional<Scored> found) const;

  const Encoding* encoding_;
  Fit fit_;
  Posterior posterior_;
  std::vector<Posterior> by_draws_;                 // empty: posterior_ alone counts
  double margin_;                                   // above the best, from where improvements count
  std::optional<RoughPosterior> rough_;             // in haste
  CandidatePool pool_;                              // then
  std::vector<UnitPoint> best_points_;              // of the observations, the best first
  std::vector<std::optional<TrialNumber>> trials_;  // of the observations
};

struct ModelOutcome {
  std::optional<Model> model;
  std::string trouble;
};

}  // namespace tune::search::gp
