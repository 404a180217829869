// The consequences of a spec's name and seed: the objective with its seed, the id that opens the
// names of its trials, the prefix of its keys in the store.
#pragma once

#include <string>

#include "tune/spec/experiment_spec.h"

namespace tune {

Objective objective_of(const ExperimentSpec& spec);
// The prefix of its trials' names: a hash of name and seed, so not unique to it.
std::string experiment_id_of(const ExperimentSpec& spec);
// The prefix of its keys in the store.
std::string store_prefix_of(const ExperimentSpec& spec);
// The begin of the names of all allocations of its pool: "tune-2f1e0-".
std::string allocation_prefix_of(const ExperimentSpec& spec);
// A name that no other experiment has, for those that connect: a hash.
std::string experiment_mark_of(const ExperimentSpec& spec);
// Where its checkpoints are, and no other experiment's: "s3://bucket/prefix/name-0123456789abcdef".
// Empty: in its folder.
std::string object_address(const std::string& checkpoint_storage, const std::string& store_prefix);

}  // namespace tune
