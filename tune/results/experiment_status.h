// The status of an experiment, for reporters.
#pragma once

#include <string>

#include "tune/results/reporter.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class Controller;
class Nodes;

// The part that the controller knows; the caller that shows it completes it. Refers to the spec.
ExperimentStatus experiment_status(const ExperimentSpec& spec, const Controller& controller,
                                   ExperimentTime now);
// "Machines that have joined: 2 (n1 leaves first, in 3 h 10 min)"; empty: none is there.
std::string who_has_joined(const Nodes& nodes, ExperimentTime now);
// Why trials wait for the sweep's pool, for people; empty: none does.
std::string why_trials_wait(const ExperimentSpec& spec, const Controller& controller,
                            ExperimentTime now);
// Adds what the driver's own node tells: its memory, and what it offers as long as no node has
// joined.
void add_own_node(const NodeResources& node, ExperimentStatus& status);

}  // namespace tune
