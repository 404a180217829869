// Trials that use nothing of LibTorch, in a plugin and in a program that are linked with it.
#include <tune/tune.h>

namespace {

class Counts : public tune::Trainable {
  void setup(const tune::Config&) override {}
  tune::Result step() override { return {{"steps", ++steps_}}; }

  int steps_ = 0;
};
TUNE_TRAINABLE(Counts)

}  // namespace

int main(int argc, char** argv) {
  tune::run<Counts>(tune::options_from_args(argc, argv,
                                            {.config = {{"x", tune::grid_search({1, 2, 3})}},
                                             .metric = "steps",
                                             .stop = {{"training_iteration", 2}},
                                             .resources_per_trial = {.cpu = 1, .gpu = 1}}));
}
