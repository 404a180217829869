#include "tune/search/tpe/propose.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/model.h"
#include "tune/search/tried_points.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kFewest = 2;  // results of which a model can be made
constexpr std::size_t kNeighbours = 3;
constexpr const char* kNoneFree = "all candidates had been tried, or did not hold";

std::vector<double> features_of(const UnitPoint& point, const Encoding& encoding) {
  std::vector<double> features(encoding.feature_count());
  encoding.write_features(point, features);
  return features;
}

// One batch: proposals that know those before them.
class Batch {
 public:
  Batch(const ProposerQuestion& question, const Encoding& encoding, const Options& options)
      : history_(question.known),
        encoding_(encoding),
        options_(options),
        sub_spaces_(sub_spaces_of(encoding)),
        evidence_(evidence(question.known, encoding.size(), question.count)),
        fingerprints_(question.known.fingerprints().begin(), question.known.fingerprints().end()),
        tried_(fingerprints_) {}

  std::vector<Proposal> proposals(std::size_t count, RandomStream& random) && {
    std::vector<Proposal> made;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal = next(random);
      proposal.results_known = evidence_.results_known;
      proposal.pending_known = evidence_.pending_known + static_cast<std::uint32_t>(i);
      evidence_.other_points.add(proposal.point);
      tried_.add(proposal.point);
      made.push_back(std::move(proposal));
    }
    return made;
  }

 private:
  Proposal next(RandomStream& random) const {
    if (evidence_.results_known < std::max(options_.start_up, kFewest)) {
      return drawn(ProposalOrigin::kStartUp, {}, random);
    }
    if (evidence_.stopped_early && random.uniform() < options_.random_share) {
      return drawn(ProposalOrigin::kRandom, {}, random);
    }
    if (!evidence_.trouble.empty()) {
      return drawn(ProposalOrigin::kFallback, evidence_.trouble, random);
    }
    if (sub_spaces_.empty())
      return drawn(ProposalOrigin::kFallback, "there are no parameters", random);
    return by_model(random);
  }

  Proposal by_model(RandomStream& random) const {
    Model model(encoding_, sub_spaces_, evidence_);
    const auto is_free = [&](const UnitPoint& point) {
      return !tried_.contains(point) && encoding_.holds(point);
    };
    auto best = model.best(std::max<std::size_t>(options_.draws, 1), is_free, random);
    if (!best) return drawn(ProposalOrigin::kFallback, kNoneFree, random);
    Proposal proposal;
    proposal.neighbours = good_near(best->point);
    proposal.point = std::move(best->point);
    proposal.origin = ProposalOrigin::kModel;
    proposal.expected = Expectation{.acquisition = best->log_proportion};
    return proposal;
  }

  Proposal drawn(ProposalOrigin origin, std::string note, RandomStream& random) const {
    DrawnPoint found = draw_untried(encoding_, tried_, random);
    if (!note.empty() && !found.note.empty()) note += "; ";
    return {.point = std::move(found.point), .origin = origin, .note = note + found.note};
  }

  // The nearest first.
  std::vector<TrialNumber> good_near(const UnitPoint& point) const {
    const std::vector<double> place = features_of(point, encoding_);
    std::vector<std::pair<double, TrialNumber>> found;
    for (const std::size_t i : evidence_.good) {
      const KnownTrial& trial = history_.trials()[i];
      if (!trial.number) continue;
      const std::vector<double> other = features_of(trial.point, encoding_);
      double square = 0;
      for (std::size_t j = 0; j < place.size(); ++j) {
        square += (place[j] - other[j]) * (place[j] - other[j]);
      }
      found.emplace_back(square, *trial.number);
    }
    std::sort(found.begin(), found.end());
    std::vector<TrialNumber> nearest;
    for (const auto& each : found) {
      if (nearest.size() < kNeighbours) nearest.push_back(each.second);
    }
    return nearest;
  }

  const History& history_;
  const Encoding& encoding_;
  const Options& options_;
  const std::vector<SubSpace> sub_spaces_;
  Evidence evidence_;
  std::vector<std::uint64_t> fingerprints_;
  TriedPoints tried_;
};

}  // namespace

std::vector<Proposal> propose(const ProposerQuestion& question, const Encoding& encoding,
                              const Options& options, RandomStream& random) {
  return Batch(question, encoding, options).proposals(question.count, random);
}

ProposerAnswer TpeProposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                    RandomStream& random) const {
  return {tpe::propose(question, encoding, options_, random), {}};
}

}  // namespace tune::search::tpe
