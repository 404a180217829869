#include "simulator/simulated_searcher.h"

#include <cmath>
#include <stdexcept>

#include "core/wire.h"

namespace tune::simulator {

ProposerAnswer SimulatedProposer::propose(const ProposerQuestion& question,
                                          const Encoding& encoding, RandomStream& random) const {
  const std::uint64_t answers =
      1 + (question.state.empty() ? 0 : decoded<std::uint64_t>(question.state));
  if (answers % 7 == 0) throw std::runtime_error("the seventh answer fails");
  std::uint32_t known = 0;
  std::uint64_t steps = 0;
  std::uint64_t standings = 0;
  for (const KnownTrial& trial : question.known.trials()) {
    standings = 5 * standings + static_cast<std::uint64_t>(trial.standing);
    if (!trial.newest) continue;
    ++known;
    steps += trial.newest->iteration;
  }
  const double moment = 0.37 * static_cast<double>(steps + answers + standings % 1000);
  ProposerAnswer answer;
  answer.state = encoded(answers);
  for (std::size_t i = 0; i < question.count; ++i) {
    UnitPoint point = encoding.draw(random);
    point[0] = std::fmod(point[0] + moment, 1.0);
    Proposal proposal;
    proposal.point = encoding.settled(std::move(point), random);
    proposal.origin = ProposalOrigin::kModel;
    proposal.results_known = known;
    answer.proposals.push_back(std::move(proposal));
  }
  return answer;
}

}  // namespace tune::simulator
