#include "tune/search/nsga2/propose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "schedulers/fronts.h"
#include "tune/search/comparable_results.h"
#include "tune/search/tried_points.h"

namespace tune::search::nsga2 {

namespace {

// The larger, the nearer children stay to their parents.
constexpr double kCrossed = 2;
constexpr double kMutated = 5;
constexpr int kMostChildren = 50;  // that had been tried, before one is drawn

Merit merit_of_result(const History& known, const ValueAt& value) {
  if (known.goals() > 0) return known.merit(value);
  const bool is_known = std::isfinite(value.value);
  return {{value.value}, is_known ? 0 : std::numeric_limits<double>::infinity()};
}

// The two children of two numbers lie around them as those of two strings of bits would.
double crossed(double a, double b, RandomStream& random) {
  const double u = random.uniform();
  const double spread = u <= 0.5 ? std::pow(2 * u, 1 / (kCrossed + 1))
                                 : std::pow(1 / (2 * (1 - u)), 1 / (kCrossed + 1));
  const double way = (random.uniform() < 0.5 ? spread : -spread) * (a - b) / 2;
  return std::clamp((a + b) / 2 + way, 0.0, 1.0);
}

double mutated(double unit, const UnitDomain& domain, RandomStream& random) {
  const double u = random.uniform();
  const double way = u < 0.5 ? std::pow(2 * u, 1 / (kMutated + 1)) - 1
                             : 1 - std::pow(2 * (1 - u), 1 / (kMutated + 1));
  const UnitCell cell = domain.cell(unit);
  if (std::abs(way) >= cell.width()) return std::clamp(unit + way, 0.0, 1.0);
  const double beyond = way > 0 ? cell.high + 1e-9 : cell.low - 1e-9;
  if (beyond > 1) return std::clamp(cell.low - 1e-9, 0.0, 1.0);
  if (beyond < 0) return std::clamp(cell.high + 1e-9, 0.0, 1.0);
  return beyond;
}

double other_option(double unit, const UnitDomain& domain, RandomStream& random) {
  const auto count = static_cast<std::int64_t>(domain.count().value_or(1));
  if (count < 2) return unit;
  const auto old = static_cast<std::int64_t>(unit * static_cast<double>(count));
  const std::int64_t drawn = random.integer(0, count - 1);
  return (static_cast<double>(drawn + (drawn >= old ? 1 : 0)) + 0.5) / static_cast<double>(count);
}

class Batch {
 public:
  Batch(const ProposerQuestion& question, const Encoding& encoding, const Options& options)
      : known_(question.known),
        encoding_(encoding),
        options_(options),
        fingerprints_(known_.fingerprints().begin(), known_.fingerprints().end()),
        tried_(fingerprints_) {
    const std::vector<ComparableResult> results = comparable_results(known_).results;
    results_known_ = static_cast<std::uint32_t>(results.size());
    std::vector<Merit> merits;
    for (const ComparableResult& each : results) {
      merits.push_back(merit_of_result(known_, *each.value));
    }
    for (const std::size_t i : best_first(merits)) {
      if (parents_.size() < options_.population) parents_.push_back(results[i].trial);
    }
    for (const KnownTrial& trial : known_.trials()) {
      if (trial.standing == Standing::kRunning) ++pending_known_;
    }
  }

  std::vector<Proposal> proposals(std::size_t count, RandomStream& random) && {
    std::vector<Proposal> made;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal = next(random);
      proposal.results_known = results_known_;
      proposal.pending_known = pending_known_ + static_cast<std::uint32_t>(i);
      tried_.add(proposal.point);
      made.push_back(std::move(proposal));
    }
    return made;
  }

 private:
  Proposal next(RandomStream& random) const {
    if (parents_.size() < std::max<std::size_t>(options_.population, 2)) {
      return drawn(ProposalOrigin::kStartUp, {}, random);
    }
    for (int i = 0; i < kMostChildren; ++i) {
      const std::size_t first = winner(parents_.size(), random);
      std::size_t second = winner(parents_.size() - 1, random);  // of the others
      if (second >= first) ++second;
      const KnownTrial& mother = known_.trials()[parents_[first]];
      const KnownTrial& father = known_.trials()[parents_[second]];
      UnitPoint point = child(mother.point, father.point, random);
      if (tried_.contains(point) || !encoding_.holds(point)) continue;
      Proposal proposal;
      proposal.point = std::move(point);
      proposal.origin = ProposalOrigin::kModel;
      for (const KnownTrial* each : {&mother, &father}) {
        if (each->number) proposal.neighbours.push_back(*each->number);
      }
      return proposal;
    }
    return drawn(ProposalOrigin::kFallback, "all children had been tried, or did not hold", random);
  }

  // Of so many in their order the better of two that are drawn.
  static std::size_t winner(std::size_t count, RandomStream& random) {
    const auto end = static_cast<std::int64_t>(count);
    return static_cast<std::size_t>(std::min(random.integer(0, end), random.integer(0, end)));
  }

  UnitPoint child(const UnitPoint& mother, const UnitPoint& father, RandomStream& random) const {
    const auto& parameters = encoding_.parameters();
    const bool crosses = random.uniform() < options_.crossover;
    UnitPoint point = mother;
    for (std::size_t i = 0; i < point.size(); ++i) {
      const UnitDomain& domain = parameters[i].domain;
      const bool takes_part = crosses && random.uniform() < 0.5;
      const bool is_mixed = domain.is_choice() || mother[i] < 0 || father[i] < 0;
      if (takes_part && is_mixed && father[i] >= 0) point[i] = father[i];
      if (takes_part && !is_mixed) point[i] = crossed(mother[i], father[i], random);
      const bool mutates = random.uniform() * static_cast<double>(point.size()) < 1;
      if (!mutates || point[i] < 0) continue;
      point[i] = domain.is_choice() ? other_option(point[i], domain, random)
                                    : mutated(point[i], domain, random);
    }
    return encoding_.settled(std::move(point), random);
  }

  Proposal drawn(ProposalOrigin origin, std::string note, RandomStream& random) const {
    DrawnPoint found = draw_untried(encoding_, tried_, random);
    if (!note.empty() && !found.note.empty()) note += "; ";
    return {.point = std::move(found.point), .origin = origin, .note = note + found.note};
  }

  const History& known_;
  const Encoding& encoding_;
  const Options& options_;
  std::vector<std::uint64_t> fingerprints_;
  TriedPoints tried_;
  std::vector<std::size_t> parents_;  // of the history, the best first
  std::uint32_t results_known_ = 0;
  std::uint32_t pending_known_ = 0;
};

}  // namespace

std::vector<Proposal> propose(const ProposerQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random) {
  return Batch(question, encoding, options).proposals(question.count, random);
}

ProposerAnswer Nsga2Proposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                      RandomStream& random) const {
  return {nsga2::propose(question, encoding, options_, random), {}};
}

}  // namespace tune::search::nsga2
