#include "trainables/torch/learning_rate.h"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numbers>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "trainables/torch/parameter_groups.h"

namespace tune {
namespace {

void expect_rate(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorCode::kBadInput, message);
}

// The factors in the line of a scaled rate.
std::string product(double rate, double factor) {
  std::ostringstream line;
  line << "lr " << rate << " x " << factor << " = " << rate * factor << '\n';
  return line.str();
}

}  // namespace

LearningRate constant_rate() {
  return [](double initial, std::int64_t) { return initial; };
}

LearningRate multi_step(std::vector<std::int64_t> milestones, double gamma) {
  expect_rate(std::is_sorted(milestones.begin(), milestones.end()),
              "the milestones of a learning rate must ascend");
  return [milestones = std::move(milestones), gamma](double initial, std::int64_t step) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step);
    return initial * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
  };
}

LearningRate cosine(std::int64_t steps, double lowest) {
  expect_rate(steps >= 1, "the cosine of a learning rate takes " + std::to_string(steps) +
                              " steps, at least 1 is wanted");
  return [steps, lowest](double initial, std::int64_t step) {
    const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps);
    return lowest + (initial - lowest) * (1 + std::cos(angle)) / 2;
  };
}

LearningRate lambda_rate(std::function<double(std::int64_t step)> factor) {
  return [factor = std::move(factor)](double initial, std::int64_t step) {
    return initial * factor(step);
  };
}

LearningRate warm_up(std::int64_t steps, double start_factor, LearningRate then) {
  expect_rate(steps >= 1, "the warm-up of a learning rate takes " + std::to_string(steps) +
                              " steps, at least 1 is wanted");
  expect_rate(start_factor > 0 && start_factor <= 1,
              "the warm-up of a learning rate starts at a factor of " +
                  std::to_string(start_factor) + ", above 0 and at most 1 is wanted");
  return [steps, start_factor, then = std::move(then)](double initial, std::int64_t step) {
    const double done = static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
    return then(initial, step) * (start_factor + (1 - start_factor) * done);
  };
}

LearningRate exponential(double gamma) {
  return [gamma](double initial, std::int64_t step) {
    return initial * std::pow(gamma, static_cast<double>(step));
  };
}

LearningRate one_cycle(std::int64_t steps, const OneCycleOptions& options) {
  expect_rate(steps >= 2, "the cycle of a learning rate takes " + std::to_string(steps) +
                              " steps, at least 2 are wanted");
  expect_rate(options.rise >= 0 && options.rise <= 1, "the cycle of a learning rate rises for " +
                                                          std::to_string(options.rise) +
                                                          " of its steps, 0 to 1 is wanted");
  expect_rate(options.div_factor > 0 && options.last_div_factor > 0,
              "the factors of a learning rate's cycle are " + std::to_string(options.div_factor) +
                  " and " + std::to_string(options.last_div_factor) + ", above 0 is wanted");
  return [steps, options](double initial, std::int64_t step) {
    const auto along = [](double from, double to, double part) {
      return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
    };
    const double first = initial / options.div_factor;
    const auto last_step = static_cast<double>(steps - 1);
    const double top = options.rise * static_cast<double>(steps) - 1;
    const double at = std::min(static_cast<double>(step), last_step);
    if (top > 0 && at <= top) return along(first, initial, at / top);
    const double begin = std::max(top, 0.0);
    const double part = begin < last_step ? (at - begin) / (last_step - begin) : 1;
    return along(initial, first / options.last_div_factor, part);
  };
}

LearningRateSchedule::LearningRateSchedule(torch::optim::Optimizer& optimizer, LearningRate rate)
    : optimizer_(optimizer), rate_(std::move(rate)) {
  initial_ = rates();
  apply();
}

void LearningRateSchedule::step() {
  ++step_;
  apply();
}

