// empty_steps: reports as fast as it can, for benchmarks. `steps` (1000) results, each {"x": step},
// with `text_bytes` (0) beside a text of so many bytes.
#include <string>

#include "trainables/registry.h"

namespace tune::synthetic {
namespace {

void empty_steps(const Config& config, Session& session) {
  const auto steps = config.get_or("steps", std::uint64_t{1000});
  const std::string text(config.get_or("text_bytes", std::size_t{0}), 't');
  for (auto step = session.context().iteration(); step < steps; ++step) {
    Result result = {{"x", step}};
    if (!text.empty()) result.set("text", text);
    if (!session.report(result)) return;
  }
}

}  // namespace

TUNE_FUNCTION(empty_steps)

}  // namespace tune::synthetic
