// One domain on the unit interval: the coordinate that model-based searchers work with instead of a
// value. A coordinate drawn evenly from [0, 1) gives a value as the domain draws it.
//
//   uniform, loguniform    where the value lies between the bounds, on their scale
//   randn                  the share of draws below the value
//   whole numbers          [0, 1) is cut into a cell for each, even or as wide as their logarithms
//   choice                 an even cell for each position
//   multiples of q         a cell for each, whose values round to it (half a cell at the bounds)
//
// Without bounds a model would find its best point where the scale ends, at eight standard
// deviations: so the cells of randn end at 3.5, and farther coordinates come from draws alone.
//
// All coordinates of a cell mean the same value; one of them, `at`, stands for it, so that equal
// values have equal coordinates. A value that a choice names twice has two cells, and the first
// one's `at` stands for both. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "core/value.h"
#include "tune/search/search_space.h"

namespace tune {

// Equal, whatever the order of keys and the spelling of numbers: 1 and 1.0.
bool are_alike(const Value& a, const Value& b);

// A number without a fraction that fits; nothing: it is something else.
std::optional<std::int64_t> whole_number(const Value& value);

// The coordinates of one value: those in [low, high) mean it, and `at` stands for it. In a
// continuum all three are one.
struct UnitCell {
  double low = 0;
  double at = 0;
  double high = 0;
  double width() const { return high - low; }
};

class UnitDomain {
 public:
  explicit UnitDomain(Domain domain);  // TUNE_CHECK: neither Grid nor SampleFrom

  const Domain& domain() const { return domain_; }
  bool is_choice() const;
  // The number of values there are; nothing: no end, or more than 2^53.
  std::optional<std::uint64_t> count() const;
  // Whether its values are cells of one width.
  bool is_even() const { return lattice_ == Lattice::kWhole && scale_ == Scale::kLinear; }

  // Coordinates outside [0, 1] count as the nearer bound.
  Value value(double unit) const;
  UnitCell cell(double unit) const;
  // The coordinate that stands for this value; nothing when the domain never draws it. An integer
  // stands for the same number written as a float, and the other way round.
  std::optional<double> unit(const Value& value) const;

 private:
  enum class Scale : char { kLinear, kLog, kNormal };
  // The place of values in the numbers of the scale: everywhere, a whole number v in [v, v + 1), or
  // a multiple of q in what rounds to it.
  enum class Lattice : char { kNone, kWhole, kMultiples };

  void lay(Scale scale, double low, double high, Lattice lattice);
  double number(double unit) const;  // on the scale, unrounded
  double coordinate(double number) const;
  std::int64_t whole(double unit) const;  // with kWhole: the number itself
  double multiple(double unit) const;     // with kMultiples: the number itself
  UnitCell whole_cell(std::int64_t number) const;
  std::int64_t first_alike(std::int64_t option) const;
  UnitCell multiple_cell(double number) const;

  Domain domain_;
  Scale scale_ = Scale::kLinear;
  Lattice lattice_ = Lattice::kNone;
  double low_ = 0;  // bounds of the scale; with kNormal mean and standard deviation
  double high_ = 1;
  double q_ = 0;            // of kMultiples
  std::int64_t first_ = 0;  // of kWhole: the numbers in [first_, last_]
  std::int64_t last_ = 0;
  std::int64_t step_ = 1;  // of an Integer with q: its values are the numbers times this
};

}  // namespace tune
