#include "tune/search/gp/several.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "schedulers/merit.h"
#include "tune/search/gp/acquisition.h"
#include "tune/search/gp/batch.h"
#include "tune/search/gp/candidate_pool.h"
#include "tune/search/gp/candidate_search.h"
#include "tune/search/gp/margins.h"
#include "tune/search/gp/mixed_expectations.h"
#include "tune/search/gp/model.h"
#include "tune/search/gp/targets.h"
#include "tune/search/normal_distribution.h"

namespace tune::search::gp {

namespace {

constexpr double kAugmentation = 0.05;
constexpr std::size_t kPairs = 16;   // of draws, each with its opposite
constexpr double kSmoothing = 0.02;  // of an improvement, in standard deviations of targets
constexpr double kLogNearer = -14;   // what it counts that a constraint is broken less
constexpr double kWorst = -std::numeric_limits<double>::infinity();

double number_of(const Observation& observation, std::size_t number) {
  const MeritNumbers& numbers = observation.result.numbers;
  return number < numbers.size() ? numbers[number] : kWorst;
}

std::vector<Observation> of_number(const std::vector<Observation>& observations,
                                   std::size_t number) {
  std::vector<Observation> all = observations;
  for (Observation& each : all) each.result.value = number_of(each, number);
  return all;
}

std::vector<double> all_of_number(const std::vector<Observation>& observations,
                                  std::size_t number) {
  std::vector<double> all;
  for (const Observation& each : observations) all.push_back(number_of(each, number));
  return all;
}

// The logarithm of log(1 + exp(x)), wherever that is.
double log_softplus(double x) {
  if (x < -30) return x;
  return std::log(x > 30 ? x : std::log1p(std::exp(x)));
}

double log_sum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

double log_mean_exp(const std::vector<double>& values) {
  const double top = std::ranges::max(values);
  double sum = 0;
  for (const double value : values) sum += std::exp(value - top);
  return top + std::log(sum / static_cast<double>(values.size()));
}

// One objective of several.
class Scalarisation {
 public:
  // `best` are the best targets seen.
  Scalarisation(std::vector<double> best, RandomStream& random) : best_(std::move(best)) {
    double sum = 0;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      weights_.push_back(-std::log(1 - random.uniform()));
      sum += weights_.back();
    }
    for (double& weight : weights_) weight /= sum;
    for (std::size_t i = 0; i < kPairs * best_.size(); ++i) draws_.push_back(random.normal());
  }

  double of(const std::vector<double>& targets) const {
    double least = std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const double term = weights_[i] * (targets[i] - best_[i]);
      least = std::min(least, term);
      sum += term;
    }
    return least + kAugmentation * sum;
  }

  // Of targets that are not known.
  struct Spread {
    double mean = 0;
    double standard_deviation = 0;
    double log_improvement = 0;  // over `over`
  };
  Spread of(const std::vector<double>& means, const std::vector<double>& deviations,
            double over) const {
    if (means.size() == 1) {
      const double scale = 1 + kAugmentation;
      const double deviation = scale * deviations[0];
      return {of(means), deviation, log_expected_improvement(of(means), deviation, over)};
    }
    std::vector<double> values;
    std::vector<double> targets(means.size());
    for (std::size_t draw = 0; draw < 2 * kPairs; ++draw) {
      const double sign = draw < kPairs ? 1 : -1;
      const double* normal = draws_.data() + draw % kPairs * means.size();
      for (std::size_t i = 0; i < means.size(); ++i) {
        targets[i] = means[i] + sign * normal[i] * deviations[i];
      }
      values.push_back(of(targets));
    }
    Spread spread;
    const auto count = static_cast<double>(values.size());
    spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    for (double& value : values) {
      spread.standard_deviation += (value - spread.mean) * (value - spread.mean) / count;
      value = log_softplus((value - over) / kSmoothing);
    }
    spread.standard_deviation = std::sqrt(spread.standard_deviation);
    spread.log_improvement = log_mean_exp(values) + std::log(kSmoothing);
    return spread;
  }

