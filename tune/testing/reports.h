// Reports as a trial would send them, for tests of schedulers and searchers.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/contract_values.h"
#include "core/value.h"
#include "core/wire.h"

namespace tune::testing {

inline Reported report(std::uint32_t trial, std::uint64_t iteration, const Result& result) {
  Reported reported;
  reported.trial = TrialNumber{trial};
  reported.attempt = AttemptNumber{1};
  reported.iteration = iteration;
  reported.time_total = std::chrono::seconds(2 * iteration);
  reported.time_this_iter = std::chrono::seconds(2);
  reported.time_since_restore = std::chrono::seconds(iteration);
  reported.iterations_since_restore = iteration;
  reported.result = pack(result);
  return reported;
}

// {"m": value}, or no metric at all.
inline Reported report(std::uint32_t trial, std::uint64_t iteration, std::optional<double> value) {
  return report(trial, iteration, value ? Result{{"m", *value}} : Result{{"other", 1}});
}

inline Reported report(std::uint32_t trial, std::uint64_t iteration, double value) {
  return report(trial, iteration, std::optional(value));
}

}  // namespace tune::testing
