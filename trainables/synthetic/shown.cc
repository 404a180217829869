// Shown: writes for TensorBoard at every step: a number for each of ten batches, an image, a
// histogram and a text. Its result is {"value": steps}.
#include <cstdint>
#include <string>
#include <vector>

#include "trainables/registry.h"
#include "trainables/synthetic/state_file.h"
#include "trainables/tensorboard_writer.h"

namespace tune::synthetic {
namespace {

class Shown : public Trainable {
 public:
  void setup(const Config&) override {}

  Result step() override {
    ++steps_;
    TensorBoardWriter& writer = context().writer();
    for (std::uint64_t batch = 10 * (steps_ - 1) + 1; batch <= 10 * steps_; ++batch) {
      writer.scalar("batch/loss", 1.0 / static_cast<double>(batch), batch);
    }
    const std::uint64_t step = 10 * steps_;
    std::vector<std::uint8_t> pixels;  // red grows to the right, green downwards
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 32; ++x) {
        pixels.insert(pixels.end(),
                      {static_cast<std::uint8_t>(8 * x), static_cast<std::uint8_t>(16 * y), 40});
      }
    }
    writer.image("picture", {.width = 32, .height = 16, .channels = 3, .pixels = pixels}, step);
    std::vector<double> weights;
    for (int i = -50; i <= 50; ++i) weights.push_back(0.1 * i * static_cast<double>(steps_));
    writer.histogram("weights", weights, step);
    writer.text("note", "step **" + std::to_string(steps_) + "**", step);
    return {{"value", steps_}};
  }

  void save(const std::filesystem::path& directory) override {
    write_state(directory, {{"steps", steps_}});
  }
  void load(const std::filesystem::path& directory) override {
    steps_ = read_state(directory).get<std::uint64_t>("steps");
  }

 private:
  std::uint64_t steps_ = 0;
};

}  // namespace

TUNE_TRAINABLE(Shown)

}  // namespace tune::synthetic
