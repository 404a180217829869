// What a set of trials is worth under several objectives, as one number. Pure.
#pragma once

#include <vector>

namespace tune {

// The share of the unit cube that the points dominate, smaller coordinates being better: the part
// between some point and the corner (1, 1, ...), 0 to 1 (the hypervolume of Zitzler and Thiele,
// "Multiobjective Optimization Using Evolutionary Algorithms", PPSN 1998). Coordinates below 0
// count as 0; a point with one of at least 1, or one that is not a number, dominates nothing. All
// points have the same number of coordinates, at least 1. By slices along one coordinate after the
// other: of n points with k of them it takes time in the order of n^(k-1) log n.
double dominated_share(std::vector<std::vector<double>> points);

}  // namespace tune