 private:
  std::vector<double> best_;
  std::vector<double> weights_;
  std::vector<double> draws_;
};

// All processes, and the search for the best acquisition under them.
class SeveralModel {
 public:
  SeveralModel(const SeveralQuestion& question, const std::vector<UnitPoint>& pending,
               const Encoding& encoding, const Options& options, const Wanted& wanted,
               RandomStream& random)
      : encoding_(&encoding),
        goals_(question.goals),
        numbers_(question.goals),
        fits_(question.fits),
        margin_(question.goals > 1 ? options.margin : wanted.margin),
        wanted_(wanted),
        pending_(pending) {
    for (const Observation& each : question.known.observations) {
      points_.push_back(each.point);
      violations_.push_back(merit_of(each.result.numbers, goals_).violation);
      numbers_ = std::max(numbers_, each.result.numbers.size());
    }
    fits_.resize(numbers_);
    for (std::size_t goal = 0; goal < goals_; ++goal) {
      add_goal(question, goal, random);
    }
    for (std::size_t number = goals_; number < numbers_; ++number) {
      add_constraint(question, number, random);
    }
  }

  // The reason why there is nothing to be learnt; mostly empty.
  std::string trouble() const {
    if (!objectives_.empty() || !constraints_.empty()) return {};
    return trouble_.empty() ? "all results are alike" : trouble_;
  }

  std::optional<Proposal> best_candidate(const TriedPoints& tried, RandomStream& random) const {
    const Aim aim(*this, random);
    const auto score = [&](const std::vector<UnitPoint>& points) {
      return expected_at(points, aim);
    };
    return proposal_of(
        gp::best_candidate(best_of(points_, aim.worths), score, *encoding_, tried, random), aim);
  }

  std::optional<Proposal> best_candidate_in_haste(const TriedPoints& tried, RandomStream& random) {
    const Aim aim(*this, random);
    const Following following = {
        .score = [&](const auto& points) { return expected(rough_predictions_at(points), aim); },
        .follow = [&](const auto& points) { for_all([&](Model& model) { model.follow(points); }); },
        .unfollow = [&](std::size_t place) { unfollow(place); },
        .expected = [&](std::size_t first) { return expected(predictions_followed(first), aim); }};
    return proposal_of(
        pool_.best(best_of(points_, aim.worths), following, *encoding_, tried, random), aim);
  }

  void believe(const UnitPoint& point) {
    pool_.remove(point, [&](std::size_t place) { unfollow(place); });
    for_all([&](Model& model) { model.believe(point); });
    pending_.push_back(point);
  }

  // Those of the last answer, where there was no model now.
  const std::vector<Fit>& fits() const { return fits_; }

 private:
  struct Objective {
    Model model;
    std::vector<double> targets;
  };
  struct Constraint {
    Model model;
    double bound;
    std::optional<double> nearest;  // while no trial keeps all: of the one that breaks them least
  };
  // What one proposal is to be good for.
  struct Aim {
    Aim(const SeveralModel& model, RandomStream& random) : scalar(model.best_targets(), random) {
      for (std::size_t i = 0; i < model.points_.size(); ++i) {
        const double violation = model.violations_[i];
        worths.push_back(violation > 0 ? -1e6 - violation : scalar.of(model.targets_at(i)));
      }
      best = model.best_value(scalar, worths);
      over = best.value_or(0) + model.margin_;
    }
    Scalarisation scalar;
    std::vector<double> worths;  // of the observations
    std::optional<double> best;
    double over = 0;  // an improvement counts from here
  };

  void for_all(const std::function<void(Model&)>& call) {
    for (Objective& each : objectives_) call(each.model);
    for (Constraint& each : constraints_) call(each.model);
  }
  void unfollow(std::size_t place) {
    for_all([&](Model& model) { model.unfollow(place); });
  }

