// busy_steps: `steps` (1000) steps of `rounds` (200,000: about a millisecond) of arithmetic, each
// reported with the time that steps take. For benchmarks; a restored trial begins anew.
#include "trainables/synthetic/busy_steps.h"

#include "trainables/registry.h"

namespace tune::synthetic {
namespace {

void busy_steps(const Config& config, Session& session) {
  const auto steps = config.get_or("steps", std::uint64_t{1000});
  const auto rounds = config.get_or("rounds", std::uint64_t{200'000});
  do_busy_steps(steps, rounds, [&](double value, const BusyTimes& times) {
    return session.report({{"x", value}, {"mean_ms", times.mean}, {"median_ms", times.median}});
  });
}

}  // namespace

TUNE_FUNCTION(busy_steps)

}  // namespace tune::synthetic
