#include "core/contract_values.h"

namespace tune {

bool is_failure(Outcome outcome) {
  switch (outcome) {
    case Outcome::kException:
    case Outcome::kSignal:
    case Outcome::kExit:
    case Outcome::kHung:
      return true;
    default:
      return false;
  }
}

const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[] = {"completed", "stopped", "paused", "exception",
                                    "signal",    "exit",    "hung",   "lost"};
  return kNames[static_cast<int>(outcome)];
}

}  // namespace tune
