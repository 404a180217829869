// One batch of proposals that know those before them: which are drawn, and which a model makes. The
// same for all models of gp. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tune/search/gp/model.h"
#include "tune/search/gp/propose.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

inline constexpr std::size_t kFewestResults = 2;  // of which a model can be made

// A model has best_candidate(), best_candidate_in_haste() and believe(), as Model
// (tune/search/gp/model.h) has.
template <class SomeModel>
class Batch {
 public:
  struct Outcome {
    std::optional<SomeModel> model;
    std::string trouble;  // why there is none
  };
  // Given the points whose results are not known.
  using Make =
      std::function<Outcome(const std::vector<UnitPoint>& pending, const Wanted&, RandomStream&)>;

  // `make` is called once, when a model is first needed. All must outlive this.
  Batch(const TrainingSet& known, const Encoding& encoding, const Options& options, Make make)
      : known_(known),
        encoding_(encoding),
        options_(options),
        make_(std::move(make)),
        tried_(known.fingerprints),
        pending_(known.pending) {}

  std::vector<Proposal> proposals(std::size_t count, bool in_haste, RandomStream& random) {
    count_ = count;
    in_haste_ = in_haste || count > options_.searched_in_full;
    std::vector<Proposal> made;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal = next(random);
      proposal.results_known = known_.results_known;
      proposal.pending_known = known_.pending_known + static_cast<std::uint32_t>(i);
      remember(proposal.point);
      made.push_back(std::move(proposal));
    }
    return made;
  }
  const std::optional<SomeModel>& model() const { return outcome_.model; }

 private:
  Proposal next(RandomStream& random) {
    if (known_.results_known < std::max(options_.start_up, kFewestResults)) {
      return drawn(ProposalOrigin::kStartUp, {}, random);
    }
    if (random.uniform() < options_.random_share) {
      return drawn(ProposalOrigin::kRandom, {}, random);
    }
    if (!outcome_.model && outcome_.trouble.empty()) {
      outcome_ = make_(pending_, wanted(), random);
    }
    if (!outcome_.model) return drawn(ProposalOrigin::kFallback, outcome_.trouble, random);
    SomeModel& model = *outcome_.model;
    auto proposal = in_haste_ ? model.best_candidate_in_haste(tried_, random)
                              : model.best_candidate(tried_, random);
    if (proposal) return std::move(*proposal);
    return drawn(ProposalOrigin::kFallback, "all candidates had been tried", random);
  }

  Wanted wanted() const {
    return {.count = static_cast<int>(count_),
            .in_haste = in_haste_,
            .averaged_up_to = options_.averaged_up_to,
            .margin = known_.stopped_early ? options_.margin : 0};
  }

  Proposal drawn(ProposalOrigin origin, std::string note, RandomStream& random) const {
    DrawnPoint found = draw_untried(encoding_, tried_, random);
    if (!note.empty() && !found.note.empty()) note += "; ";
    return {.point = std::move(found.point), .origin = origin, .note = note + found.note};
  }

  void remember(const UnitPoint& point) {
    tried_.add(point);
    pending_.push_back(point);
    if (outcome_.model) outcome_.model->believe(point);
  }

  const TrainingSet& known_;
  const Encoding& encoding_;
  const Options& options_;
  Make make_;
  std::size_t count_ = 0;
  bool in_haste_ = false;
  TriedPoints tried_;
  std::vector<UnitPoint> pending_;
  Outcome outcome_;
};

}  // namespace tune::search::gp
