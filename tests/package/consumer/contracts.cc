// A scheduler and a searcher of the user's own, tested by what the package brings for that.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <tune/testing/scheduler_conformance.h>
#include <tune/testing/searcher_conformance.h>
#include <tune/tune.h>

namespace {

// Stops every trial at its third step.
class ThreeSteps : public tune::TrialScheduler {
 public:
  void configure(const tune::Objective& experiment) override { objective_ = experiment; }
  tune::Objective objective() const override { return objective_; }
  tune::Milestone add_trial(tune::TrialNumber) override { return {"training_iteration", 3}; }
  tune::Decision result(tune::TrialNumber, const tune::ResultView& result) override {
    if (result.iteration() >= 3) return tune::Decision::stop("it has done three steps");
    return tune::Decision::go_on({"training_iteration", 3});
  }
  void end_trial(tune::TrialNumber, tune::TrialEnd, const tune::Reported*) override {}
  std::vector<std::string> status_lines() const override { return {"three steps"}; }
  std::string save() const override { return tune::encoded(std::string("three steps")); }
  void restore(std::string_view state) override {
    if (tune::decoded<std::string>(state) == "three steps") return;
    throw tune::Error(tune::ErrorCode::kProtocol, "not a state of ThreeSteps");
  }

 private:
  tune::Objective objective_;
};

TEST_CASE("three steps keeps the contract") {
  tune::testing::check_scheduler(tune::scheduler<ThreeSteps>());
}

TEST_CASE("grid search keeps the contract") {
  tune::testing::check_searcher([] { return tune::basic_variant().make(); },
                                {.space = {{"x", tune::grid_search({1, 2, 3})}},
                                 .num_samples = 2,
                                 .objective = {"loss", tune::Mode::kMin, 1}});
}

}  // namespace
