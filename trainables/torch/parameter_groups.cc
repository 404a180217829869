#include "trainables/torch/parameter_groups.h"

#include "trainables/torch/torch_error.h"

namespace tune {

const NamedGroup* named_group(const torch::optim::OptimizerParamGroup& group) {
  return group.has_options() ? dynamic_cast<const NamedGroup*>(&group.options()) : nullptr;
}

torch::optim::OptimizerParamGroup& group_named(torch::optim::Optimizer& optimizer,
                                               const std::string& name) {
  std::string names;
  for (auto& group : optimizer.param_groups()) {
    const NamedGroup* named = named_group(group);
    if (named == nullptr) continue;
    if (named->name() == name) return group;
    names += (names.empty() ? "" : ", ") + named->name();
  }
  bad_input("there is no group of parameters named " + name + ": the optimizer's are " +
            (names.empty() ? "without names" : names));
}

std::vector<double> configured_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) {
    const NamedGroup* named = named_group(group);
    rates.push_back((named != nullptr ? named->configured() : optimizer.defaults()).get_lr());
  }
  return rates;
}

}  // namespace tune
