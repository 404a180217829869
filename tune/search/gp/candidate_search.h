// The search for the point with the best acquisition. Pure.
//
// Candidates are drawn as the space draws, and made near the best of the trials; rounds of
// candidates ever nearer to the best of all follow. None is a point that was tried or that does not
// hold.
#pragma once

#include <Eigen/Core>

#include <functional>
#include <optional>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/proposal.h"
#include "tune/search/tried_points.h"

namespace tune::search::gp {

struct Scored {
  UnitPoint point;
  Expectation expected;
};
// The expectation of each point; never asked about none.
using Score = std::function<std::vector<Expectation>(const std::vector<UnitPoint>&)>;

inline constexpr std::size_t kBestPoints = 5;  // near which candidates are made

// Nothing when all candidates were tried. `best` are the points of the best trials, the best first.
std::optional<Scored> best_candidate(const std::vector<UnitPoint>& best, const Score& score,
                                     const Encoding& encoding, const TriedPoints& tried,
                                     RandomStream& random);
// A short search, of 170 candidates: drawn, and near the best of `known`, which were not
// tried.
std::optional<Scored> better_candidate(std::vector<Scored> known, const Score& score,
                                       const Encoding& encoding, const TriedPoints& tried,
                                       RandomStream& random);

// A column of features for each point.
Eigen::MatrixXd features_of(const std::vector<UnitPoint>& points, const Encoding& encoding);
// Of the points those with the kBestPoints largest values, the best first; the first of equal ones.
std::vector<UnitPoint> best_of(const std::vector<UnitPoint>& points,
                               const std::vector<double>& values);

}  // namespace tune::search::gp
