// The searcher `auto`: which searcher fits a sweep, and the proposer behind it where something can
// be learnt. Pure.
//
// Before the sweep: random search (basic_variant) when there is no metric, when a grid_search asks
// for every value, when the scheduler changes values itself (population based training), when there
// are fewer than kFewestTrials trials, or when a model cannot search the space (nothing but
// functions, points_to_evaluate outside of it). What was chosen stands in experiment.json, so that
// a resume with more trials goes on with it.
//
// During the sweep, for each question: gp, with conditions as well (in 30 tasks of an xgboost space
// it is level with tpe after 25 trials, and far ahead after 50 and 100). But tpe
// - in a space of more than kMostFeatures features (a number is one, a choice as many as it has
//   options), where a fit takes too long. It then stays with tpe beyond 500 trials of several
//   objectives as well, where gp hands over to NSGA-II;
// - for what a question asks for beyond kMostByGp proposals: so many are only wanted at once where
//   trials end faster than gp could propose.
// It stays with gp beyond 500 trials of one metric, where others go on with CMA-ES or TPE: gp's
// model is made of 250 trials at most, so that a proposal takes no longer. Which is better there
// was not measured.
#pragma once

#include <cstddef>
#include <string>

#include "tune/search/gp/gp_proposer.h"
#include "tune/search/proposer.h"
#include "tune/search/searcher.h"
#include "tune/search/tpe/propose.h"

namespace tune::search {

inline constexpr std::int64_t kFewestTrials = 10;
inline constexpr std::size_t kMostFeatures = 60;
inline constexpr std::size_t kMostByGp = 16;

struct SearcherChoice {
  SearcherSpec searcher;
  std::string told;  // "gp, as 7 parameters are few enough for a model of loss"
};

// `values_change`: the scheduler gives trials other values than were proposed. `is_warm`: earlier
// experiments will be known, so that there is something to learn from however few trials there are.
// Throws Error (kBadInput) when these could not be learnt from in this space.
SearcherChoice choose_searcher(const SearcherSetup& setup, bool values_change, bool is_warm);

class AutomaticProposer : public Proposer {
 public:
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override;
  bool takes_several_objectives() const override { return true; }
  std::size_t start_up() const override { return gp_.start_up(); }

 private:
  gp::GpProposer gp_{{}};
  tpe::TpeProposer tpe_;
};

}  // namespace tune::search
