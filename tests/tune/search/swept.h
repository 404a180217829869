// A sweep of one proposer over a function, one trial after another.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tune/search/proposer.h"

namespace tune::search {

class Swept {
 public:
  using Value = std::function<double(const Config&)>;
  Swept(Encoding encoding, Value value, std::uint64_t seed)
      : encoding_(std::move(encoding)), value_(std::move(value)), seed_(seed) {}

  std::vector<Proposal> ask(const Proposer& proposer, std::size_t count) {
    RandomStream random(seed_, "swept", proposed_);
    ProposerAnswer answer =
        proposer.propose({known_, state_, proposed_, count, seed_}, encoding_, random);
    state_ = answer.state;
    proposed_ += count;
    return std::move(answer.proposals);
  }
  TrialNumber begin(const UnitPoint& point) {
    const TrialNumber trial{static_cast<std::uint32_t>(known_.trials().size())};
    known_.add(trial, point);
    return trial;
  }
  // A trial of a point to its end.
  void tried(const UnitPoint& point, TrialEnd end = TrialEnd::kCompleted) {
    const TrialNumber trial = begin(point);
    finish(trial, end);
  }
  void finish(TrialNumber trial, TrialEnd end = TrialEnd::kCompleted) {
    const double value = value_(encoding_.decode(known_.find(trial)->point));
    best_ = std::fmax(best_, value);
    known_.result(trial, 1, value);
    known_.end(trial, end);
  }
  // A trial from its proposal to its end.
  Proposal live(const Proposer& proposer, TrialEnd end = TrialEnd::kCompleted) {
    Proposal proposal = ask(proposer, 1).front();
    tried(proposal.point, end);
    return proposal;
  }
  void live(const Proposer& proposer, int trials) {
    for (int i = 0; i < trials; ++i) live(proposer);
  }
  Proposal fail(const Proposer& proposer) {
    Proposal proposal = ask(proposer, 1).front();
    known_.end(begin(proposal.point), TrialEnd::kError);
    return proposal;
  }
  double best_of(const Proposer& proposer, int trials) {
    live(proposer, trials);
    return best_;
  }

  double best() const { return best_; }
  History& known() { return known_; }
  const Encoding& encoding() const { return encoding_; }
  std::string& state() { return state_; }

 private:
  Encoding encoding_;
  Value value_;
  std::uint64_t seed_;
  History known_;
  std::string state_;
  std::uint64_t proposed_ = 0;
  double best_ = -std::numeric_limits<double>::infinity();
};

inline Encoding cube(int dimensions) {
  SearchSpace space;
  for (int i = 0; i < dimensions; ++i) space.set("x" + std::to_string(i), uniform(0, 1));
  return Encoding(space);
}

// Largest, 0, where every coordinate is 0.3.
inline double bowl(const Config& config) {
  double sum = 0;
  for (const auto& [path, value] : config.leaves()) sum -= std::pow(value->number() - 0.3, 2);
  return sum;
}

}  // namespace tune::search
