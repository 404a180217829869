// Masses of normal kernels in cells of one width, each computed once. Pure.
//
// Such a mass depends on how far the cell lies from the kernel's place, not on where both are: of
// n cells there are at most 2 n for each width of kernels, which all columns of n cells share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tune::search::tpe {

template <class Real>
class EvenMasses {
 public:
  // The logarithm of the mass in one of so many cells of [0, 1], whose middle is so many halves of
  // a cell away from the kernel's place.
  Real log_mass(std::uint32_t cells, std::uint32_t halves, Real width);

 private:
  static constexpr std::size_t kRoom = 1024;  // of two that want one place the later stays
  struct Known {
    std::uint32_t cells = 0;
    std::uint32_t halves = 0;
    Real width = 0;
    Real log_mass = 0;
  };
  std::vector<Known> known_ = std::vector<Known>(kRoom);
};
extern template class EvenMasses<float>;
extern template class EvenMasses<double>;

}  // namespace tune::search::tpe
