#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tune {

namespace {

// Constants of Philox4x32 (Salmon et al., SC 2011).
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t b = std::uint64_t{kMultiplier1} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint64_t hash64(std::string_view text, std::uint64_t start) {
  std::uint64_t hash = start;  // FNV-1a, then mixed as in splitmix64
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3ULL;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
  return hash ^ hash >> 31;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t number) {
  key_ = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  const std::uint64_t name = hash64(purpose);
  // Words 2 and 3 say which stream, words 0 and 1 count blocks of it. The number is mixed with the
  // whole hash, so streams of one purpose differ in it alone.
  const std::uint64_t stream = name + number * 0x9e3779b97f4a7c15ULL;
  counter_ = {0, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(stream),
              static_cast<std::uint32_t>(stream >> 32)};
}

void RandomStream::refill() {
  block_ = philox4x32(counter_, key_);
  ++counter_[0];
  used_ = 0;
}

std::uint64_t RandomStream::next() {
  if (used_ == 4) refill();
  const std::uint64_t low = block_[static_cast<std::size_t>(used_)];
  const std::uint64_t high = block_[static_cast<std::size_t>(used_ + 1)];
  used_ += 2;
  return high << 32 | low;
}

double RandomStream::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::int64_t RandomStream::integer(std::int64_t low, std::int64_t high) {
  TUNE_CHECK(low < high);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  // Lemire's method: the part of the 64 bits that would make some values likelier is drawn again.
  const std::uint64_t reject = (0 - range) % range;
  while (true) {
    const unsigned __int128 product = static_cast<unsigned __int128>(next()) * range;
    if (static_cast<std::uint64_t>(product) < reject) continue;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                     static_cast<std::uint64_t>(product >> 64));
  }
}

double RandomStream::normal() {
  // Box-Muller; 1 - u is never 0.
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace tune
