// Copies into the rings between ranks go one of two ways: through the caches, as any copy does, or
// past them. Where the processors of two ranks share a cache, the first takes two thirds of the
// time. Where they do not, each line has to be taken back from the cache of the one that has read
// it last, and the second takes half of the time. A virtual machine cannot know, and its processors
// move from one case to the other within seconds: so both ways are tried.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tune::shared_memory {

inline constexpr std::size_t kLine = 64;  // of a cache

enum class Copying : std::uint8_t { kThroughCaches, kPastCaches };

// To whole lines. What is stored afterwards is seen by others after the bytes, either way.
inline void copy(char* to, const char* from, std::size_t bytes, Copying way) {
  std::size_t done = 0;
#if defined(__SSE2__)
  if (way == Copying::kPastCaches) {
    for (; done + kLine <= bytes; done += kLine) {
      const auto* in = reinterpret_cast<const __m128i*>(from + done);
      auto* out = reinterpret_cast<__m128i*>(to + done);
      const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
      const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
      _mm_stream_si128(out, a);
      _mm_stream_si128(out + 1, b);
      _mm_stream_si128(out + 2, c);
      _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();  // a release alone does not order such stores
  }
#else
  static_cast<void>(way);
#endif
  std::memcpy(to + done, from + done, bytes - done);
}

// The way that is taken now. Stretches of operations are timed, and one in kTries goes the
// other way. All ranks have the same stretches, so that they try at the same time; should they
// choose differently, the results are the same.
class CopyingChoice {
 public:
  Copying way() const { return way_; }

  void begin_stretch() {
    const bool tries = ++stretches_ % kTries == 0 || cost(other(best_)) == 0;
    way_ = tries && cost(best_) != 0 ? other(best_) : best_;
    since_ = Clock::now();
  }
  void all_are_here() { since_ = Clock::now(); }  // what was waited for does not count
  void end_stretch(std::size_t bytes) {
    const std::chrono::duration<double> took = Clock::now() - since_;
    const double now = took.count() / static_cast<double>(bytes);
    double& known = cost(way_);
    // One that something disturbed counts as twice the usual at most.
    known = known == 0 ? now : (known + std::min(now, 2 * known)) / 2;
    const double rival = cost(other(best_));
    if (rival != 0 && rival < kClearly * cost(best_)) best_ = other(best_);
    way_ = best_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kTries = 32;
  static constexpr double kClearly = 0.85;
  static Copying other(Copying way) {
    return way == Copying::kPastCaches ? Copying::kThroughCaches : Copying::kPastCaches;
  }
  double& cost(Copying way) { return costs_[static_cast<std::size_t>(way)]; }

  Copying best_ = Copying::kThroughCaches, way_ = best_;
  std::array<double, 2> costs_ = {};  // seconds a byte; 0: not known yet
  std::uint64_t stretches_ = 0;
  Clock::time_point since_{};
};

}  // namespace tune::shared_memory
