// A plugin whose trainable has neither save nor load, and that may take its time to be loaded.
#include <unistd.h>

#include <cstdlib>

#include "trainables/registry.h"

namespace {

const bool is_loaded = [] {
  const char* pause_ms = std::getenv("FORGETFUL_LOAD_MS");
  if (pause_ms != nullptr) usleep(1000 * static_cast<unsigned>(std::atoi(pause_ms)));
  return true;
}();

class Forgetful : public tune::Trainable {
 public:
  void setup(const tune::Config&) override {}
  tune::Result step() override { return {{"mean_accuracy", 0.5}}; }
};

}  // namespace

TUNE_TRAINABLE(Forgetful)
