#include "tune/search/tpe/widths.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "core/error.h"

namespace tune::search::tpe {

namespace {

constexpr std::size_t kMostNarrowing = 100;  // kernels and one more
constexpr std::size_t kNewest = 25;
constexpr std::size_t kBuckets = 128;
constexpr std::size_t kLookedAtOnce = 512;
static_assert(1.0 / kBuckets < kNarrowestWidth);

template <class Real>
Real clipped(Real gap, Real narrowest) {
  return std::clamp(gap, narrowest, Real{1});
}

template <class Real>
void write_by_sort(std::span<const Real> places, std::span<Real> widths, Real narrowest) {
  const std::size_t count = places.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  for (std::size_t i = 0; i < count; ++i) {
    const Real place = places[order[i]];
    const Real bound_below = count == 1 ? place : Real{0};
    const Real bound_above = count == 1 ? 1 - place : Real{0};
    const Real below = i == 0 ? bound_below : place - places[order[i - 1]];
    const Real above = i + 1 == count ? bound_above : places[order[i + 1]] - place;
    widths[order[i]] = clipped(std::max(below, above), narrowest);
  }
}

// The content of one 128th of [0, 1].
template <class Real>
struct Bucket {
  Real lowest = 2;
  Real highest = -1;
  std::uint32_t first_lowest = 0;  // of kernels at one place the first
  std::uint32_t last_highest = 0;  // and the last
  bool is_empty() const { return highest < 0; }
};

template <class Real>
void write_by_buckets(std::span<const Real> places, std::span<Real> widths, Real narrowest) {
  std::fill(widths.begin(), widths.end(), narrowest);
  std::array<Bucket<Real>, kBuckets> buckets;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Real place = places[i];
    const auto at = static_cast<std::size_t>(static_cast<int>(place * Real{kBuckets}));
    Bucket<Real>& bucket = buckets[std::min(at, kBuckets - 1)];
    if (place < bucket.lowest) {
      bucket.lowest = place;
      bucket.first_lowest = static_cast<std::uint32_t>(i);
    }
    if (place >= bucket.highest) {
      bucket.highest = place;
      bucket.last_highest = static_cast<std::uint32_t>(i);
    }
  }
  const Bucket<Real>* before = nullptr;
  for (const Bucket<Real>& bucket : buckets) {
    if (bucket.is_empty()) continue;
    if (before != nullptr) {
      const Real gap = clipped(bucket.lowest - before->highest, narrowest);
      widths[before->last_highest] = std::max(widths[before->last_highest], gap);
      widths[bucket.first_lowest] = std::max(widths[bucket.first_lowest], gap);
    }
    before = &bucket;
  }
}

}  // namespace

double narrowest_width(std::size_t kernels) {
  return 1 / static_cast<double>(std::min(kMostNarrowing, kernels + 2));
}

// None of the 256ths between the first and the last is empty; often that is known of all of them
// before all places have been looked at.
template <class Real>
bool are_dense(std::span<const Real> places) {
  if (places.size() + 2 < kMostNarrowing) return false;
  std::array<char, 2 * kBuckets + 1> occupied{};
  for (std::size_t i = 0; i < places.size(); i += kLookedAtOnce) {
    for (const Real place : places.subspan(i, std::min(kLookedAtOnce, places.size() - i))) {
      occupied[static_cast<std::size_t>(static_cast<int>(place * Real{2 * kBuckets}))] = 1;
    }
    if (std::memchr(occupied.data(), 0, 2 * kBuckets) == nullptr) return true;
  }
  const auto first = std::find(occupied.begin(), occupied.end(), 1);
  const auto last = std::find(occupied.rbegin(), occupied.rend(), 1).base();
  return std::find(first, last, 0) == last;
}
template bool are_dense(std::span<const float>);
template bool are_dense(std::span<const double>);

template <class Real>
void write_widths(std::span<const Real> places, std::span<Real> widths) {
  write_widths(places, widths, narrowest_width(places.size()));
}
template void write_widths(std::span<const float>, std::span<float>);
template void write_widths(std::span<const double>, std::span<double>);

template <class Real>
void write_widths(std::span<const Real> places, std::span<Real> widths, double narrowest) {
  TUNE_CHECK(places.size() == widths.size());
  if (places.size() + 2 < kMostNarrowing) {
    write_by_sort(places, widths, static_cast<Real>(narrowest));
  } else {
    write_by_buckets(places, widths, static_cast<Real>(narrowest));
  }
}
template void write_widths(std::span<const float>, std::span<float>, double);
template void write_widths(std::span<const double>, std::span<double>, double);

std::vector<double> kernel_weights(std::size_t trials) {
  std::vector<double> weights(trials + 1, 1.0);
  const auto count = static_cast<double>(trials);
  const std::size_t older = trials - std::min(trials, kNewest);
  for (std::size_t i = 0; i < older; ++i) {
    const double way = older == 1 ? 0 : static_cast<double>(i) / static_cast<double>(older - 1);
    weights[i] = 1 / count + way * (1 - 1 / count);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace tune::search::tpe
