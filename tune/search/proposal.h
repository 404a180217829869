// Proposal: a point that a searcher proposes, with what it knew and expected then, so that
// the question why a trial was tried is answered later with the numbers of that moment. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "tune/search/earlier_trial.h"
#include "tune/search/encoding.h"

namespace tune {

// Of a question for more than these a proposer may make each proposal with less effort: so many are
// asked for where trials are so short that places stand empty meanwhile.
inline constexpr std::size_t kFewProposals = 16;

enum class ProposalOrigin : std::uint8_t {
  kStartUp,   // too few results for a model: drawn as the space draws
  kRandom,    // a share is drawn so on purpose
  kModel,     // the best by the model's acquisition function
  kFallback,  // drawn because there could be no model; `note` says why
  kLast = kFallback
};

inline const char* origin_name(ProposalOrigin origin) {
  constexpr const char* kNames[] = {"start_up", "random", "model", "fallback"};
  return kNames[static_cast<std::size_t>(origin)];
}

// The model's expectation, in its own scale (tune/search/gp/targets.h for gp): the mean and
// standard deviation of the target, and the acquisition function's value. tpe expects no target.
struct Expectation {
  double mean = 0;
  double standard_deviation = 0;
  double acquisition = 0;
  bool has_target() const { return standard_deviation > 0; }
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.mean, s.standard_deviation, s.acquisition);
  }
};

struct Proposal {
  UnitPoint point;
  ProposalOrigin origin = ProposalOrigin::kStartUp;
  std::string note = {};                     // fit to show a user; mostly empty
  std::optional<Expectation> expected = {};  // kModel only
  std::vector<TrialNumber> neighbours =
      {};                           // the trials most like it, the nearest first; kModel only
  std::uint32_t results_known = 0;  // trials whose value counted
  std::uint32_t pending_known = 0;  // trials that had begun, whose value was not known
  // Of the neighbours, in that order: the newest that was known, in the metric's own direction.
  std::vector<ValueAt> neighbour_values = {};
  std::string model = {};  // "tpe": the one that made it, where a searcher asks several
  double margin = 0;       // of gp: above the best, from where an improvement counted
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.point, s.origin, s.note, s.expected, s.neighbours, s.results_known, s.pending_known);
    f.added(s.neighbour_values, s.model, s.margin);
  }
};

}  // namespace tune
