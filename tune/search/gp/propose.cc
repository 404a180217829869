#include "tune/search/gp/propose.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tune/search/gp/model.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

namespace {

constexpr std::size_t kFewest = 2;  // results of which a model can be made

// One batch: proposals that know those before them.
class Batch {
 public:
  Batch(const Question& question, const Encoding& encoding, const Options& options)
      : question_(question),
        encoding_(encoding),
        options_(options),
        tried_(question.known.fingerprints),
        pending_(question.known.pending),
        fit_(question.fit) {}

  Answer proposals(RandomStream& random) && {
    Answer answer;
    for (std::size_t i = 0; i < question_.count; ++i) {
      Proposal proposal = next(random);
      proposal.results_known = question_.known.results_known;
      proposal.pending_known = question_.known.pending_known + static_cast<std::uint32_t>(i);
      remember(proposal.point);
      answer.proposals.push_back(std::move(proposal));
    }
    answer.fit = std::move(fit_);
    return answer;
  }

 private:
  Proposal next(RandomStream& random) {
    if (question_.known.results_known < std::max(options_.start_up, kFewest)) {
      return drawn(ProposalOrigin::kStartUp, {}, random);
    }
    if (random.uniform() < options_.random_share) {
      return drawn(ProposalOrigin::kRandom, {}, random);
    }
    make_model();
    if (!model_) return drawn(ProposalOrigin::kFallback, trouble_, random);
    if (auto proposal = model_->best_candidate(tried_, random)) return std::move(*proposal);
    return drawn(ProposalOrigin::kFallback, "all candidates had been tried", random);
  }

  Proposal drawn(ProposalOrigin origin, std::string note, RandomStream& random) const {
    DrawnPoint found = draw_untried(encoding_, tried_, random);
    if (!note.empty() && !found.note.empty()) note += "; ";
    return {.point = std::move(found.point), .origin = origin, .note = note + found.note};
  }

  // Once a batch, when it is first needed.
  void make_model() {
    if (model_ || !trouble_.empty()) return;
    ModelOutcome outcome = Model::make(question_.known, pending_, encoding_, fit_, options_.targets,
                                       static_cast<int>(question_.count));
    model_ = std::move(outcome.model);
    trouble_ = std::move(outcome.trouble);
    if (model_) fit_ = model_->fit();
  }

  void remember(const UnitPoint& point) {
    tried_.add(point);
    pending_.push_back(point);
    if (model_) model_->believe(point);
  }

  const Question& question_;
  const Encoding& encoding_;
  const Options& options_;
  TriedPoints tried_;
  std::vector<UnitPoint> pending_;
  Fit fit_;
  std::optional<Model> model_;
  std::string trouble_;
};

}  // namespace

Answer propose(const Question& question, const Encoding& encoding, const Options& options,
               RandomStream& random) {
  return Batch(question, encoding, options).proposals(random);
}

}  // namespace tune::search::gp
