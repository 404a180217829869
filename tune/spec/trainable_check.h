// The reasons why an experiment cannot run its trainable, in the words that `tune validate`, `tune
// run`, a program's tune::run and the controller all use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/contract_values.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

struct WantedTrainable {
  std::string name;
  std::string plugin = {};  // empty: a program's own trainable
  std::int64_t checkpoint_frequency = 0;
  bool scheduler_pauses = false;
  bool scheduler_replaces = false;  // lets trials go on from others' checkpoints
};
WantedTrainable wanted_trainable(const RunOptions& options, std::string name,
                                 std::string plugin = {});

// The mistakes in the trainables that a zygote has loaded, each with the key to mend: plugin,
// trainable, checkpoint/frequency or scheduler. Empty: it can run.
std::vector<Complaint> complaints_about(const ZygoteReady& loaded, const WantedTrainable& wanted);

}  // namespace tune
