// MlflowBatch: params, metrics and tags of one run on their way to MLflow's runs/log-batch, within
// the limits that it sets for a request. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tune {

class MlflowBatch {
 public:
  // Names as MLflow takes them: another one is changed, and gets a hash at its end, so that no two
  // become the same. Values that are too long are cut.
  void param(std::string_view name, std::string_view value);
  void metric(std::string_view name, double value, std::int64_t time_ms, std::uint64_t step);
  void tag(std::string_view name, std::string_view value);

  bool is_empty() const { return params_.empty() && metrics_.empty() && tags_.empty(); }
  // Nothing more fits for sure but a few tags.
  bool is_full() const;
  // The body of a request; the batch is empty then.
  std::string take(const std::string& run_id);

 private:
  std::string params_, metrics_, tags_;
  std::size_t param_count_ = 0, metric_count_ = 0, tag_count_ = 0;
};

// MLflow takes letters of any script, digits and `_-. :/`, without empty steps of a path, "." and
// "..".
std::string mlflow_name(std::string_view name);

}  // namespace tune
