// Groups of parameters with names and options of their own.
//
//   using Options = torch::optim::AdamWOptions;
//   auto optimizer = std::make_shared<torch::optim::AdamW>(std::vector{
//       tune::parameter_group("backbone", net->backbone->parameters(), Options(lr / 10)),
//       tune::parameter_group("head", net->head->parameters(), Options(lr))});
//   tune::group_named(*optimizer, "head").options().set_lr(lr / 2);
//
// A checkpoint holds the names and the options that each such group was given, so that it knows
// which of them were configured anew; of a group without a name it knows only the optimizer's own.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tune {

// The name of a group, kept with its options.
class NamedGroup {
 public:
  virtual ~NamedGroup() = default;
  const std::string& name() const { return name_; }
  // The options as they were given, whatever a schedule has made of them since.
  const torch::optim::OptimizerOptions& configured() const { return *configured_; }

 protected:
  NamedGroup(std::string name, std::shared_ptr<const torch::optim::OptimizerOptions> configured)
      : name_(std::move(name)), configured_(std::move(configured)) {}

 private:
  std::string name_;
  std::shared_ptr<const torch::optim::OptimizerOptions> configured_;
};

// LibTorch copies a group's options when it takes them, by clone(), and changes them in place when
// it loads: what a derived class adds stays.
template <class Options>
class NamedOptions final : public Options, public NamedGroup {
 public:
  NamedOptions(std::string name, const Options& options)
      : Options(options), NamedGroup(std::move(name), std::make_shared<Options>(options)) {}
  std::unique_ptr<torch::optim::OptimizerOptions> clone() const override {
    return std::make_unique<NamedOptions>(*this);
  }
};

template <class Options>
torch::optim::OptimizerParamGroup parameter_group(std::string name,
                                                  std::vector<at::Tensor> parameters,
                                                  const Options& options) {
  return {std::move(parameters), std::make_unique<NamedOptions<Options>>(std::move(name), options)};
}

// Null for a group without a name.
const NamedGroup* named_group(const torch::optim::OptimizerParamGroup& group);

// Throws Error (kBadInput), which lists the names, when there is no such group.
torch::optim::OptimizerParamGroup& group_named(torch::optim::Optimizer& optimizer,
                                               const std::string& name);

// The rates that the groups were given: a group's own where it has a name, else the optimizer's.
std::vector<double> configured_rates(const torch::optim::Optimizer& optimizer);

}  // namespace tune