  // A number that is the same of all trials has none.
  std::optional<Model> fitted_to(const SeveralQuestion& question, std::size_t number,
                                 const std::vector<double>& targets, RandomStream& random) {
    ModelOutcome outcome =
        Model::make(question.known, targets, pending_, *encoding_, fits_[number], wanted_, random);
    if (!outcome.model) trouble_ = outcome.trouble;
    if (outcome.model) fits_[number] = outcome.model->fit();
    return std::move(outcome.model);
  }
  void add_goal(const SeveralQuestion& question, std::size_t goal, RandomStream& random) {
    std::vector<double> targets = targets_of(of_number(question.known.observations, goal));
    auto model = fitted_to(question, goal, targets, random);
    if (model) objectives_.push_back({std::move(*model), std::move(targets)});
  }
  void add_constraint(const SeveralQuestion& question, std::size_t number, RandomStream& random) {
    const MarginTargets margins =
        margin_targets(all_of_number(question.known.observations, number));
    auto model = fitted_to(question, number, margins.targets, random);
    if (!model) return;
    constraints_.push_back({std::move(*model), margins.bound, {}});
    const auto least = std::ranges::min_element(violations_);
    if (*least > 0) {
      constraints_.back().nearest =
          margins.targets[static_cast<std::size_t>(least - violations_.begin())];
    }
  }

  std::vector<double> targets_at(std::size_t observation) const {
    std::vector<double> targets;
    for (const Objective& each : objectives_) targets.push_back(each.targets[observation]);
    return targets;
  }

  // Of each objective, among the trials that keep the constraints if there are such.
  std::vector<double> best_targets() const {
    const bool some_keep = std::ranges::count(violations_, 0.0) > 0;
    std::vector<double> best;
    for (const Objective& each : objectives_) {
      double top = kWorst;
      for (std::size_t i = 0; i < each.targets.size(); ++i) {
        if (!some_keep || violations_[i] == 0) top = std::max(top, each.targets[i]);
      }
      best.push_back(top);
    }
    return best;
  }

