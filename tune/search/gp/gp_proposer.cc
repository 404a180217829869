#include "tune/search/gp/gp_proposer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/wire.h"
#include "tune/search/gp/several.h"
#include "tune/search/nsga2/propose.h"

namespace tune::search::gp {

namespace {

bool is_finite(const Fit& fit) {
  const auto finite = [](double one) { return std::isfinite(one); };
  return finite(fit.scales.log_noise) && std::ranges::all_of(fit.scales.log_lengths, finite);
}

Fit fit_of(const std::string& state) {
  if (state.empty()) return {};
  try {
    auto fit = decoded<Fit>(state);
    if (is_finite(fit)) return fit;
  } catch (const Error&) {  // not its own
  }
  return {};
}

std::vector<Fit> fits_of(const std::string& state) {
  if (state.empty()) return {};
  try {
    auto fits = decoded<std::vector<Fit>>(state);
    if (std::ranges::all_of(fits, is_finite)) return fits;
  } catch (const Error&) {  // not its own
  }
  return {};
}

ProposerAnswer by_nsga2(const ProposerQuestion& question, const Encoding& encoding,
                        RandomStream& random) {
  ProposerAnswer answer{nsga2::propose(question, encoding, {}, random), question.state};
  for (Proposal& proposal : answer.proposals) {
    proposal.model = "nsga2";
    const std::string why = proposal.note.empty() ? "" : "; " + proposal.note;
    proposal.note = "there are more than 500 trials of several objectives: NSGA-II goes on" + why;
  }
  return answer;
}

}  // namespace

ProposerAnswer GpProposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                   RandomStream& random) const {
  const std::size_t goals = question.known.goals();
  if (goals > 1 && question.known.trials().size() > kMostTrialsOfSeveral) {
    return by_nsga2(question, encoding, random);
  }
  if (goals > 0) {
    SeveralQuestion asked{training_set(question.known), goals, fits_of(question.state),
                          question.count};
    asked.in_haste = is_in_haste(question, std::ranges::any_of(asked.fits, &Fit::in_haste));
    SeveralAnswer answer = propose_several(asked, encoding, options_, random);
    return {std::move(answer.proposals), encoded(answer.fits)};
  }
  Question asked{training_set(question.known), fit_of(question.state), question.count};
  asked.in_haste = is_in_haste(question, asked.fit.in_haste);
  Answer answer = gp::propose(asked, encoding, options_, random);
  return {std::move(answer.proposals), encoded(answer.fit)};
}

// The last question of all is for what is left, however many were kept in stock.
bool GpProposer::is_in_haste(const ProposerQuestion& question, bool last_was) const {
  if (std::max(question.count, question.in_stock) > options_.searched_in_full) return true;
  return question.is_last && last_was;
}

}  // namespace tune::search::gp
