// Learning rates over the steps of a training: schedules for any optimizer of LibTorch, and the
// scaling of a rate with the number of ranks.
//
//   scale_learning_rate(optimizer, LearningRateScaling::linear(), context().world_size(), rank);
//   LearningRateSchedule schedule(optimizer, warm_up(5, 0.25, multi_step({30, 60, 80})));
//   ... each epoch, or batch, after the optimizer's steps of it: schedule.step();
//
// The values are those of PyTorch's schedulers, from the formula of the step at hand rather than
// from the value before: they differ from Python's by rounding only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace torch::optim {
class Optimizer;
}

namespace tune {

// The rate at a step >= 0, given the rate that the optimizer began with.
using LearningRate = std::function<double(double initial, std::int64_t step)>;

// Refused (kBadInput): milestones that do not ascend, steps below 1.
LearningRate constant_rate();
// Times gamma at each milestone: MultiStepLR.
LearningRate multi_step(std::vector<std::int64_t> milestones, double gamma = 0.1);
// From the initial rate down to `lowest` in `steps` steps, and up again: CosineAnnealingLR.
LearningRate cosine(std::int64_t steps, double lowest = 0);
// The initial rate times factor(step): LambdaLR.
LearningRate lambda_rate(std::function<double(std::int64_t step)> factor);
// The first `steps` steps of `then` times a factor that grows linearly from start_factor, in (0,
// 1], to 1: LinearLR chained with `then`, which counts all steps.
LearningRate warm_up(std::int64_t steps, double start_factor, LearningRate then = constant_rate());

// The initial rate times gamma to the power of the step: ExponentialLR.
LearningRate exponential(double gamma);

struct OneCycleOptions {
  double rise = 0.3;             // the part of the steps in which the rate rises
  double div_factor = 25;        // the first rate is the initial one divided by it
  double last_div_factor = 1e4;  // and the last one is the first divided by this
};
// Along a cosine up to the initial rate, and down until the last of `steps` steps: OneCycleLR,
// whose max_lr is the initial rate here. Momentum stays as it is, as with cycle_momentum=False. The
// rate stays where it is after the last step.
LearningRate one_cycle(std::int64_t steps, const OneCycleOptions& options = {});

// Sets the rates of all of an optimizer's groups, each from its own initial rate. The optimizer
// must outlive it.
class LearningRateSchedule {
 public:
  // Takes the optimizer's rates as the initial ones and sets those of step 0.
  LearningRateSchedule(torch::optim::Optimizer& optimizer, LearningRate rate);

  void step();  // to the next step
  std::int64_t steps() const { return step_; }
  std::vector<double> rates() const;  // of the groups, as they are now

  // {step, initial, configured, configured_groups}: the rate's formula is not in it. Loading sets
  // the optimizer's rates; the initial ones are the state's, unless the optimizer's constructor, or
  // a group with a name, was given another rate than the configured one: then its own counts, from
  // the state's step on. Refuses (kBadInput) a state of another number of groups.
  Value state() const;
  void load_state(const Value& state);

 private:
  void apply();
  torch::optim::Optimizer& optimizer_;
  LearningRate rate_;
  std::vector<double> initial_;
  std::int64_t step_ = 0;
};

struct PlateauOptions {
  bool larger_is_better = false;  // as for an accuracy
  double factor = 0.1;            // of the rates when the value has not improved for long
  std::int64_t patience = 10;     // steps without an improvement that are borne
  double threshold = 1e-4;        // an improvement is one of this part of the best value
  std::int64_t cooldown = 0;      // steps after a reduction in which none is counted
  double lowest = 0;              // no rate falls below it
};

// Lowers the rates when a value stops improving: ReduceLROnPlateau. The value is the same on all
// ranks, as Metrics and validate give it. The optimizer must outlive it.
class PlateauSchedule {
 public:
  // Refuses (kBadInput) a factor outside of (0, 1), and patience, threshold or cooldown below 0.
  PlateauSchedule(torch::optim::Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double value);  // after each epoch, or report; no number counts as no improvement
  std::int64_t reductions() const { return reductions_; }

  // As for LearningRateSchedule.
  Value state() const;
  void load_state(const Value& state);

 private:
  bool is_better(double value) const;

  PlateauOptions options_;
  std::int64_t reductions_ = 0;
  std::int64_t bad_steps_ = 0;
  std::int64_t cooling_ = 0;  // steps of the cooldown that are left
  std::optional<double> best_;
  LearningRateSchedule rates_;
};

// The growth of the rate with the ranks that share the work: their batches add up to a larger one.
class LearningRateScaling {
 public:
  static LearningRateScaling none() { return {Kind::kFactor, 1}; }
  static LearningRateScaling linear() { return {Kind::kLinear, 1}; }
  static LearningRateScaling sqrt() { return {Kind::kSqrt, 1}; }
  static LearningRateScaling by(double factor);  // > 0, else kBadInput

  // From a configuration: "linear", "sqrt", "none" or a factor. Else kBadInput.
  static LearningRateScaling from(const Value& value);

  double factor(std::int64_t world_size) const;

 private:
  enum class Kind { kFactor, kLinear, kSqrt };
  LearningRateScaling(Kind kind, double factor) : kind_(kind), factor_(factor) {}
  Kind kind_;
  double factor_;
};

// Scales the rates of all groups; before a schedule is made of them. Rank 0 says on stderr what
// came of it, unless nothing did: "lr 0.1 x 4 = 0.4", a line for each different rate.
void scale_learning_rate(torch::optim::Optimizer& optimizer, const LearningRateScaling& scaling,
                         std::int64_t world_size, std::int64_t rank);

}  // namespace tune