  // Observed, or believed of what is pending; nothing while no trial keeps the constraints.
  std::optional<double> best_value(const Scalarisation& scalar,
                                   const std::vector<double>& worths) const {
    std::optional<double> best;
    for (std::size_t i = 0; i < worths.size(); ++i) {
      if (violations_[i] == 0) best = std::max(best.value_or(kWorst), worths[i]);
    }
    if (!best || objectives_.empty() || pending_.empty()) return best;
    std::vector<Prediction> predictions;
    for (const Objective& each : objectives_) predictions.push_back(each.model.predict(pending_));
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      std::vector<double> means;
      for (const Prediction& each : predictions) {
        means.push_back(each.mean[static_cast<Eigen::Index>(i)]);
      }
      best = std::max(*best, scalar.of(means));
    }
    return best;
  }

  // Of objectives, then of constraints.
  template <class Predict>
  auto of_all(const Predict& predict) const {
    std::vector<decltype(predict(objectives_.front().model))> all;
    for (const Objective& each : objectives_) all.push_back(predict(each.model));
    for (const Constraint& each : constraints_) all.push_back(predict(each.model));
    return all;
  }
  std::vector<Prediction> rough_predictions_at(const std::vector<UnitPoint>& points) const {
    return of_all([&](const Model& model) { return model.predict_roughly(points); });
  }
  std::vector<Prediction> predictions_followed(std::size_t first) const {
    return of_all([&](const Model& model) { return model.predict_followed(first); });
  }

  std::vector<Expectation> expected(const std::vector<Prediction>& predictions,
                                    const Aim& aim) const {
    const std::size_t goals = objectives_.size();
    std::vector<Expectation> all(static_cast<std::size_t>(predictions.front().mean.size()));
    std::vector<double> means(goals);
    std::vector<double> deviations(goals);
    for (std::size_t i = 0; i < all.size() && goals > 0; ++i) {
      for (std::size_t j = 0; j < goals; ++j) {
        means[j] = predictions[j].mean[static_cast<Eigen::Index>(i)];
        deviations[j] = predictions[j].standard_deviation[static_cast<Eigen::Index>(i)];
      }
      const auto spread = aim.scalar.of(means, deviations, aim.over);
      all[i] = {spread.mean, spread.standard_deviation, aim.best ? spread.log_improvement : 0};
    }
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      add_chances(predictions[goals + i], constraints_[i], all);
    }
    return all;
  }

  // The mean over draws of the length scales. A process with fewer draws begins again with its
  // first.
  std::vector<Expectation> expected_at(const std::vector<UnitPoint>& points, const Aim& aim) const {
    const auto by_process =
        of_all([&](const Model& model) { return model.predictions_by_draw(points); });
    std::size_t draws = 0;
    for (const auto& each : by_process) draws = std::max(draws, each.size());
    std::vector<std::vector<Expectation>> by_draw;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      std::vector<Prediction> together;
      for (const auto& each : by_process) together.push_back(each[draw % each.size()]);
      by_draw.push_back(expected(together, aim));
    }
    return mixed(by_draw);
  }

  // That a constraint is kept, given the predictions of its margins. Where no trial keeps all and
  // the model is sure that no place does, the least broken is looked for.
  static void add_chances(const Prediction& margins, const Constraint& constraint,
                          std::vector<Expectation>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double mean = margins.mean[static_cast<Eigen::Index>(i)];
      const double deviation = margins.standard_deviation[static_cast<Eigen::Index>(i)];
      double chance = log_normal_cdf((mean - constraint.bound) / deviation);
      if (constraint.nearest) {
        const double nearer = log_expected_improvement(mean, deviation, *constraint.nearest);
        chance = log_sum(chance, kLogNearer + nearer);
      }
      all[i].acquisition += chance;
    }
  }

  std::optional<Proposal> proposal_of(std::optional<Scored> found, const Aim& aim) const {
    if (!found) return std::nullopt;
    Proposal proposal;
    proposal.point = std::move(found->point);
    proposal.origin = ProposalOrigin::kModel;
    proposal.expected = found->expected;
    if (aim.best) proposal.margin = margin_;  // else there is nothing to improve on
    const Model& first =
        objectives_.empty() ? constraints_.front().model : objectives_.front().model;
    proposal.neighbours = first.neighbours_of(proposal.point);
    return proposal;
  }

  const Encoding* encoding_;
  std::size_t goals_;
  std::size_t numbers_;  // objectives and constraints
  std::vector<Fit> fits_;
  double margin_;  // from which above the best an improvement counts
  Wanted wanted_;
  std::vector<UnitPoint> pending_;
  std::vector<UnitPoint> points_;   // observed
  std::vector<double> violations_;  // there
  std::vector<Objective> objectives_;
  std::vector<Constraint> constraints_;
  CandidatePool pool_;  // of many proposals
  std::string trouble_;
};

}  // namespace

SeveralAnswer propose_several(const SeveralQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random) {
  using SeveralBatch = Batch<SeveralModel>;
  const auto make = [&](const std::vector<UnitPoint>& pending, const Wanted& wanted,
                        RandomStream& stream) -> SeveralBatch::Outcome {
    SeveralModel model(question, pending, encoding, options, wanted, stream);
    std::string trouble = model.trouble();
    if (!trouble.empty()) return {{}, std::move(trouble)};
    return {std::move(model), {}};
  };
  SeveralBatch batch(question.known, encoding, options, make);
  SeveralAnswer answer;
  answer.proposals = batch.proposals(question.count, question.in_haste, random);
  answer.fits = batch.model() ? batch.model()->fits() : question.fits;
  return answer;
}

}  // namespace tune::search::gp
