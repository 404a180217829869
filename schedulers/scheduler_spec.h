// A scheduler as a value: what RunOptions hold and copy. Makes the scheduler when a run begins.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

class SchedulerSpec {
 public:
  using Make = std::function<std::unique_ptr<TrialScheduler>()>;

  SchedulerSpec();  // FIFO
  // `name` is its YAML name ("asha") and `parameters` what experiment.json records; a custom
  // scheduler has an empty name and is made only by the program that brought it.
  SchedulerSpec(std::string name, Config parameters, Make make)
      : name_(std::move(name)), parameters_(std::move(parameters)), make_(std::move(make)) {}

  const std::string& name() const { return name_; }
  const Config& parameters() const { return parameters_; }
  std::unique_ptr<TrialScheduler> make() const { return make_(); }

  // The key paths of the parameters that it gives other values to: the configuration has them all.
  const std::vector<std::string>& changed_parameters() const { return changed_parameters_; }
  void set_changed_parameters(std::vector<std::string> paths) {
    changed_parameters_ = std::move(paths);
  }

 private:
  std::string name_;
  Config parameters_;
  Make make_;
  std::vector<std::string> changed_parameters_;
};

// A custom scheduler: made anew for each run from copies of the arguments.
template <class T, class... Args>
SchedulerSpec scheduler(Args... args) {
  return SchedulerSpec("", {}, [args...] { return std::make_unique<T>(args...); });
}

SchedulerSpec fifo();

// The scheduler of a YAML or experiment.json entry: a name ("fifo", "asha", "hyperband",
// "median_stopping", "pbt_replay", or another of Ray Tune's names for these such as
// "AsyncHyperBand" and "ASHAScheduler") with its parameters: the fields of AshaOptions,
// HyperBandOptions, MedianStoppingOptions. Throws Error (kBadInput) naming the unknown name or key
// with the nearest known one, or the bad value.
SchedulerSpec scheduler_from_config(const std::string& name, const Config& parameters);

}  // namespace tune
