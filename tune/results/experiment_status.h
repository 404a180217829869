// The status of an experiment, as reporters are told it.
#pragma once

#include "tune/results/reporter.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class Controller;

// What the controller knows of it, to be completed by the caller that shows it. Refers to the spec.
ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller);

}  // namespace tune
