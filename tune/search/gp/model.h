// A fitted process and the search for the best acquisition under it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/gp/fit.h"
#include "tune/search/gp/posterior.h"
#include "tune/search/gp/targets.h"
#include "tune/search/gp/training_set.h"
#include "tune/search/proposal.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

struct ModelOutcome;

class Model {
 public:
  // Fits anew when that is due, from `fit` on. `pending` are the points whose results are not
  // known; there is room for `more` of them. Nothing but a reason when there can be no model.
  static ModelOutcome make(const TrainingSet& known, const std::vector<UnitPoint>& pending,
                           const Encoding& encoding, const Fit& fit, Targets targets, int more);

  // The best of many candidates that were never tried, with what is expected of it and its
  // neighbours; nothing when all candidates were.
  std::optional<Proposal> best_candidate(const TriedPoints& tried, RandomStream& random) const;
  void believe(const UnitPoint& point);
  const Fit& fit() const { return fit_; }

 private:
  struct Scored {
    UnitPoint point;
    Expectation expected;
  };
  Model(const Encoding& encoding, Fit fit, Posterior posterior)
      : encoding_(&encoding), fit_(std::move(fit)), posterior_(std::move(posterior)) {}
  std::vector<UnitPoint> first_candidates(RandomStream& random) const;
  void add_scored(std::vector<UnitPoint> points, const TriedPoints& tried,
                  std::vector<Scored>& scored) const;

  const Encoding* encoding_;
  Fit fit_;
  Posterior posterior_;
  std::vector<UnitPoint> best_points_;              // of the observations, the best first
  std::vector<std::optional<TrialNumber>> trials_;  // of the observations
};

struct ModelOutcome {
  std::optional<Model> model;
  std::string trouble;
};

}  // namespace tune::search::gp
