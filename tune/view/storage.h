// Storage: the experiments of a folder, opened when they are asked for. One thread uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tune/view/experiment.h"

namespace tune::view {

inline constexpr std::size_t kMaxOpenExperiments = 32;
inline constexpr std::size_t kMaxListed = 10'000;

class Storage {
 public:
  using Clock = Experiment::Clock;

  // An experiment's folder, or one that holds such folders. Throws Error (kBadInput) when it is
  // neither, or the one experiment cannot be read.
  explicit Storage(std::filesystem::path directory);

  const std::filesystem::path& directory() const { return directory_; }
  bool is_one_experiment() const { return is_one_; }
  // Newest first; looked at anew at most once a second.
  const std::vector<ExperimentHead>& list(Clock::time_point now);
  // Null when there is none of this key, or it cannot be read. Not loaded yet, at first.
  Experiment* open(std::string_view key, Clock::time_point now);
  // Opens all that run, as far as there is room: for those who ask without a page.
  void open_running(Clock::time_point now);

  // Loads what was opened, until then; true when there is more to load.
  bool load(Clock::time_point until);
  // Looks for what is new; the keys of experiments with changes.
  std::vector<std::string> poll(Clock::time_point now);
  std::uint64_t change() const { return change_; }
  const auto& opened() const { return opened_; }

 private:
  struct Opened {
    std::unique_ptr<Experiment> experiment;
    Clock::time_point asked;  // last
    Clock::time_point polled{};
  };
  void make_room();

  std::filesystem::path directory_;
  bool is_one_ = false;
  std::uint64_t change_ = 0;
  std::vector<ExperimentHead> heads_;
  Clock::time_point listed_{};
  std::map<std::string, Opened, std::less<>> opened_;
};

}  // namespace tune::view
