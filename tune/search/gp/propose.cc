#include "tune/search/gp/propose.h"

#include <utility>

#include "tune/search/gp/batch.h"
#include "tune/search/gp/model.h"
#include "tune/search/gp/targets.h"

namespace tune::search::gp {

Answer propose(const Question& question, const Encoding& encoding, const Options& options,
               RandomStream& random) {
  using ModelBatch = Batch<Model>;
  const auto make = [&](const std::vector<UnitPoint>& pending, const Wanted& wanted,
                        RandomStream& stream) -> ModelBatch::Outcome {
    const std::vector<double> targets = targets_of(question.known.observations);
    ModelOutcome outcome =
        Model::make(question.known, targets, pending, encoding, question.fit, wanted, stream);
    return {std::move(outcome.model), std::move(outcome.trouble)};
  };
  ModelBatch batch(question.known, encoding, options, make);
  Answer answer;
  answer.proposals = batch.proposals(question.count, question.in_haste, random);
  answer.fit = batch.model() ? batch.model()->fit() : question.fit;
  return answer;
}

}  // namespace tune::search::gp
