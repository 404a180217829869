// Branin: the well-known test function with three equal minima (0.397887), seen through a fidelity.
// Step n shows it with an error that halves every two steps, so early comparisons can mislead.
//
//   x1  -5 .. 10
//   x2   0 .. 15
#include <cmath>
#include <numbers>

#include "trainables/registry.h"
#include "trainables/synthetic/state_file.h"

namespace tune::synthetic {
namespace {

double branin(double x1, double x2) {
  using std::numbers::pi;
  const double curve = x2 - 5.1 / (4 * pi * pi) * x1 * x1 + 5 / pi * x1 - 6;
  return curve * curve + 10 * (1 - 1 / (8 * pi)) * std::cos(x1) + 10;
}

class Branin : public Trainable {
 public:
  void setup(const Config& config) override {
    x1_ = config.get<double>("x1");
    x2_ = config.get<double>("x2");
  }

  Result step() override {
    ++steps_;
    const double error = std::exp2(-static_cast<double>(steps_) / 2);
    // At low fidelity the function is shifted: another place seems best.
    const double value = branin(x1_ - 2 * error, x2_ + 2 * error) + 5 * error;
    return {{"loss", value}, {"fidelity", 1 - error}};
  }

  void save(const std::filesystem::path& directory) override {
    write_state(directory, {{"steps", steps_}});
  }
  void load(const std::filesystem::path& directory) override {
    steps_ = read_state(directory).get<std::uint64_t>("steps");
  }

 private:
  double x1_ = 0;
  double x2_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace

TUNE_TRAINABLE(Branin)

}  // namespace tune::synthetic
