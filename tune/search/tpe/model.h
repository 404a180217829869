// The two densities of each sub-space, and the point at which their proportion is best. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "core/random.h"
#include "tune/search/encoding.h"
#include "tune/search/tpe/density.h"
#include "tune/search/tpe/evidence.h"
#include "tune/search/tpe/sub_spaces.h"

namespace tune::search::tpe {

struct Candidate {
  UnitPoint point;  // settled
  double log_proportion = 0;
};

class Model {
 public:
  // All must outlive it. A density is made when it is first needed.
  Model(const Encoding& encoding, const std::vector<SubSpace>& sub_spaces,
        const Evidence& evidence);

  // The best of so many points drawn, sub-space by sub-space. Those that `is_free` says cannot be
  // proposed are passed over: then the next best of the first sub-space is taken, and draws are
  // made again. Nothing when none can.
  std::optional<Candidate> best(std::size_t draws,
                                const std::function<bool(const UnitPoint&)>& is_free,
                                RandomStream& random);

 private:
  struct Densities {
    Density<double> good;
    Density<float> others;
  };
  const Densities& densities(std::size_t sub_space);
  std::vector<Candidate> drawn(std::size_t sub_space, const Candidate& begun, std::size_t draws,
                               RandomStream& random);
  Candidate completed(Candidate begun, std::size_t draws, RandomStream& random);

  const Encoding& encoding_;
  const std::vector<SubSpace>& sub_spaces_;
  const Evidence& evidence_;
  std::vector<std::optional<Densities>> densities_;
};

}  // namespace tune::search::tpe
