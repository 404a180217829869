// An experiment as JSON, for the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/value.h"
#include "tune/view/experiment.h"

namespace tune::view {

Value head_value(const ExperimentHead& head);
Value meta_of(const Experiment& experiment, const std::string& boot);
// Configuration (also as YAML and C++), events with their reasons, checkpoints, error, ranks.
// The trials that go on from another one's checkpoint: [[trial, iteration, from, iteration there],
// ...].
Value lineage_of(const Experiment& experiment);
Value trial_of(const Experiment& experiment, std::size_t row);

struct LogAsked {
  bool is_stderr = false;
  std::uint32_t rank = 0;
  std::optional<std::uint64_t> from = {};  // offset; nothing: the end of what is there
};
Value log_of(const Experiment& experiment, std::size_t row, const LogAsked& asked);

}  // namespace tune::view
