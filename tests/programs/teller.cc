// A plugin whose results are large, so that a journal of a few of them has a snapshot.
//
//   bytes     20480   of text in each result
//   fail_at   0       the step at which each attempt ends by an exception; 0: none
//   step_ms   0       how long a step takes
//   gate      ""      a file that step 15 waits for
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/ids.h"
#include "trainables/registry.h"

namespace {

namespace fs = std::filesystem;

class Teller : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override {
    text_.assign(config.get_or("bytes", std::size_t{20480}), 't');
    fail_at_ = config.get_or("fail_at", std::uint64_t{0});
    step_time_ = std::chrono::milliseconds(config.get_or("step_ms", 0));
    gate_ = config.get_or("gate", std::string());
  }
  tune::Result step() override {
    std::this_thread::sleep_for(step_time_);
    while (!gate_.empty() && count_ == kGate - 1 && !fs::exists(gate_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (++count_ == fail_at_) throw std::runtime_error("told to fail");
    return {{"count", count_}, {"text", text_}};
  }
  void save(const fs::path& directory) override { std::ofstream(directory / own_file()) << count_; }
  void load(const fs::path& directory) override { std::ifstream(directory / own_file()) >> count_; }

 private:
  static constexpr std::uint64_t kGate = 15;
  std::string own_file() const { return "rank-" + std::to_string(context().rank()); }

  std::string text_;
  std::uint64_t fail_at_ = 0;
  std::chrono::milliseconds step_time_{};
  fs::path gate_;
  std::uint64_t count_ = 0;
};

}  // namespace

TUNE_TRAINABLE(Teller)
