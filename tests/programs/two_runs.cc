// Two sweeps in one program; the second searches around the best configuration of the first.
#include <tune/tune.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace {

class Parabola : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    x_ = config.get<double>("x");
    centre_ = config.get_or("centre", 0.7);
  }
  tune::Result step() override { return {{"score", -(x_ - centre_) * (x_ - centre_)}}; }

 private:
  double x_ = 0;
  double centre_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  std::puts("before the first run");
  const tune::RunOptions options = tune::options_from_args(argc, argv, {
      .num_samples = 4,
      .metric = "score",
      .stop = {{"training_iteration", 2}},
      .seed = 3,
  });
  tune::RunOptions first = options;
  first.name = "first";
  first.config = {{"x", tune::uniform(0, 1)}};
  const tune::Analysis coarse = tune::run<Parabola>(first);
  const double best = coarse.best_config().get<double>("x");

  tune::RunOptions second = options;
  second.name = "second";
  second.config = {{"x", tune::uniform(best - 0.05, best + 0.05)}, {"centre", 0.7}};
  // A captured variable: workers fork from the program as it stands.
  const tune::Analysis fine = tune::run(
      [best](const tune::Config& config, tune::Session& session) {
        const double x = config.get<double>("x");
        const char* pause_ms = std::getenv("TWO_RUNS_PAUSE_MS");
        for (int i = 0; i < 3; ++i) {
          if (pause_ms != nullptr) usleep(1000 * static_cast<unsigned>(std::atoi(pause_ms)));
          if (!session.report({{"score", -(x - 0.7) * (x - 0.7)}, {"around", best}})) return;
        }
      },
      second);
  std::cout << "around " << fine.best_result().get<double>("around") << " best was " << best << "\n"
            << "Best config is: " << fine.best_config().dump() << "\n";
}
