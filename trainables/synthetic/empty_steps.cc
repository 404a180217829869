// empty_steps: reports as fast as it can, for benchmarks. `steps` (1000) results, each {"x": step}.
#include "trainables/registry.h"

namespace tune::synthetic {
namespace {

void empty_steps(const Config& config, Session& session) {
  const auto steps = config.get_or("steps", std::uint64_t{1000});
  for (auto step = session.context().iteration(); step < steps; ++step) {
    if (!session.report({{"x", step}})) return;
  }
}

}  // namespace

TUNE_FUNCTION(empty_steps)

}  // namespace tune::synthetic
