// What a controller is made of, by what the user has asked for.
#include "tune/control/experiment_setup.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tune {
namespace {

// As a user's own.
class Ruled : public TrialScheduler {
 public:
  void configure(const Objective& experiment) override { objective_ = experiment; }
  Objective objective() const override { return objective_; }
  void take_rules(Keeps keeps) override {
    CHECK(objective_.metric == "loss");  // it is configured
    CHECK_FALSE(keeps_);
    keeps_ = std::move(keeps);
  }
  Milestone add_trial(TrialNumber) override { return {}; }
  Decision result(TrialNumber, const ResultView&) override { return Decision::go_on({}); }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override {}
  bool replaces() const override { return true; }
  std::vector<std::string> status_lines() const override { return {}; }
  std::string save() const override { return {}; }
  void restore(std::string_view) override {}

  const Keeps& keeps() const { return keeps_; }

 private:
  Objective objective_;
  Keeps keeps_;
};

ControllerSetup setup_with(std::vector<std::string> where) {
  RunOptions options;
  options.name = "e";
  options.config = {{"lr", loguniform(1e-3, 1)}, {"floor", uniform(0, 1)}};
  options.where = std::move(where);
  options.metric = "loss";
  options.mode = Mode::kMin;
  options.seed = 3;
  options.scheduler = scheduler<Ruled>();
  options.stop = {{"training_iteration", 9}};
  std::vector<Complaint> complaints;
  const ExperimentSpec spec = make_spec(options, "T", false, complaints);
  REQUIRE(complaints.empty());
  return controller_setup(spec, "/e");
}

TEST_CASE("a user's scheduler is told the rules of the space, if it has any") {
  const ControllerSetup ruled = setup_with({"floor < lr", "lr < 0.5"});
  const Keeps& keeps = dynamic_cast<const Ruled&>(*ruled.scheduler).keeps();
  REQUIRE(keeps);
  CHECK(keeps({{"lr", 0.4}, {"floor", 0.1}}));
  CHECK_FALSE(keeps({{"lr", 0.4}, {"floor", 0.41}}));
  CHECK_FALSE(keeps({{"lr", 0.6}, {"floor", 0.1}}));

  const ControllerSetup free = setup_with({});
  CHECK_FALSE(dynamic_cast<const Ruled&>(*free.scheduler).keeps());
}

}  // namespace
}  // namespace tune
