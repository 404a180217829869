// The READMEs' C++ blocks that need no LibTorch, with what their readers have of their own.
#include "the_first_program_1.inc"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

struct Data {};

void from_a_program(const Data& data) {
  struct Model {
    Model(const Data&, double) {}
    double train() { return 0; }
  };
#include "tune/from_a_program_1.inc"
}

void conditions_and_constraints() {
#include "tune/conditions_and_constraints_1.inc"
}

void several_objectives() {
#include "tune/several_objectives_1.inc"
}

void results() {
#include "tune/results_1.inc"
}

double train(const Data&, int) {
  return 0;
}
std::string summary() {
  return {};
}
void ranks_of_any_program(const Data& data) {
#include "tune/ranks_of_any_program_1.inc"
}

class Shows : public tune::Trainable {
  void setup(const tune::Config&) override {}
  tune::Result step() override {
    const double loss = 0.5;
    const std::vector<float> weights(10);
    const std::vector<std::uint8_t> bytes(28 * 28);
    const std::uint64_t batch = context().iteration();
#include "trainables/opening_1.inc"
    return {{"loss", loss}};
  }
};

#include "schedulers/writing_a_scheduler_1.inc"
#include "tune/export/callbacks_1.inc"
#include "tune/writing_a_searcher_1.inc"

}  // namespace

// So that they count as used.
void readme_snippets() {
  const Data data;
  from_a_program(data);
  conditions_and_constraints();
  several_objectives();
  results();
  ranks_of_any_program(data);
  tune::scheduler<MedianStopping>(3);
  tune::searcher<HillClimbing>(0.0);
  std::make_shared<Notes>();
  std::make_shared<Shows>();
}
