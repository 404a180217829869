// All schedulers by name: those of schedulers/, and those that need a search space.
#pragma once

#include <string>

#include "core/value.h"
#include "schedulers/scheduler_spec.h"

namespace tune {

// As scheduler_from_config, which it asks for all others; knows "pbt" as well.
SchedulerSpec any_scheduler_from_config(const std::string& name, const Config& parameters);

}  // namespace tune
