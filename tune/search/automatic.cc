#include "tune/search/automatic.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune::search {

namespace {

// The reason why nothing can be learnt; empty when something can.
std::string why_random(const SearcherSetup& setup, bool values_change) {
  const auto domains = setup.space.placed_domains();
  const auto is_grid = [](const PlacedDomain& placed) { return placed.domain->is_grid(); };
  if (goals_of(setup.objective).empty()) return "there is no metric to learn from";
  if (std::ranges::any_of(domains, is_grid)) return "of a grid_search every value is tried";
  if (values_change) return "the scheduler changes the values of trials itself";
  if (setup.num_samples >= 0 && setup.num_samples < kFewestTrials) {
    return fmt::format("{} trial{} too few to learn from", setup.num_samples,
                       setup.num_samples == 1 ? " is" : "s are");
  }
  try {
    if (Encoding(setup.space, setup.where).size() == 0) return "config has nothing to choose";
    automatic().make()->configure(setup);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// "loss", or "2 objectives", or "loss under 1 constraint".
std::string told(const Objective& objective) {
  const std::size_t goals = objective.goals.size();
  const std::size_t bounds = objective.constraints.size();
  std::string text = goals > 0 ? fmt::format("{} objectives", goals) : objective.metric;
  if (bounds > 0) text += fmt::format(" under {} constraint{}", bounds, bounds == 1 ? "" : "s");
  return text;
}

std::string told(const Encoding& encoding, const Objective& objective) {
  const std::string metric = told(objective);
  std::string parameters =
      fmt::format("{} parameter{}", encoding.size(), encoding.size() == 1 ? "" : "s");
  if (encoding.feature_count() > kMostFeatures) {
    if (encoding.feature_count() != encoding.size()) {  // each option of a choice is one
      parameters += fmt::format(" of {} features", encoding.feature_count());
    }
    return fmt::format("tpe, as {} are too many for gp, and {}", parameters, metric);
  }
  return fmt::format("gp, as {} {} few enough for a model of {}", parameters,
                     encoding.size() == 1 ? "is" : "are", metric);
}

void name_model(std::vector<Proposal>& proposals, const char* name) {
  for (Proposal& proposal : proposals) {
    if (proposal.model.empty()) proposal.model = name;
  }
}

}  // namespace

SearcherChoice choose_searcher(const SearcherSetup& setup, bool values_change, bool is_warm) {
  if (is_warm) {
    automatic().make()->configure(setup);
    return {automatic(),
            told(Encoding(setup.space, setup.where), setup.objective) + ", after a warm start"};
  }
  const std::string why = why_random(setup, values_change);
  if (!why.empty()) return {basic_variant(), "random search, as " + why};
  return {automatic(), told(Encoding(setup.space, setup.where), setup.objective)};
}

ProposerAnswer AutomaticProposer::propose(const ProposerQuestion& question,
                                          const Encoding& encoding, RandomStream& random) const {
  ProposerQuestion rest = question;
  ProposerAnswer answer{{}, question.state};
  if (encoding.feature_count() <= kMostFeatures) {
    ProposerQuestion first = question;
    first.count = std::min(question.count, kMostByGp);
    answer = gp_.propose(first, encoding, random);
    name_model(answer.proposals, "gp");
    rest.count -= first.count;
  }
  if (rest.count == 0) return answer;
  for (const Proposal& proposal : answer.proposals) rest.known.add_proposed(proposal.point);
  ProposerAnswer others = tpe_.propose(rest, encoding, random);
  name_model(others.proposals, "tpe");
  std::ranges::move(others.proposals, std::back_inserter(answer.proposals));
  return answer;
}

}  // namespace tune::search
