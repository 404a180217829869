// The trainable of all simulated workers. Its reports follow from its configuration and the
// iteration, by a state that goes from step to step and through checkpoints: the first result
// exposes a worker that begins from a wrong state.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/contract_values.h"
#include "simulator/scenario.h"

namespace tune::simulator {

class LearningCurve {
 public:
  explicit LearningCurve(const Packed& config) : x_(find_number(config, "x").value_or(0)) {}

  std::uint64_t state() const { return state_; }
  void load(std::uint64_t state) { state_ = state; }
  void step() { state_ = mixed(state_ + std::bit_cast<std::uint64_t>(x_)); }

  // The state after this many steps from the beginning.
  std::uint64_t state_at(std::uint64_t iteration) const {
    LearningCurve fresh = *this;
    fresh.state_ = 0;
    for (std::uint64_t i = 0; i < iteration; ++i) fresh.step();
    return fresh.state_;
  }
  // The iteration of its last result if it is not stopped.
  std::uint64_t last_iteration(const Scenario& scenario) const {
    const std::uint64_t own =
        1 + mixed(std::bit_cast<std::uint64_t>(x_)) % (2 * scenario.iterations);
    return scenario.some_end_early ? std::min(own, scenario.iterations) : scenario.iterations;
  }
  // The report after that step; `state` is that of the step.
  Packed result(const Scenario& scenario, std::uint64_t iteration) const {
    const bool misses = scenario.some_miss_metric && state_ % 16 == 0;
    const bool done = scenario.some_end_early && iteration == last_iteration(scenario);
    PackWriter out;
    out.map(2 - (misses ? 1 : 0) + (done ? 1 : 0) + (scenario.several ? 1 : 0));
    if (!misses) {
      out.text(kMetric);
      out.number(x_ * static_cast<double>(iteration) / static_cast<double>(iteration + 3));
    }
    if (scenario.several) {  // what is good by the metric costs more
      out.text(kSecondMetric);
      out.number(x_ * x_);
    }
    out.text("state");
    out.unsigned_integer(state_);
    if (done) {
      out.text("done");
      out.boolean(true);
    }
    return {out.take()};
  }

 private:
  static std::uint64_t mixed(std::uint64_t value) {  // the end of SplitMix64
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return (value ^ (value >> 31)) >> 1;  // fits a signed integer
  }
  double x_;
  std::uint64_t state_ = 0;
};

}  // namespace tune::simulator
