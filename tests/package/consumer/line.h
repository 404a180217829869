#pragma once

#include <tune/tune.h>

// Rises by `slope` with each step.
class Line : public tune::Trainable {
 public:
  void setup(const tune::Config& config) override { slope_ = config.get<double>("slope"); }
  tune::Result step() override { return {{"height", height_ += slope_}}; }

 private:
  double slope_ = 0;
  double height_ = 0;
};
