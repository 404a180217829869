// Checks and records the options of all schedulers. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

class OptionCheck {
 public:
  explicit OptionCheck(const char* scheduler) : scheduler_(scheduler) {}

  // Each throws Error (kBadInput) that names the parameter and its value.
  void require(bool holds, const char* name, double value, const char* wanted) const;
  void time_attr(const std::string& time_attr) const;

 private:
  const char* scheduler_;
};

// Records what the scheduler itself was given.
void add_objective(Config& parameters, const std::string& metric, std::optional<Mode> mode);

}  // namespace tune
