#include "tune/search/gp/gp_proposer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/wire.h"

namespace tune::search::gp {

namespace {

Fit fit_of(const std::string& state) {
  if (state.empty()) return {};
  try {
    auto fit = decoded<Fit>(state);
    const bool is_finite =
        std::isfinite(fit.log_noise) &&
        std::ranges::all_of(fit.log_length_scales, [](double one) { return std::isfinite(one); });
    if (is_finite) return fit;
  } catch (const Error&) {  // not its own
  }
  return {};
}

}  // namespace

ProposerAnswer GpProposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                   RandomStream& random) const {
  const Question asked{training_set(question.known), fit_of(question.state), question.count};
  Answer answer = gp::propose(asked, encoding, options_, random);
  return {std::move(answer.proposals), encoded(answer.fit)};
}

}  // namespace tune::search::gp
