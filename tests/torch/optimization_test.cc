// Learning rates, gradient scaling and mixed precision: what stands around an optimizer's step.
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace nn = torch::nn;
using testing::refusal;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

torch::optim::SGD sgd(double rate, const torch::Tensor& parameter = torch::zeros({1})) {
  return torch::optim::SGD({parameter}, torch::optim::SGDOptions(rate));
}

double rate_of(const torch::optim::Optimizer& optimizer, std::size_t group = 0) {
  return optimizer.param_groups().at(group).options().get_lr();
}

// --- learning rates

TEST_CASE("schedules set the rates that PyTorch's set") {
  const std::map<std::string, LearningRate> rates = {
      {"multi_step", multi_step({3, 8, 8, 30}, 0.3)},
      {"cosine", cosine(12, 0.01)},
      {"lambda", lambda_rate([](std::int64_t step) { return std::pow(0.95, step); })},
      {"exponential", exponential(0.9)},
      {"one_cycle", one_cycle(40)},
      {"one_cycle_of_halves",
       one_cycle(41, {.rise = 0.5, .div_factor = 10, .last_div_factor = 100})},
      {"warm_up", warm_up(5, 0.25)},
      {"warm_up_multi_step", warm_up(5, 0.25, multi_step({3, 8, 8, 30}, 0.3))}};
  std::ifstream in(TUNE_SOURCE_DIR "/tests/torch/data/learning_rate.txt");
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    std::istringstream text(line);
    std::string name;
    char colon = 0;
    REQUIRE(static_cast<bool>(text >> name >> colon));
    CAPTURE(name);
    auto optimizer = sgd(0.4);
    LearningRateSchedule schedule(optimizer, rates.at(name));
    for (double expected = 0; text >> expected; schedule.step()) {
      CAPTURE(schedule.steps());
      CHECK(rate_of(optimizer) == doctest::Approx(expected).epsilon(1e-12));
    }
    CHECK(schedule.steps() == 40);
  }
  CHECK(lines == rates.size());
}

TEST_CASE("a schedule sets each group of any optimizer from its own rate") {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double rate : {0.1, 0.01}) {
    groups.emplace_back(std::vector<torch::Tensor>{torch::zeros({1})},
                        std::make_unique<torch::optim::AdamOptions>(rate));
  }
  torch::optim::Adam optimizer(groups);
  LearningRateSchedule schedule(optimizer, multi_step({1}, 0.5));
  schedule.step();
  CHECK(schedule.rates() == std::vector<double>{0.05, 0.005});
}

TEST_CASE("a restored schedule goes on with the rates of the saved one") {
  auto saved_optimizer = sgd(0.4);
  LearningRateSchedule saved(saved_optimizer, cosine(10));
  for (int i = 0; i < 4; ++i) saved.step();

  auto optimizer = sgd(0.4);
  optimizer.param_groups()[0].options().set_lr(9);  // the state says from which it began
  LearningRateSchedule restored(optimizer, cosine(10));
  restored.load_state(saved.state());
  CHECK(restored.steps() == 4);
  CHECK(rate_of(optimizer) == rate_of(saved_optimizer));
  saved.step();
  restored.step();
  CHECK(rate_of(optimizer) == rate_of(saved_optimizer));
  CHECK(refusal([&] {
          restored.load_state({{"step", 1}, {"initial", std::vector<double>{1, 2}}});
        }) == "loading a learning rate: the state is of step 1 and 2 groups, the optimizer has 1");
}

TEST_CASE("a schedule whose rate was configured anew goes on from that rate, at the saved step") {
  auto first = sgd(0.1);
  LearningRateSchedule saved(first, multi_step({2}, 0.1));
  saved.step();
  saved.step();
  auto optimizer = sgd(0.5);
  LearningRateSchedule replaced(optimizer, multi_step({2}, 0.1));
  replaced.load_state(saved.state());
  CHECK(replaced.steps() == 2);
  CHECK(rate_of(optimizer) == doctest::Approx(0.05));
}

