#include <memory>
#include <string>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

using testing::refusal;
using GroupOptions = torch::optim::AdamWOptions;

struct TwoGroups {
  torch::nn::Linear backbone{3, 2};
  torch::nn::Linear head{3, 2};
  std::shared_ptr<torch::optim::AdamW> optimizer(double backbone_rate, double head_rate,
                                                 const char* first = "backbone") {
    return std::make_shared<torch::optim::AdamW>(
        std::vector{parameter_group(first, backbone->parameters(), GroupOptions(backbone_rate)),
                    parameter_group("head", head->parameters(), GroupOptions(head_rate))});
  }
  // With a step made and the rates halved, as by a schedule.
  std::shared_ptr<torch::optim::AdamW> trained() {
    const auto trained = optimizer(0.01, 0.1);
    for (const auto& model : {backbone, head}) {
      model->weight.mutable_grad() = torch::ones_like(model->weight);
    }
    trained->step();
    for (auto& group : trained->param_groups()) {
      group.options().set_lr(group.options().get_lr() / 2);
    }
    return trained;
  }
};

double rate_of(torch::optim::Optimizer& optimizer, const std::string& name) {
  return group_named(optimizer, name).options().get_lr();
}

TEST_CASE("a rate given to one named group alone counts after a replacement, and no other") {
  const testing::TemporaryFolder folder;
  TwoGroups groups;
  save_optimizer(folder.path(), *groups.trained());

  const auto resumed = groups.optimizer(0.01, 0.1);
  load_optimizer(folder.path(), *resumed);
  CHECK(rate_of(*resumed, "backbone") == 0.005);
  CHECK(rate_of(*resumed, "head") == 0.05);
  CHECK(resumed->state().size() == 2);

  const auto replaced = groups.optimizer(0.01, 0.3);
  load_optimizer(folder.path(), *replaced);
  CHECK(rate_of(*replaced, "backbone") == 0.005);
  CHECK(rate_of(*replaced, "head") == 0.3);

  // Saved and resumed under the new configuration, whatever a schedule made of it since.
  replaced->param_groups()[1].options().set_lr(0.15);
  save_optimizer(folder.path(), *replaced);
  const auto again = groups.optimizer(0.01, 0.3);
  load_optimizer(folder.path(), *again);
  CHECK(rate_of(*again, "head") == 0.15);
}

TEST_CASE("a checkpoint's groups are those of the same names") {
  const testing::TemporaryFolder folder;
  TwoGroups groups;
  save_optimizer(folder.path(), *groups.trained());
  const auto other = groups.optimizer(0.01, 0.1, "body");
  CHECK(refusal([&] { load_optimizer(folder.path(), *other); }) ==
        "the checkpoint's group 0 of parameters is named backbone, the optimizer's is body: make "
        "the groups in the same order");
  CHECK(refusal([&] { group_named(*other, "tail"); }) ==
        "there is no group of parameters named tail: the optimizer's are body, head");
}

TEST_CASE("groups without names load what was saved with names, and the other way round") {
  const testing::TemporaryFolder folder;
  TwoGroups groups;
  save_optimizer(folder.path(), *groups.trained());
  std::vector<torch::optim::OptimizerParamGroup> plain;
  plain.emplace_back(groups.backbone->parameters(), std::make_unique<GroupOptions>(0.5));
  plain.emplace_back(groups.head->parameters(), std::make_unique<GroupOptions>(0.5));
  torch::optim::AdamW unnamed(plain);
  load_optimizer(folder.path(), unnamed);
  CHECK(unnamed.param_groups()[1].options().get_lr() == 0.05);
  save_optimizer(folder.path(), unnamed);
  const auto named = groups.optimizer(0.5, 0.5);
  load_optimizer(folder.path(), *named);
  CHECK(rate_of(*named, "head") == 0.05);
}

TEST_CASE("a schedule goes on from the rate that a named group was given anew") {
  TwoGroups groups;
  const LearningRate halved = [](double initial, std::int64_t step) {
    return step > 0 ? initial / 2 : initial;
  };
  const auto before = groups.optimizer(0.01, 0.1);
  LearningRateSchedule saved(*before, halved);
  saved.step();
  const auto replaced = groups.optimizer(0.01, 0.4);
  LearningRateSchedule restored(*replaced, halved);
  restored.load_state(saved.state());
  CHECK(rate_of(*replaced, "backbone") == 0.005);
  CHECK(rate_of(*replaced, "head") == 0.2);
}

}  // namespace
}  // namespace tune
