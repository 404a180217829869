// The result of fitting a Gaussian process, and when the next fit is due. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tune::search::gp {

struct Scales {
  std::vector<double> log_lengths;  // of the features
  double log_noise = 0;             // of the variance
  friend bool operator==(const Scales&, const Scales&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.log_lengths, s.log_noise);
  }
};

// A fit, and of how many values. Carried from one fit to the next, saved and restored.
struct Fit {
  Scales scales;              // without lengths: there was no fit yet
  std::uint64_t results = 0;  // known when it was made
  bool in_haste = false;      // the last proposals with it were
  friend bool operator==(const Fit&, const Fit&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.scales.log_lengths, s.scales.log_noise, s.results);
    f.added(s.in_haste);
  }
};

inline constexpr double kExpectedLogNoise = -4.605170185988091;  // log 0.01, of the prior
// Up to so many results the acquisition is averaged over draws of scales (scale_draws.h).
inline constexpr std::size_t kFewResults = 40;
// Where the first fit begins.
Fit first_fit(std::size_t dimensions);
// A fit is made again when there are a tenth more results, and two.
bool is_due(const Fit& fit, std::uint64_t results);
// On the diagonal of the covariance of observations.
double noise_variance(double log_noise);

}  // namespace tune::search::gp