TEST_CASE("a plateau lowers the rates after so many steps without an improvement") {
  auto optimizer = sgd(0.4);
  PlateauSchedule schedule(optimizer,
                           {.factor = 0.5, .patience = 1, .cooldown = 1, .lowest = 0.15});
  const auto rate_after = [&](double value) {
    schedule.step(value);
    return rate_of(optimizer);
  };
  CHECK(rate_after(1) == 0.4);
  CHECK(rate_after(0.99995) == 0.4);  // less than a ten-thousandth better: the first bad one
  CHECK(rate_after(NAN) == 0.2);      // the second
  CHECK(rate_after(2) == 0.2);        // of the cooldown
  CHECK(rate_after(2) == 0.2);
  const Value state = schedule.state();
  CHECK(rate_after(0.5) == 0.2);  // better

  auto other = sgd(0.4);
  PlateauSchedule restored(other, {.factor = 0.5, .patience = 1, .lowest = 0.15});
  restored.load_state(state);
  CHECK(rate_of(other) == 0.2);
  restored.step(3);  // the second bad one
  CHECK(rate_of(other) == 0.15);
  CHECK(restored.reductions() == 2);

  auto rising = sgd(0.4);
  PlateauSchedule accuracy(rising, {.larger_is_better = true, .patience = 0});
  accuracy.step(0.5);
  accuracy.step(0.6);
  CHECK(rate_of(rising) == 0.4);
  accuracy.step(0.6);
  CHECK(rate_of(rising) == doctest::Approx(0.04));
}

TEST_CASE("a rate is scaled with the ranks and says so once, on rank 0") {
  using Scaled = std::pair<double, std::string>;
  const auto scaled = [](const LearningRateScaling& scaling, std::int64_t rank = 0) {
    auto optimizer = sgd(0.1);
    std::ostringstream said;
    auto* const old = std::cerr.rdbuf(said.rdbuf());
    scale_learning_rate(optimizer, scaling, 4, rank);
    std::cerr.rdbuf(old);
    return Scaled(rate_of(optimizer), said.str());
  };
  CHECK(scaled(LearningRateScaling::linear()) == Scaled(0.4, "lr 0.1 x 4 = 0.4\n"));
  CHECK(scaled(LearningRateScaling::linear(), 1) == Scaled(0.4, ""));
  CHECK(scaled(LearningRateScaling::sqrt()) == Scaled(0.2, "lr 0.1 x 2 = 0.2\n"));
  CHECK(scaled(LearningRateScaling::by(0.5)) == Scaled(0.05, "lr 0.1 x 0.5 = 0.05\n"));
  CHECK(scaled(LearningRateScaling::none()) == Scaled(0.1, ""));

  CHECK(LearningRateScaling::from("linear").factor(4) == 4);
  CHECK(LearningRateScaling::from("sqrt").factor(4) == 2);
  CHECK(LearningRateScaling::from("none").factor(4) == 1);
  CHECK(LearningRateScaling::from(3).factor(4) == 3);
  CHECK(refusal([] { LearningRateScaling::from("cubic"); }) ==
        "lr_scaling is cubic: linear, sqrt, none or a factor is wanted");
  CHECK(refusal([] { LearningRateScaling::from(-1); }) ==
        "lr_scaling is -1.000000, a factor above 0 is wanted");
}

TEST_CASE("schedules refuse numbers that make no sense") {
  CHECK(refusal([] { multi_step({5, 3}); }) == "the milestones of a learning rate must ascend");
  CHECK(refusal([] { cosine(0); }) ==
        "the cosine of a learning rate takes 0 steps, at least 1 is wanted");
  CHECK(refusal([] { warm_up(0, 0.5); }) ==
        "the warm-up of a learning rate takes 0 steps, at least 1 is wanted");
  CHECK_HAS(refusal([] { warm_up(3, 0); }), "above 0 and at most 1");
}

// --- the scaler

