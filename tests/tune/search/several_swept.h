// A sweep of one proposer for two objectives, with a constraint if asked for.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "schedulers/fronts.h"
#include "tune/search/proposer.h"

namespace tune::search {

// Numbers as a searcher keeps them: objectives, larger being better, then margins.
using NumbersOf = std::function<MeritNumbers(const Config&)>;

inline const Objective kTwoObjectives = {"", Mode::kMax, 0, {{"a"}, {"b"}}};

class SeveralSwept {
 public:
  SeveralSwept(Encoding encoding, NumbersOf numbers, std::uint64_t seed,
               const Objective& objective = kTwoObjectives)
      : encoding_(std::move(encoding)),
        numbers_(std::move(numbers)),
        seed_(seed),
        known_(objective) {}

  std::vector<Proposal> ask(const Proposer& proposer, std::size_t count) {
    RandomStream random(seed_, "several_swept", proposed_);
    ProposerAnswer answer = proposer.propose({known_, state_, proposed_, count}, encoding_, random);
    state_ = answer.state;
    proposed_ += count;
    return std::move(answer.proposals);
  }
  MeritNumbers tried(const UnitPoint& point, TrialEnd end = TrialEnd::kCompleted) {
    const TrialNumber trial{static_cast<std::uint32_t>(known_.trials().size())};
    known_.add(trial, point);
    const MeritNumbers numbers = numbers_(encoding_.decode(point));
    known_.result(trial, 1, numbers);
    known_.end(trial, end);
    return numbers;
  }
  void live(const Proposer& proposer, int trials) {
    for (int i = 0; i < trials; ++i) tried(ask(proposer, 1).front().point);
  }
  // The area that the trials which keep all constraints dominate above (low, low).
  double hypervolume(double low) const {
    std::vector<std::pair<double, double>> front;
    for (const KnownTrial& trial : known_.trials()) {
      if (!trial.newest) continue;
      const Merit merit = known_.merit(*trial.newest);
      if (merit.violation == 0) front.emplace_back(merit.values[0], merit.values[1]);
    }
    std::sort(front.rbegin(), front.rend());
    double area = 0;
    double height = low;
    for (const auto& [a, b] : front) {
      if (a <= low || b <= height) continue;
      area += (a - low) * (b - height);
      height = b;
    }
    return area;
  }
  int kept() const {
    int count = 0;
    for (const KnownTrial& trial : known_.trials()) {
      if (trial.newest && known_.merit(*trial.newest).violation == 0) ++count;
    }
    return count;
  }
  History& known() { return known_; }
  const Encoding& encoding() const { return encoding_; }
  std::string& state() { return state_; }

 private:
  Encoding encoding_;
  NumbersOf numbers_;
  std::uint64_t seed_;
  History known_;
  std::string state_;
  std::uint64_t proposed_ = 0;
};

// Two bowls: the best of `a` at .2 in every coordinate, of `b` at .8; the best compromises lie on
// the line between.
inline MeritNumbers two_bowls(const Config& config) {
  MeritNumbers numbers = {0, 0};
  for (const auto& [path, value] : config.leaves()) {
    numbers[0] -= (value->number() - 0.2) * (value->number() - 0.2);
    numbers[1] -= (value->number() - 0.8) * (value->number() - 0.8);
  }
  return numbers;
}

}  // namespace tune::search
