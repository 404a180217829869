// Experiment: one experiment as its files tell, followed while it runs. Reads only; takes no lock;
// never speaks to the driver. Reading a hundred thousand trials takes seconds: it is done in
// slices. One thread uses it at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tune/results/experiment_head.h"
#include "tune/results/tail.h"
#include "tune/view/history.h"
#include "tune/view/trial_table.h"

namespace tune::view {

class Experiment {
 public:
  using Clock = std::chrono::steady_clock;

  // `change` is the server's count of changes, which this raises with each of its own.
  Experiment(ExperimentHead head, std::uint64_t& change);

  // Reads on until `until`; true once all is read.
  bool load_some(Clock::time_point until);
  bool is_loaded() const { return is_loaded_; }
  double loaded_share() const;  // 0 to 1
  // Looks for what is new, and reads some megabytes of it; true when there was something.
  bool poll(Clock::time_point now);
  bool is_behind() const { return is_behind_; }  // the last look has left something unread

  const ExperimentHead& head() const { return head_; }
  const TrialTable& trials() const { return trials_; }
  const History& history() const { return history_; }
  const std::string& state() const { return state_; }
  bool is_live() const { return state_ == "running"; }
  std::uint64_t change() const { return change_; }             // its newest
  const std::string& id_prefix() const { return id_prefix_; }  // "2f1e0_"
  std::filesystem::path trial_directory(std::size_t row) const;
  std::string trial_id(std::size_t row) const;
  const std::vector<std::string>& problems() const { return problems_; }  // the first few
  // The row with the best value of the metric, by the best or by the last value of each trial.
  enum class By { kBest, kLast };
  std::optional<std::size_t> best_row(By by) const;
  double value_of(std::size_t row, By by) const;  // NaN: none

 private:
  struct Following {
    TailSeen results;
    Clock::time_point hot_until{};  // looked at until then though it does not run
    Clock::duration pause{};        // not 0: it could not be read, and is read anew
    Clock::time_point again_at{};
  };

  void list_trials();
  bool read_events(std::size_t budget);
  void take_event(std::string_view line);
  void apply_story(std::uint32_t number);
  std::size_t add_trial(std::uint32_t number);
  void read_config(std::size_t row);
  bool read_results(std::size_t row, std::size_t budget = SIZE_MAX);
  void read_hot_trials(Clock::time_point now);
  void read_anew(std::size_t row);
  void put_off(std::size_t row, const std::string& why);
  void statuses_without_events();
  void look_for_new_trials();
  void refresh_state(Clock::time_point now);
  void complain(const std::string& what);
  std::uint64_t mark();  // the number of the change that is being read

  ExperimentHead head_;
  std::uint64_t& counter_;
  std::uint64_t change_ = 0;
  bool is_changed_ = false;  // in this turn
  std::string state_;
  Clock::time_point state_at_{};
  std::string id_prefix_;
  TrialTable trials_;
  History history_;
  TailSeen events_;
  std::vector<Following> following_;    // by row
  std::vector<std::uint32_t> numbers_;  // found when loading began
  std::size_t next_ = 0;                // of numbers_ to be read
  bool is_listed_ = false;
  bool are_events_read_ = false;
  bool is_loaded_ = false;
  Clock::time_point now_{};
  std::map<std::size_t, bool> hot_;  // rows to be looked at in each poll
  std::size_t next_hot_ = 0;         // from this one on
  bool is_behind_ = false;
  std::vector<std::string> problems_;
};

}  // namespace tune::view