TEST_CASE("cycles and plateaus refuse numbers that make no sense") {
  CHECK_HAS(refusal([] { one_cycle(1); }), "takes 1 steps, at least 2 are wanted");
  CHECK_HAS(refusal([] { one_cycle(5, {.rise = 2}); }), "rises for 2.000000 of its steps");
  CHECK_HAS(refusal([] { one_cycle(5, {.div_factor = 0}); }), "above 0 is wanted");
  auto optimizer = sgd(0.1);
  CHECK_HAS(refusal([&] { PlateauSchedule(optimizer, {.factor = 1}); }), "between 0 and 1");
  CHECK_HAS(refusal([&] { PlateauSchedule(optimizer, {.patience = -1}); }), "at least 0");
}

TEST_CASE("the scaler skips steps that overflow and grows after some that do not") {
  torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
  auto optimizer = sgd(0.5, parameter);
  GradScaler scaler({.scale = 4, .growth_interval = 2});
  // The transcript of torch.amp.GradScaler("cpu", init_scale=4, growth_interval=2).
  struct Step {
    double gradient, parameter, scale;
    int tracker;
  };
  for (const Step& step : std::vector<Step>{
           {1, 0.5, 4, 1}, {1, 0, 8, 0}, {kInfinity, 0, 4, 0}, {1, -0.5, 4, 1}, {1, -1, 8, 0}}) {
    CAPTURE(step.parameter);
    optimizer.zero_grad();
    scaler.scale((parameter * step.gradient).sum()).backward();
    CHECK(scaler.step(optimizer) == std::isfinite(step.gradient));
    scaler.update();
    CHECK(parameter[1].item<double>() == step.parameter);
    CHECK(scaler.scale() == step.scale);
    CHECK(scaler.state() == Value{{"scale", step.scale}, {"growth_tracker", step.tracker}});
  }
}

TEST_CASE("unscaled gradients can be clipped, and are unscaled once") {
  torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
  auto optimizer = sgd(1, parameter);
  GradScaler scaler;
  scaler.scale((parameter * 3).sum()).backward();
  CHECK(parameter.grad()[0].item<double>() == 3 * 65536.0);
  scaler.unscale(optimizer);
  CHECK(parameter.grad()[0].item<double>() == 3);
  nn::utils::clip_grad_value_({parameter}, 2);
  CHECK(scaler.step(optimizer));
  scaler.update();
  CHECK(parameter[0].item<double>() == -1);
}

TEST_CASE("a scaler knows until its update which gradients are unscaled, also a disabled one") {
  for (const bool enabled : {true, false}) {
    torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
    auto optimizer = sgd(1, parameter);
    GradScaler scaler({.enabled = enabled});
    scaler.scale(parameter.sum()).backward();
    CHECK_FALSE(scaler.is_unscaled(optimizer));
    scaler.unscale(optimizer);
    CHECK(scaler.is_unscaled(optimizer));
    scaler.step(optimizer);
    scaler.update();
    CHECK_FALSE(scaler.is_unscaled(optimizer));
  }
}

TEST_CASE("a restored scaler has the scale and the steps since it changed") {
  GradScaler scaler;
  scaler.load_state({{"scale", 1024.0}, {"growth_tracker", 7}});
  CHECK(scaler.state() == Value{{"scale", 1024.0}, {"growth_tracker", 7}});
  CHECK(refusal([&] {
          scaler.load_state({{"scale", 0.0}, {"growth_tracker", 7}});
        }) == "the loaded scale of a gradient scaler is 0.000000, above 0 is wanted");
  CHECK_HAS(refusal([&] { scaler.load_state({{"scale", 1.0}}); }), "growth_tracker");
}

TEST_CASE("a disabled scaler lets all pass") {
  torch::Tensor parameter = torch::ones({1}, torch::requires_grad());
  auto optimizer = sgd(1, parameter);
  GradScaler scaler({.enabled = false});
  scaler.scale(parameter.sum()).backward();
  CHECK(scaler.step(optimizer));
  scaler.update();
  CHECK(parameter.item<double>() == 0);
  CHECK(scaler.scale() == 1);
}

