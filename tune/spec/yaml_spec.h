// A YAML sweep as a validated ExperimentSpec.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/resources.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/overrides.h"

namespace tune {

// The stand-in for the trainable of a sweep that is only played.
struct PlayedTask {
  SearchSpace space;                  // of a sweep without config
  std::string metric;                 // of one without metric
  std::map<std::string, Mode> modes;  // of metrics that the sweep names without a mode
  double budget_s = 0;                // of one without time_budget_s, or with more; 0: none
};

struct SweepOptions {
  std::vector<Override> overrides = {};
  std::vector<Complaint> complaints = {};  // found before (in the overrides); told with the rest
  // Load the plugin, in a process of its own, and check that it has the trainable.
  bool load_plugin = false;
  // Not null: the sweep is to be run here. This is filled with what the node has, and a trial that
  // can never run on it is a mistake. The plugin is loaded only when there is a mistake already, so
  // that all are told: what else may be wrong with it the run's own loading of it tells.
  NodeResources* node = nullptr;
  // The sweep is to be played on this: it needs neither plugin nor trainable, and its trials end by
  // themselves.
  std::optional<PlayedTask> played = {};
};

// Reads, changes and checks a sweep. Throws one Error (kBadInput) with everything that is wrong,
// each with file, line, key path and the nearest known key.
ExperimentSpec spec_from_yaml_file(const std::filesystem::path& file, SweepOptions options = {});
inline ExperimentSpec spec_from_yaml_file(const std::filesystem::path& file,
                                          std::vector<Override> overrides) {
  return spec_from_yaml_file(file, SweepOptions{.overrides = std::move(overrides)});
}

}  // namespace tune