std::vector<double> LearningRateSchedule::rates() const {
  std::vector<double> rates;
  for (const auto& group : optimizer_.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

Value LearningRateSchedule::state() const {
  return {{"step", step_},
          {"initial", initial_},
          {"configured", optimizer_.defaults().get_lr()},
          {"configured_groups", configured_rates(optimizer_)}};
}

void LearningRateSchedule::load_state(const Value& state) {
  const auto step = state.get<std::int64_t>("step");
  auto initial = state.get<std::vector<double>>("initial");
  expect_rate(step >= 0 && initial.size() == initial_.size(),
              "loading a learning rate: the state is of step " + std::to_string(step) + " and " +
                  std::to_string(initial.size()) + " groups, the optimizer has " +
                  std::to_string(initial_.size()));
  const std::vector<double> now = configured_rates(optimizer_);
  std::vector<double> before = now;  // of a version that did not say
  if (state.contains("configured")) before.assign(now.size(), state.get<double>("configured"));
  if (state.contains("configured_groups")) {
    before = state.get<std::vector<double>>("configured_groups");
    before.resize(now.size());
  }
  step_ = step;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    if (before[i] == now[i]) initial_[i] = initial[i];
  }
  apply();
}

void LearningRateSchedule::apply() {
  auto& groups = optimizer_.param_groups();
  expect_rate(groups.size() == initial_.size(),
              "a learning rate was set up for " + std::to_string(initial_.size()) +
                  " groups, the optimizer now has " + std::to_string(groups.size()));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].options().set_lr(rate_(initial_[i], step_));
  }
}

// The steps of the inner schedule are the reductions.
PlateauSchedule::PlateauSchedule(torch::optim::Optimizer& optimizer, const PlateauOptions& options)
    : options_(options),
      rates_(optimizer, [factor = options.factor, lowest = options.lowest](
                            double initial, std::int64_t reductions) {
        const double rate = initial * std::pow(factor, static_cast<double>(reductions));
        return std::max(rate, std::min(lowest, initial));
      }) {
  expect_rate(options.factor > 0 && options.factor < 1, "the factor of a plateau is " +
                                                            std::to_string(options.factor) +
                                                            ", between 0 and 1 is wanted");
  expect_rate(options.patience >= 0 && options.cooldown >= 0 && options.threshold >= 0,
              "patience, cooldown and threshold of a plateau are at least 0");
}

void PlateauSchedule::step(double value) {
  if (is_better(value)) {
    best_ = value;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return;
  ++reductions_;
  rates_.step();
  cooling_ = options_.cooldown;
  bad_steps_ = 0;
}

bool PlateauSchedule::is_better(double value) const {
  if (std::isnan(value)) return false;
  if (!best_) return true;
  return options_.larger_is_better ? value > *best_ * (1 + options_.threshold)
                                   : value < *best_ * (1 - options_.threshold);
}

Value PlateauSchedule::state() const {
  Value state = {{"reductions", reductions_},
                 {"bad_steps", bad_steps_},
                 {"cooling", cooling_},
                 {"rates", rates_.state()}};
  if (best_) state.set("best", *best_);
  return state;
}

void PlateauSchedule::load_state(const Value& state) {
  rates_.load_state(state.at("rates"));
  reductions_ = state.get<std::int64_t>("reductions");
  bad_steps_ = state.get<std::int64_t>("bad_steps");
  cooling_ = state.get<std::int64_t>("cooling");
  best_ = state.contains("best") ? std::optional(state.get<double>("best")) : std::nullopt;
}

LearningRateScaling LearningRateScaling::by(double factor) {
  expect_rate(std::isfinite(factor) && factor > 0,
              "lr_scaling is " + std::to_string(factor) + ", a factor above 0 is wanted");
  return {Kind::kFactor, factor};
}

LearningRateScaling LearningRateScaling::from(const Value& value) {
  if (value.is_number()) return by(value.as<double>());
  const std::string text = value.is_string() ? value.as<std::string>() : value.dump();
  if (text == "linear") return linear();
  if (text == "sqrt") return sqrt();
  expect_rate(text == "none",
              "lr_scaling is " + text + ": linear, sqrt, none or a factor is wanted");
  return none();
}

double LearningRateScaling::factor(std::int64_t world_size) const {
  const auto ranks = static_cast<double>(world_size);
  if (kind_ == Kind::kLinear) return ranks;
  return kind_ == Kind::kSqrt ? std::sqrt(ranks) : factor_;
}

void scale_learning_rate(torch::optim::Optimizer& optimizer, const LearningRateScaling& scaling,
                         std::int64_t world_size, std::int64_t rank) {
  const double factor = scaling.factor(world_size);
  if (factor == 1) return;
  std::set<std::string> lines;
  for (auto& group : optimizer.param_groups()) {
    const double rate = group.options().get_lr();
    group.options().set_lr(rate * factor);
    lines.insert(product(rate, factor));
  }
  if (rank != 0) return;
  for (const std::string& line : lines) std::cerr << line;
}

}  // namespace tune