TEST_CASE("the scaler refuses settings that make no sense") {
  const auto scaler = [](const GradScalerOptions& options) {
    return refusal([&] { GradScaler{options}; });
  };
  CHECK(scaler({.scale = 0}) == "scale of a gradient scaler is 0.000000, above 0 is wanted");
  CHECK(scaler({.growth = 1}) == "growth of a gradient scaler is 1.000000, above 1 is wanted");
  CHECK(scaler({.backoff = 1}).find("backoff") == 0);
  CHECK(scaler({.growth_interval = 0}).find("growth_interval") == 0);
}

// --- mixed precision

TEST_CASE("autocast lasts as long as its scope, and scopes nest") {
  const torch::Tensor a = torch::ones({2, 2});
  const auto type = [&] { return torch::mm(a, a).dtype(); };
  CHECK(type() == torch::kFloat);
  {
    const Autocast outer(torch::kCPU, torch::kBFloat16);
    CHECK(type() == torch::kBFloat16);
    {
      const Autocast inner(torch::kCPU, torch::kHalf);
      CHECK(type() == torch::kHalf);
      const Autocast off(torch::kCPU, torch::kHalf, false);
      CHECK(type() == torch::kFloat);
    }
    CHECK(type() == torch::kBFloat16);
  }
  CHECK(type() == torch::kFloat);
  CHECK(refusal([] { Autocast(torch::kCPU, torch::kDouble); }) ==
        "autocast to Double: Half or BFloat16 is wanted");
  CHECK(type() == torch::kFloat);
}

struct SmallTraining {
  SmallTraining(PrecisionLevel level, torch::Dtype dtype)
      : model(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Linear(8, 1)),
        optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)),
        precision({model.ptr().get()}, {&optimizer},
                  {.level = level, .dtype = dtype, .scaler = {.scale = 128}}) {}

  double step() {
    const torch::Tensor data = torch::randn({32, 4});
    const torch::Tensor target = data.sum(1, true);
    precision.zero_grad();
    torch::Tensor loss;
    {
      const Autocast autocast = precision.autocast(torch::kCPU);
      const torch::Tensor output = model->forward(precision.input(data));
      loss = torch::mse_loss(output.to(torch::kFloat), target);
    }
    precision.backward(loss);
    precision.step();
    return loss.item<double>();
  }

  nn::Sequential model;
  torch::optim::SGD optimizer;
  MixedPrecision precision;
};

TEST_CASE("a network learns at every level, in both types") {
  for (const std::string level : {"O0", "O1", "O2", "O3"}) {
    for (const torch::Dtype dtype : {torch::kHalf, torch::kBFloat16}) {
      CAPTURE(level);
      CAPTURE(std::string(c10::toString(dtype)));
      torch::manual_seed(1);
      SmallTraining training(precision_level(level), dtype);
      const double first = training.step();
      for (int i = 0; i < 60; ++i) training.step();
      CHECK(training.step() < first / 2.5);
    }
  }
}

TEST_CASE("the levels keep weights, batch norms and the optimizer's copies in their types") {
  const auto types = [](PrecisionLevel level) {
    const SmallTraining training(level, torch::kHalf);
    const auto parameters = training.model->named_parameters();
    return std::vector<torch::Dtype>{
        parameters["0.weight"].scalar_type(), parameters["1.weight"].scalar_type(),
        training.model->named_buffers()["1.running_mean"].scalar_type(),
        training.optimizer.param_groups()[0].params()[0].scalar_type()};
  };
  const auto kFloat = torch::kFloat;
  const auto kHalf = torch::kHalf;
  CHECK(types(PrecisionLevel::kO0) == std::vector<torch::Dtype>{kFloat, kFloat, kFloat, kFloat});
  CHECK(types(PrecisionLevel::kO1) == std::vector<torch::Dtype>{kFloat, kFloat, kFloat, kFloat});
  CHECK(types(PrecisionLevel::kO2) == std::vector<torch::Dtype>{kHalf, kFloat, kFloat, kFloat});
  CHECK(types(PrecisionLevel::kO3) == std::vector<torch::Dtype>{kHalf, kFloat, kFloat, kHalf});
}

