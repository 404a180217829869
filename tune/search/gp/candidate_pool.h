// Candidates that last from one proposal of a large batch to the next. Pure.
//
// A search made anew for every proposal predicts 3,040 points each time. Between two proposals of a
// batch only a believer comes in: no mean changes, and each variance by one number, which a model
// keeps in step for the points that it follows (rough_posterior.h). So the first search is a whole
// one; of its candidates the best are followed, and each other proposal is the best of these after
// a short search from them, whose candidates take the places of the worst. Now and then another
// whole search brings in others. The simpler way, to take one after the other of the first search's
// candidates, has nothing left but points drawn once what lay around the best is believed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/gp/candidate_search.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

// A model that follows the points of a pool, by their places there.
struct Following {
  Score score;                                                    // of any points
  std::function<void(const std::vector<UnitPoint>&)> follow;      // after those that are followed
  std::function<void(std::size_t)> unfollow;                      // the last one takes its place
  std::function<std::vector<Expectation>(std::size_t)> expected;  // of all from a place on
};

class CandidatePool {
 public:
  // As best_candidate(). The model and what is followed are the same for the whole batch.
  std::optional<Scored> best(const std::vector<UnitPoint>& best, const Following& following,
                             const Encoding& encoding, const TriedPoints& tried,
                             RandomStream& random);
  // A point that was tried since; `unfollow` as Following's.
  void remove(const UnitPoint& point, const std::function<void(std::size_t)>& unfollow);

 private:
  using Unfollow = std::function<void(std::size_t)>;
  std::optional<Scored> best_of_all(const std::vector<UnitPoint>& best, const Following& following,
                                    const Encoding& encoding, const TriedPoints& tried,
                                    RandomStream& random);
  std::vector<Scored> best_known(const std::vector<Expectation>& expected) const;
  void shrink(const std::vector<Expectation>& expected, const Unfollow& unfollow);
  void remove_at(std::size_t place, const Unfollow& unfollow);

  std::vector<UnitPoint> points_;  // those that are followed
  std::size_t made_ = 0;           // proposals
};

}  // namespace tune::search::gp
