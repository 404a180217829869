#include "tune/search/tpe/even_masses.h"

#include "tune/search/tpe/normal_mass.h"

namespace tune::search::tpe {

template <class Real>
Real EvenMasses<Real>::log_mass(std::uint32_t cells, std::uint32_t halves, Real width) {
  // Widths are mostly multiples of a cell's, or the narrowest.
  const auto of_width = static_cast<std::uint32_t>(width * Real{0x1p20});
  const std::uint32_t hash = (of_width * 0x9e3779b1u >> 8) + cells * 0x85ebca6bu + halves;
  Known& known = known_[hash % kRoom];
  if (known.cells != cells || known.halves != halves || known.width != width) {
    const double half = 0.5 / cells;
    const double middle = half * halves;
    known = {cells, halves, width,
             static_cast<Real>(
                 tpe::log_mass(middle - half, middle + half, 0, static_cast<double>(width)))};
  }
  return known.log_mass;
}
template class EvenMasses<float>;
template class EvenMasses<double>;

}  // namespace tune::search::tpe
