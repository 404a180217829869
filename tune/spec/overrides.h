// `--set PATH=VALUE` and its shorthands: values put into the tree of a sweep's options before it is
// checked, each remembering which command line option it came from.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/value.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/yaml_tree.h"

namespace tune {

struct Override {
  std::string option;  // as shown in errors: "--set config/lr=0.1", "--seed 7"
  std::string path;    // "config/lr"
  Value value;
};

// The rules for reading texts and keys of a sweep's options (see yaml_tree.h).
const YamlRules& option_rules();

// Appends the override for `PATH=VALUE` (VALUE is YAML), or a complaint about it.
void parse_set(const std::string& text, std::vector<Override>& overrides,
               std::vector<Complaint>& complaints);

// Appends the override for an option of its own: `--num-samples 7` is --set num_samples=7. The
// value of a text option is taken as it is.
void parse_shorthand(const std::string& option, const std::string& path, const std::string& value,
                     std::vector<Override>& overrides, std::vector<Complaint>& complaints);

// Puts the values into the tree, in order; its lines forget replaced values. A path below a choice
// means that key in each of its options that has it.
void apply_overrides(const std::vector<Override>& overrides, YamlTree& tree,
                     std::vector<Complaint>& complaints);

// Gives every complaint without a place the line or the option that its path came from.
void place_complaints(const std::vector<Override>& overrides,
                      const std::map<std::string, int>& lines, std::vector<Complaint>& complaints);

}  // namespace tune
