#include "core/agent/worker_rest.h"

namespace tune {
namespace {

// The share of a worker's socket that reports may fill. Of its 208 KiB Linux counts some hundred
// bytes for each message beside the message itself.
constexpr double kSocketBytes = 64 << 10;
constexpr double kMessageBytes = 1 << 10;

}  // namespace

bool may_rest(const Reported& report, const Milestone& until) {
  if (report.waiting || report.final || report.time_this_iter <= Duration::zero()) return false;
  const double steps = std::chrono::duration<double>(kWorkerRest) / report.time_this_iter;
  const double bytes = static_cast<double>(report.result.bytes.size()) + kMessageBytes;
  if (steps < 1 || steps * bytes > kSocketBytes) return false;
  if (until.attribute.empty()) return true;
  return until.attribute == "training_iteration" &&
         static_cast<double>(report.iteration) + steps + 1 < until.value;
}

}  // namespace tune
