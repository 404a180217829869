// Results as a file logger would keep them: files that stay when the driver dies, written at a
// flush, cut on resume to the lengths that the snapshot knows. Checks while it writes that each
// trial's results are 1, 2, 3 ... with the values that its trainable makes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/learning_curve.h"
#include "tune/results/logger.h"

namespace tune::simulator {

// The state told by each result, in order of iteration, by trial.
using ResultFiles = std::map<TrialNumber, std::vector<std::uint64_t>>;

class SimulatedLogger : public Logger {
 public:
  explicit SimulatedLogger(ResultFiles& files) : files_(&files) {}

  void record(const Record& record, const Telling& telling) override;
  void flush() override;
  std::future<std::string> save() override;
  void restore(std::string_view state) override;

  // The content of the files after a flush.
  const ResultFiles& results() const { return results_; }

  // The files belong to another driver now: this one writes to files of its own. (A driver that was
  // stopped within a turn may write that turn's lines when another has written them already: they
  // may stand twice in a folder that two nodes share. That is accepted.)
  void leave_files() { files_ = &own_files_; }

 private:
  void on(const ResultRecorded& recorded);
  void on(const ResultsCut& cut);
  void on(const TrialReplaced& replaced);

  // The state that a trial goes on from after that iteration, of another trial's checkpoint.
  struct Base {
    std::uint64_t iteration = 0;
    std::uint64_t state = 0;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.iteration, s.state);
    }
  };
  std::uint64_t state_before(TrialNumber trial, const std::vector<std::uint64_t>& results) const;

  ResultFiles* files_;
  ResultFiles own_files_;
  ResultFiles results_;
  std::map<TrialNumber, Base> bases_;  // the newest of each trial
};

}  // namespace tune::simulator
