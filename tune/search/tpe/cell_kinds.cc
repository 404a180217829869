#include "tune/search/tpe/cell_kinds.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "tune/search/tpe/kernel_norms.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {

namespace {

// The kernels at one place.
struct Ends {
  std::size_t first = 0;
  std::size_t last = 0;
};
constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// Numbers places in the order in which they come. Its room grows with their number, not with that
// of kernels.
template <class Real>
class PlaceTable {
 public:
  PlaceTable() : slots_(1u << kFewestBits) {}

  void number(std::span<const Real> places, std::uint32_t* numbers) {
    for (std::size_t i = 0; i < places.size();) {
      i += number_known(places.subspan(i), numbers + i);
      if (i < places.size()) add(places[i]);
    }
  }
  const std::vector<Real>& places() const { return places_; }

 private:
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();
  static constexpr int kFewestBits = 7;
  struct Slot {
    Real place = 0;
    std::uint32_t number = kFree;
  };

  // Products of evenly spaced numbers with this one lie apart in their highest bits.
  static std::size_t hash(Real place, int shift) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(place * 0x1p30F)) * 0x9e3779b1u >>
           shift;
  }
  // Up to the first that has none; how many.
  std::size_t number_known(std::span<const Real> places, std::uint32_t* numbers) const {
    const Slot* const slots = slots_.data();
    const std::size_t last = slots_.size() - 1;
    const int shift = shift_;
    std::size_t i = 0;
    for (; i < places.size(); ++i) {
      const Real place = places[i];
      std::size_t at = hash(place, shift);
      while (slots[at].place != place && slots[at].number != kFree) at = (at + 1) & last;
      if (slots[at].number == kFree) break;
      numbers[i] = slots[at].number;
    }
    return i;
  }
  void add(Real place) {
    places_.push_back(place);
    put(place, static_cast<std::uint32_t>(places_.size() - 1));
    if (2 * places_.size() > slots_.size()) grow();
  }
  void put(Real place, std::uint32_t number) {
    std::size_t at = hash(place, shift_);
    while (slots_[at].number != kFree) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {place, number};
  }
  void grow() {
    shift_ -= 2;
    slots_ = std::vector<Slot>(4 * slots_.size());
    for (std::uint32_t i = 0; i < places_.size(); ++i) put(places_[i], i);
  }

  std::vector<Real> places_;
  std::vector<Slot> slots_;  // by hash, at least half of them free
  int shift_ = 32 - kFewestBits;
};

// Of so many places, numbered in the order in which they come. Mostly all are found near both ends.
std::vector<Ends> ends_of(std::span<const std::uint32_t> numbers, std::size_t places) {
  std::vector<Ends> found(places, Ends{kNowhere, kNowhere});
  std::size_t left = places;
  for (std::size_t i = 0; left > 0; ++i) {
    Ends& ends = found[numbers[i]];
    if (ends.first != kNowhere) continue;
    ends.first = i;
    --left;
  }
  left = places;
  for (std::size_t i = numbers.size(); left > 0;) {
    Ends& ends = found[numbers[--i]];
    if (ends.last != kNowhere) continue;
    ends.last = i;
    --left;
  }
  return found;
}

}  // namespace

template <class Real>
CellKinds<Real> cell_kinds(std::span<const Real> places, std::span<std::uint32_t> kinds) {
  TUNE_CHECK(places.size() == kinds.size());
  const double narrowest = narrowest_width(places.size() - 1);
  PlaceTable<Real> table;
  table.number(places.subspan(1), kinds.data() + 1);
  CellKinds<Real> found = {table.places(), {}, {}};
  const std::size_t occupied = found.places.size();
  found.widths.assign(occupied, static_cast<Real>(narrowest));

  std::vector<std::size_t> kernels;
  for (const Ends& each : ends_of(kinds.subspan(1), occupied)) {
    kernels.push_back(each.first + 1);
    if (each.last != each.first) kernels.push_back(each.last + 1);
  }
  std::sort(kernels.begin(), kernels.end());
  std::vector<Real> of_ends;
  for (const std::size_t kernel : kernels) of_ends.push_back(places[kernel]);
  std::vector<Real> widths(kernels.size());
  write_widths(std::span<const Real>(of_ends), std::span<Real>(widths), narrowest);

  const auto add = [&](std::size_t kernel, Real width) {
    found.places.push_back(places[kernel]);
    found.widths.push_back(width);
    return static_cast<std::uint32_t>(found.places.size() - 1);
  };
  std::vector<std::uint32_t> newest(occupied);  // of each place; the narrowest come first
  std::iota(newest.begin(), newest.end(), 0u);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    std::uint32_t& kind = kinds[kernels[i]];
    if (widths[i] == static_cast<Real>(narrowest)) continue;
    std::uint32_t& of_place = newest[kind];
    if (found.widths[of_place] != widths[i]) of_place = add(kernels[i], widths[i]);
    kind = of_place;
  }
  kinds[0] = add(0, static_cast<Real>(kPriorWidth));
  for (std::size_t i = 0; i < found.places.size(); ++i) {
    found.log_masses.push_back(log_mass_within(found.places[i], found.widths[i]));
  }
  return found;
}
template CellKinds<float> cell_kinds(std::span<const float>, std::span<std::uint32_t>);
template CellKinds<double> cell_kinds(std::span<const double>, std::span<std::uint32_t>);

}  // namespace tune::search::tpe
