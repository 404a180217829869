#include "tune/search/tpe/cell_kinds.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/error.h"
#include "tune/search/tpe/widths.h"

namespace tune::search::tpe {

namespace {

// The kernels at one place.
struct Ends {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Numbers places in the order in which they come. Its room grows with their number, not with that
// of kernels.
template <class Real>
class PlaceTable {
 public:
  PlaceTable() : slots_(1u << kFewestBits) {}

  std::uint32_t number_of(Real place, std::size_t kernel) {
    Slot& slot = slot_for(place);
    if (slot.number != kFree) {
      ends_[slot.number].last = kernel;
      return slot.number;
    }
    const auto number = static_cast<std::uint32_t>(places_.size());
    slot = {place, number};
    places_.push_back(place);
    ends_.push_back({kernel, kernel});
    if (2 * places_.size() > slots_.size()) grow();
    return number;
  }
  const std::vector<Ends>& ends() const { return ends_; }
  const std::vector<Real>& places() const { return places_; }

 private:
  static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();
  static constexpr int kFewestBits = 7;
  struct Slot {
    Real place = 0;
    std::uint32_t number = kFree;
  };

  // That which has the place, or is free for it.
  Slot& slot_for(Real place) {
    // Products of evenly spaced numbers with this one lie apart in their highest bits.
    const auto number = static_cast<std::uint32_t>(static_cast<std::int64_t>(place * 0x1p31F));
    std::size_t at = number * 0x9e3779b1u >> shift_;
    while (slots_[at].number != kFree && slots_[at].place != place) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }
  void grow() {
    shift_ -= 2;
    slots_ = std::vector<Slot>(4 * slots_.size());
    for (std::uint32_t i = 0; i < places_.size(); ++i) slot_for(places_[i]) = {places_[i], i};
  }

  std::vector<Real> places_;
  std::vector<Ends> ends_;
  std::vector<Slot> slots_;  // by hash, at least half of them free
  int shift_ = 32 - kFewestBits;
};

}  // namespace

template <class Real>
CellKinds<Real> cell_kinds(std::span<const Real> places, std::span<std::uint32_t> kinds) {
  TUNE_CHECK(places.size() == kinds.size());
  const std::size_t trials = places.size() - 1;
  const double narrowest = narrowest_width(trials);
  PlaceTable<Real> table;
  for (std::size_t i = 1; i <= trials; ++i) kinds[i] = table.number_of(places[i], i);
  CellKinds<Real> found = {table.places(), {}};
  found.widths.assign(found.places.size(), static_cast<Real>(narrowest));
  const auto add = [&](std::size_t kernel, Real width) {
    kinds[kernel] = static_cast<std::uint32_t>(found.places.size());
    found.places.push_back(places[kernel]);
    found.widths.push_back(width);
  };

  std::vector<std::size_t> kernels;
  for (const Ends& each : table.ends()) {
    kernels.push_back(each.first);
    if (each.last != each.first) kernels.push_back(each.last);
  }
  std::sort(kernels.begin(), kernels.end());
  std::vector<Real> of_ends;
  for (const std::size_t kernel : kernels) of_ends.push_back(places[kernel]);
  std::vector<Real> widths(kernels.size());
  write_widths(std::span<const Real>(of_ends), std::span<Real>(widths), narrowest);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (widths[i] != static_cast<Real>(narrowest)) add(kernels[i], widths[i]);
  }
  add(0, static_cast<Real>(kPriorWidth));
  return found;
}
template CellKinds<float> cell_kinds(std::span<const float>, std::span<std::uint32_t>);
template CellKinds<double> cell_kinds(std::span<const double>, std::span<std::uint32_t>);

}  // namespace tune::search::tpe