TEST_CASE("only halves under autocast are scaled") {
  const auto scale = [](PrecisionLevel level, torch::Dtype dtype) {
    return SmallTraining(level, dtype).precision.scaler().scale();
  };
  CHECK(scale(PrecisionLevel::kO0, torch::kHalf) == 1);
  CHECK(scale(PrecisionLevel::kO1, torch::kHalf) == 128);
  CHECK(scale(PrecisionLevel::kO2, torch::kHalf) == 128);
  CHECK(scale(PrecisionLevel::kO3, torch::kHalf) == 1);
  CHECK(scale(PrecisionLevel::kO1, torch::kBFloat16) == 1);
}

TEST_CASE("a step at O2 is made on the copies in floats, which half weights would swallow") {
  torch::manual_seed(1);
  SmallTraining training(PrecisionLevel::kO2, torch::kHalf);
  const torch::Tensor weight = training.model->parameters()[0];
  const torch::Tensor master = training.optimizer.param_groups()[0].params()[0];
  {
    const torch::NoGradGuard no_gradients;
    weight.fill_(1);
    master.fill_(1);
  }
  // Halves next to 1 are 2^-11 below it: ten steps of 2^-13 move it by 2.5 of them, one by none.
  const auto step = [&] {
    training.precision.zero_grad();
    training.precision.backward(weight.to(torch::kFloat).sum() * std::pow(2.0, -13) / 0.05);
    CHECK(training.precision.step());
  };
  auto& options = training.optimizer.param_groups()[0].options();
  static_cast<torch::optim::SGDOptions&>(options).momentum(0);
  step();
  CHECK(weight[0][0].item<double>() == 1);
  CHECK(master[0][0].item<double>() == doctest::Approx(1 - std::pow(2.0, -13)).epsilon(1e-7));
  for (int i = 0; i < 9; ++i) step();
  CHECK(weight[0][0].item<double>() < 1 - std::pow(2.0, -11));
}

TEST_CASE("a restored training at O2 goes on exactly as the saved one") {
  const testing::TemporaryFolder folder;
  torch::manual_seed(1);
  SmallTraining saved(PrecisionLevel::kO2, torch::kHalf);
  for (int i = 0; i < 3; ++i) saved.step();
  save_checkpoint(folder.path(), *saved.model, saved.optimizer);
  saved.precision.save(folder.path());
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(saved.step());

  SmallTraining restored(PrecisionLevel::kO2, torch::kHalf);
  load_checkpoint(folder.path(), *restored.model, restored.optimizer);
  restored.precision.load(folder.path());
  for (const double loss : losses) CHECK(restored.step() == loss);

  SmallTraining other(PrecisionLevel::kO1, torch::kHalf);
  CHECK_HAS(refusal([&] { other.precision.load(folder.path()); }), "another opt_level");
}

TEST_CASE("mixed precision refuses what it cannot do") {
  CHECK(refusal([] { precision_level("02"); }) ==
        "opt_level is 02: O0, O1, O2 or O3 is wanted (the letter O)");
  CHECK(refusal([] { SmallTraining(PrecisionLevel::kO1, torch::kDouble); }) ==
        "mixed precision with Double: Half or BFloat16 is wanted");
  SmallTraining late(PrecisionLevel::kO0, torch::kHalf);
  late.step();
  CHECK(refusal([&] {
          MixedPrecision({late.model.ptr().get()}, {&late.optimizer},
                         {.level = PrecisionLevel::kO2});
        }) == "levels O2 and O3 want optimizers that have not made a step");
  const testing::TemporaryFolder empty;
  CHECK_THROWS_AS(late.precision.load(empty.path()), Error);
}

}  // namespace
}  // namespace tune
