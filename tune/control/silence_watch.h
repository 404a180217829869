// SilenceWatch: notices a trial that has reported nothing for much longer than its steps take. It
// only warns: hang_timeout_s ends such a trial. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/ids.h"
#include "tune/control/events.h"

namespace tune {

class SilenceWatch {
 public:
  static constexpr int kUsualSteps = 40;
  static constexpr Duration kShortest = std::chrono::minutes(1);  // shorter silences are not news

  explicit SilenceWatch(std::string experiment_id) : experiment_(std::move(experiment_id)) {}

  // Told as it happens, not when it is replayed.
  void record(const Record& record, ExperimentTime now);
  // The warnings to show now, once for each attempt: a trial that runs, has reported in this
  // attempt and has no verdict to carry out is silent for kUsualSteps of its mean step. There is
  // none before its first report: the length of a set-up is unknown. Called every second or so; the
  // time of a much longer gap was not the trials' own, but that of a driver that stood still. Nor
  // is that of a silent store, without which none gets a verdict: nothing is said then.
  std::vector<std::string> look(ExperimentTime now, bool store_is_silent);

 private:
  struct Heard {
    ExperimentTime at{};
    Duration usual_step{};
    bool is_told = false;
  };
  std::string experiment_;
  std::map<TrialNumber, Heard> heard_;  // of those that run
  std::optional<ExperimentTime> last_look_;
};

}  // namespace tune
