// From a spec to its pure controller: shared by the driver, `tune status` and the tests.
#pragma once

#include <cstdint>
#include <string>

#include "tune/control/controller.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// `experiment_directory` is absolute, as agents see it.
ControllerSetup controller_setup(const ExperimentSpec& spec, std::string experiment_directory);
// The event that opens a driver's epoch with what the spec says now.
DriverStarted driver_started(const ExperimentSpec& spec, std::uint64_t epoch, bool retry_errored);

}  // namespace tune
