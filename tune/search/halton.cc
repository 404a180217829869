#include "tune/search/halton.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tune::search {

namespace {

constexpr double kFinest = 0x1p-53;
constexpr int kMostOthers = 100;  // sequences that are looked into for a point that holds

std::vector<std::uint64_t> first_primes(std::size_t count) {
  std::vector<std::uint64_t> primes;
  for (std::uint64_t number = 2; primes.size() < count; ++number) {
    bool is_prime = true;
    for (const std::uint64_t prime : primes) {
      if (prime * prime > number) break;
      is_prime = is_prime && number % prime != 0;
    }
    if (is_prime) primes.push_back(number);
  }
  return primes;
}

// A digit becomes its place in a permutation of 0 ... base - 1.
std::uint64_t permuted(std::uint64_t digit, std::uint64_t base, RandomStream random) {
  std::vector<std::uint64_t> permutation(base);
  for (std::uint64_t i = 0; i < base; ++i) {
    const auto j = static_cast<std::uint64_t>(random.integer(0, static_cast<std::int64_t>(i) + 1));
    permutation[i] = permutation[j];
    permutation[j] = i;
  }
  return permutation[digit];
}

// The digits of the index after the point, the lowest first; and so many zeros, which are permuted
// as well, that no finer number would be another double.
double coordinate(std::uint64_t index, std::uint64_t base, std::uint64_t seed,
                  std::size_t dimension) {
  double sum = 0;
  double weight = 1;
  for (std::uint64_t digit = 0; weight > kFinest; ++digit, index /= base) {
    weight /= static_cast<double>(base);
    RandomStream random(seed, "halton " + std::to_string(dimension), digit);
    sum += weight * static_cast<double>(permuted(index % base, base, random));
  }
  return sum < 1 ? sum : 1 - kFinest;
}

UnitPoint any_point(const Encoding& encoding, std::uint64_t seed, std::uint64_t index) {
  const std::vector<std::uint64_t> primes = first_primes(encoding.size());
  UnitPoint point;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    point.push_back(coordinate(index, primes[i], seed, i));
  }
  RandomStream nothing(seed, "halton", 0);  // all coordinates are there
  return encoding.settled(std::move(point), nothing);
}

}  // namespace

UnitPoint halton_point(const Encoding& encoding, std::uint64_t seed, std::uint64_t index) {
  UnitPoint point = any_point(encoding, seed, index);
  RandomStream others(seed, "halton that holds", index);
  for (int i = 0; i < kMostOthers && !encoding.holds(point); ++i) {
    point = any_point(encoding, others.next(), index);
  }
  if (encoding.holds(point)) return point;
  point = encoding.draw(others);
  if (const WhereRule* broken = encoding.broken_by(point)) throw_none_holds(*broken);
  return point;
}

ProposerAnswer HaltonProposer::propose(const ProposerQuestion& question, const Encoding& encoding,
                                       RandomStream& /*random*/) const {
  ProposerAnswer answer;
  for (std::size_t i = 0; i < question.count; ++i) {
    Proposal proposal;
    proposal.point = halton_point(encoding, question.seed, question.proposed + i);
    proposal.origin = ProposalOrigin::kRandom;
    answer.proposals.push_back(std::move(proposal));
  }
  return answer;
}

}  // namespace tune::search
