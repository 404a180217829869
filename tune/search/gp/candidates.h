// Points near another one, for searching an acquisition function from. Pure.
#pragma once

#include "core/random.h"
#include "tune/search/encoding.h"

namespace tune::search::gp {

// How far parameters are moved.
struct Move {
  double scale;      // the standard deviation, of the unit interval
  double share = 1;  // of the parameters, in the mean
};

// Moves parameters of a point by normal noise, in many dimensions only about 20 of them (Regis and
// Shoemaker, "Combining radial basis function surrogates and dynamic coordinate search in
// high-dimensional expensive black-box optimization", 2013), and gives now and then a choice
// another option.
//
// A parameter of few values would stay where it is under noise that is smaller than its cells. It
// moves to the next cell with the chance that makes its mean way that of the noise. The result is
// settled: what another option makes active is drawn.
UnitPoint near(const UnitPoint& point, const Move& move, const Encoding& encoding,
               RandomStream& random);

}  // namespace tune::search::gp
