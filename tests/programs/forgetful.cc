// A plugin whose trainable has neither save nor load.
#include "trainables/registry.h"

namespace {

class Forgetful : public tune::Trainable {
 public:
  void setup(const tune::Config&) override {}
  tune::Result step() override { return {{"mean_accuracy", 0.5}}; }
};

}  // namespace

TUNE_TRAINABLE(Forgetful)
