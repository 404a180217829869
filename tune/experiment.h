// From a spec to its pure controller: shared by the driver, `tune status` and the simulator.
#pragma once

#include <string>

#include "tune/controller.h"
#include "tune/experiment_spec.h"
#include "tune/reporter.h"

namespace tune {

Objective objective_of(const ExperimentSpec& spec);
// Opens the names of its trials: a hash of name and seed, so not its own alone.
std::string experiment_id_of(const ExperimentSpec& spec);
// Of its keys in the store.
std::string store_prefix_of(const ExperimentSpec& spec);
// `experiment_directory` is absolute, as agents see it.
ControllerSetup controller_setup(const ExperimentSpec& spec, std::string experiment_directory);
// What the controller knows of it, to be completed by who shows it.
ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller);
// The event that opens a driver's epoch with what the spec says now.
DriverStarted driver_started(const ExperimentSpec& spec, std::uint64_t epoch, bool retry_errored);

}  // namespace tune
