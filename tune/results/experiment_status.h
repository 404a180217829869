// The status of an experiment, for reporters.
#pragma once

#include "tune/results/reporter.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class Controller;

// The part that the controller knows; the caller that shows it completes it. Refers to the spec.
ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller,
                                   ExperimentTime now);
// Adds what the driver's own node tells: its memory, and what it offers as long as no node has
// joined.
void add_own_node(const NodeResources& node, ExperimentStatus& status);

}  // namespace tune
