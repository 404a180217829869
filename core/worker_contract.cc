#include "core/worker_contract.h"

#include <fmt/format.h>

namespace tune {

ZygoteReady understood(ZygoteReady ready) {
  if (ready.contract != kWorkerContract && ready.error.empty()) {
    ready.error = fmt::format(
        "the trainable's process speaks version {} of the worker contract, this tune version {}; "
        "build it again against this version",
        ready.contract, kWorkerContract);
  }
  return ready;
}

}  // namespace tune
