// Curve: a learning curve without learning. Its accuracy rises towards a height that is best at
// lr 0.1 and grows a little with `width`; the same configuration always gives the same curve.
//
//   lr        0.1     learning rate, > 0
//   width     64      how large the model pretends to be, >= 1
//   noise     0       standard deviation added to each accuracy, drawn from the trial's seed
//   step_ms   0       how long a step takes
//   burn      false   spend that time computing instead of sleeping
//   memory_mb 0       memory that each step walks through
//   weights_mb 0      of each checkpoint; a checkpoint whose weights are not its own is refused
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "trainables/registry.h"
#include "trainables/synthetic/state_file.h"

namespace tune::synthetic {
namespace {

class Curve : public Trainable {
 public:
  void setup(const Config& config) override {
    lr_ = config.get_or("lr", 0.1);
    width_ = config.get_or("width", 64.0);
    if (!(lr_ > 0) || !(width_ >= 1)) {
      throw Error(ErrorCode::kBadInput, "Curve needs lr > 0 and width >= 1");
    }
    noise_ = config.get_or("noise", 0.0);
    step_time_ = std::chrono::duration<double, std::milli>(config.get_or("step_ms", 0.0));
    burn_ = config.get_or("burn", false);
    memory_.resize(config.get_or("memory_mb", std::size_t{0}) << 20);
    weights_bytes_ = config.get_or("weights_mb", std::size_t{0}) << 20;
  }

  Result step() override {
    ++steps_;
    work();
    // Decades away from the best rate cost height; a smaller rate also learns more slowly.
    const double decades = std::log10(lr_ / 0.1);
    const double height =
        0.98 * std::exp(-0.35 * decades * decades) * (1 - 0.3 / std::sqrt(width_));
    const double pace = 2.0 + 20.0 / (1.0 + 50.0 * lr_);
    const double learned = 1 - std::exp(-static_cast<double>(steps_) / pace);
    double accuracy = height * learned;
    if (noise_ > 0) accuracy += noise_ * RandomStream(context().seed(), "curve", steps_).normal();
    return {{"mean_accuracy", accuracy}, {"mean_loss", -std::log(std::max(accuracy, 1e-6))}};
  }

  void save(const std::filesystem::path& directory) override {
    write_state(directory, {{"steps", steps_}});
    if (weights_bytes_ == 0) return;
    std::ofstream file(directory / "weights", std::ios::binary);
    file << weights() << std::flush;
    if (!file) throw Error(ErrorCode::kIo, "Curve: writing its weights failed");
  }
  void load(const std::filesystem::path& directory) override {
    steps_ = read_state(directory).get<std::uint64_t>("steps");
    if (weights_bytes_ == 0) return;
    std::ifstream file(directory / "weights", std::ios::binary);
    const std::string found{std::istreambuf_iterator<char>(file), {}};
    if (found != weights()) throw Error(ErrorCode::kIo, "Curve: its weights are of another step");
  }

 private:
  std::string weights() const {
    std::string text(weights_bytes_, '\0');
    RandomStream random(context().seed(), "weights", steps_);
    for (char& byte : text) byte = static_cast<char>(random.next());
    return text;
  }
  void work() {
    for (std::size_t i = 0; i < memory_.size(); i += 64) ++memory_[i];
    if (!burn_) {
      if (step_time_.count() > 0) std::this_thread::sleep_for(step_time_);
      return;
    }
    const auto end = std::chrono::steady_clock::now() + step_time_;
    volatile double sum = 0;
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 1; i < 1000; ++i) sum = sum + 1.0 / i;
    }
  }

  double lr_ = 0;
  double width_ = 0;
  double noise_ = 0;
  std::chrono::duration<double, std::milli> step_time_{};
  bool burn_ = false;
  std::vector<unsigned char> memory_;
  std::size_t weights_bytes_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace

TUNE_TRAINABLE(Curve)

}  // namespace tune::synthetic
