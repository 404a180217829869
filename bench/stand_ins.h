// Stand-ins for many machines: agents without processes, all in this program, each with its own
// encrypted connection over loopback to a real driver, and with trials that only report. For
// benchmarks of a driver under more machines than there are.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/child.h"
#include "core/platform/join_keys.h"
#include "core/platform/transport.h"

namespace tune::bench {

std::chrono::nanoseconds now();
[[noreturn]] void fail(const std::string& why);

struct StandInTrials {
  std::chrono::nanoseconds report_every{};  // 0: a trial ends with its first report
  int at_once = 1;                          // on each machine
};

class StandIn {
 public:
  StandIn(const JoinToken& token, int number, StandInTrials trials);

  int descriptor() const { return endpoint_.descriptor(); }
  // Hears the driver, and reports what is due.
  void turn();
  // Until it is ready the driver gives it no trial.
  void be_ready();
  // From now on each trial makes so many further reports.
  void report(std::uint64_t count);
  void stop_reporting() { left_ = 0; }

  bool is_set_up() const { return kept_by_ > 0; }
  bool runs() const { return !live_.empty(); }
  std::uint64_t kept_by() const { return kept_by_; }  // the epoch of the driver that knows it
  std::uint64_t reported() const { return reported_; }
  int launches() const { return launches_; }
  int ended() const { return ended_; }
  int given_up() const { return given_up_; }  // attempts that were not to be kept
  bool has_reported_all() const { return left_ == 0 && has_told_all(); }
  bool has_told_all() const { return endpoint_.unacknowledged_bytes() == 0; }

 private:
  void greet(std::uint64_t epoch);
  void on(const Apart<SetupExperiment>& setup);
  void on(const Launch& launch);
  void on(const StopAttempt& stop);
  void on(const Shutdown&) { endpoint_.send(NodeOut{"", true}); }
  template <class Other>
  void on(const Other&) {}
  void report_once(LiveAttempt& live, bool is_last);
  void end(const LiveAttempt& live, Outcome outcome);

  AgentEndpoint endpoint_;
  std::string name_;
  StandInTrials trials_;
  std::string trainable_;
  std::vector<LiveAttempt> live_;
  std::uint64_t epoch_ = 0;
  std::uint64_t kept_by_ = 0;
  std::uint64_t reported_ = 0;
  std::uint64_t left_ = UINT64_MAX;  // reports of each trial
  std::chrono::nanoseconds report_at_{};
  int launches_ = 0;
  int ended_ = 0;
  int given_up_ = 0;
};

class StandIns {
 public:
  StandIns(const JoinToken& token, int count, StandInTrials trials);

  // Runs all of them until `holds` of each one; fails after two minutes.
  void run_until(const std::string& what, const std::function<bool(const StandIn&)>& holds);
  void run_until(const std::string& what, const std::function<bool()>& holds);
  void run_for(std::chrono::nanoseconds time);
  const std::vector<std::unique_ptr<StandIn>>& all() const { return all_; }

 private:
  void turn();

  StandInTrials trials_;
  std::vector<std::unique_ptr<StandIn>> all_;
  std::chrono::nanoseconds looked_{};
};

// tune run of a sweep that only such machines can run trials of: the driver's own is too small.
class ListeningSweep {
 public:
  struct Wanted {
    int trials = 1;
    int iterations = 1000000;
  };
  ListeningSweep(const std::filesystem::path& storage, Wanted wanted);

  JoinToken token() const;
  Child& driver() { return driver_; }
  void resume();  // after the end of its driver
  // Tells the driver to end, and waits for it.
  void end(StandIns& machines);
  void run_out(StandIns& machines);  // the same without a word
  std::uint64_t results() const;     // in its folder

 private:
  std::filesystem::path storage_;
  Child driver_;
};

// A connection each, and what belongs to it.
void allow_many_files();

}  // namespace tune::bench
