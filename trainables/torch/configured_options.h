// The values with which a program made an optimizer, beside those that training has left in it. A
// checkpoint holds both, so that loading it can tell a resume, where the configuration is the old
// one and the checkpoint's values go on, from a training that was given another configuration (a
// scheduler's `replace`, another `lr` of a trainer), where the new values are to count.
//
// The simpler way, to compare the options of the groups themselves, fails: a schedule has changed
// them by the time of a save, so that a decayed rate would pass for another configuration. An
// optimizer's defaults() stay as its constructor was given them, and so do those of a group with a
// name (parameter_groups.h); where they differ, field by field, the groups' own values of the
// program that loads are taken.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <map>
#include <string>
#include <vector>

namespace tune {

// By name, such as lr, momentum, betas. Empty for a custom class that cannot be written.
using OptionFields = std::map<std::string, c10::IValue>;
OptionFields fields_of(const torch::optim::OptimizerOptions& options);

// Beside what Optimizer::save wrote.
void save_configured_options(torch::serialize::OutputArchive& archive,
                             const torch::optim::Optimizer& optimizer);

// As Optimizer::load, but for fields that were configured with another value since the checkpoint
// was saved: these stay as the groups have them. An archive without configured options is taken as
// one of the same configuration.
void load_but_configured_options(torch::serialize::InputArchive& archive,
                                 torch::optim::Optimizer& optimizer);

}  // namespace tune
