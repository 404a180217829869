// Searches the highest point of a hill with a scheduler and a searcher of the program's own.
//
//   own_search [options of tune::options_from_args, such as --num-samples 40]
#include <tune/tune.h>

#include <iostream>

#include "hill_climbing.h"
#include "median_stopping.h"

namespace {

// Stands for a model: the nearer x is to 1, the higher it climbs with each step.
class Hill : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override { x_ = config.get<double>("x"); }
  tune::Result step() override {
    ++steps_;
    return {{"height", steps_ - (x_ - 1) * (x_ - 1)}};
  }

 private:
  double x_ = 0;
  int steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const tune::Analysis analysis =
      tune::run<Hill>(tune::options_from_args(argc, argv,
                                              {.num_samples = 20,
                                               .metric = "height",
                                               .scheduler = tune::scheduler<MedianStopping>(3),
                                               .stop = {{"training_iteration", 8}},
                                               .searcher = tune::searcher<HillClimbing>(0.0)}));
  std::cout << "Best config is: " << analysis.best_config().dump() << "\n";
}
