// Stands for a GPU's recording: the work is done when it is played, and not when it is recorded.
#pragma once

#include <functional>

#include "trainables/torch/step_graph.h"

namespace tune::testing {

class PlayedAgain : public DeviceGraph {
 public:
  void beside(const std::function<void()>& work) override { work(); }
  void record(const std::function<void()>& work) override {
    ++records_;
    work_ = work;
  }
  void replay() override {
    ++replays_;
    work_();
  }
  int records() const { return records_; }
  int replays() const { return replays_; }

 private:
  std::function<void()> work_;
  int records_ = 0, replays_ = 0;
};

}  // namespace tune::testing
