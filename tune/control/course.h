// Course: how far the experiment as a whole has come, why it cannot go on, and the warnings that it
// has shown, each of them once. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "core/wire.h"
#include "tune/control/outbox.h"

namespace tune {

enum class Phase : std::uint8_t {
  kRunning,
  kEnding,        // no more launches; running trials are being stopped (budget, fail_fast)
  kInterrupting,  // the same, but trials are paused to go on later
  kFinished,      // every trial is over
  kInterrupted,   // nothing runs; the journal can be resumed. failure() has a cause in the nodes
  kFailed,        // cannot go on: see failure()
  kLast = kFailed,
};

class Course {
 public:
  // `out` outlives it.
  explicit Course(const Outbox& out) : out_(&out) {}

  Phase phase() const { return phase_; }
  bool is_running() const { return phase_ == Phase::kRunning; }
  bool is_over() const {
    return phase_ == Phase::kFinished || phase_ == Phase::kInterrupted || phase_ == Phase::kFailed;
  }
  const std::string& failure() const { return failure_; }

  // Under a new driver.
  void go_on();
  // kEnding or kInterrupting: it is over when nothing runs any more.
  void wind_down(Phase phase) { phase_ = phase; }
  void end(Phase phase);
  void end(Phase phase, std::string why);
  // It cannot go on. One that is over stays what it is.
  void fail(std::string why);

  // Many trials may say the same: it is shown once.
  void warn(const std::string& text);

  void save(PackWriter& out) const;
  void restore(PackReader& in);
  void save_warnings(PackWriter& out) const;
  void restore_warnings(PackReader& in);

 private:
  const Outbox* out_;
  Phase phase_ = Phase::kRunning;
  std::string failure_;
  std::set<std::string> warnings_;  // that were shown
};

}  // namespace tune
