// RankedValues: values in order, so that it costs little to say how many are better than another.
// They are kept in sorted blocks: adding one moves a part of a block, and a rank is the sum of the
// sizes of the blocks above, some 200 additions of 100,000 values. Larger is better, NaN the worst.
// Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace tune {

class RankedValues {
 public:
  void add(double value);
  std::size_t better_than(double value) const;  // how many

 private:
  static constexpr std::size_t kMost = 1024;  // of a block

  std::vector<std::vector<double>> blocks_;  // the worst first; none is empty
};

}  // namespace tune
