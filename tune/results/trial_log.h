// TrialLog: the files of all trials, params.json, result.json, progress.csv and error.txt, written
// beside the driver's loop. FileLogger (file_logger.h), which stays in the loop, hands it plain
// values. One thread uses it at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/trial.h"
#include "tune/results/result_fields.h"
#include "tune/results/trial_files.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// A record with all that the files need of it.
struct LoggedTrial {  // a new one
  TrialNumber trial;
  Packed config;
};
struct LoggedConfig {  // the trial goes on with another one
  TrialNumber trial;
  Packed config;
};
struct LoggedStart {  // results of it may follow, up to its rest
  TrialNumber trial;
  Packed config;
};
struct LoggedRest {  // it does not run any more
  TrialNumber trial;
};
struct LoggedResult {
  Reported report;
  bool done;
  WallTime wall;
  std::shared_ptr<const std::string> hostname;  // null: unknown
  std::string location;
};
struct LoggedCut {
  TrialNumber trial;
  std::uint64_t iteration;
};
struct LoggedFailure {
  TrialNumber trial;
  Failure failure;
  bool retried;
  WallTime wall;
};
using Logged = std::variant<LoggedTrial, LoggedStart, LoggedRest, LoggedResult, LoggedCut,
                            LoggedFailure, LoggedConfig>;

// Every member throws Error (kIo) when the disk refuses; earlier writes stay.
class TrialLog {
 public:
  // The experiment's folder exists.
  TrialLog(std::filesystem::path directory, const ExperimentSpec& spec);

  // In the order in which they were told. After restore() the first ones are all of the replay.
  void take(const std::vector<Logged>& all);
  // When it returns, all records handed over are in the files.
  void flush();

  // The lengths of the files: packed, after a flush.
  void save(PackWriter& out);
  void restore(PackReader& in);

  std::filesystem::path trial_directory(TrialNumber trial) const;

 private:
  // The state of a trial's files, also while they are not open.
  struct Kept {
    FileLengths lengths;
    std::uint64_t error_bytes = 0;     // of error.txt
    bool may_hold_more = false;        // of an earlier driver: result.json and progress.csv,
    bool error_may_hold_more = false;  // error.txt
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.lengths, s.error_bytes);
    }
  };
  struct Open {  // a trial with results of late
    explicit Open(TrialFiles files) : files(std::move(files)) {}
    TrialFiles files;
    std::string id;
    std::string tag;
    bool is_dirty = false;
    bool keeps_descriptors = false;
  };

  using LowestCuts =
      std::unordered_map<std::uint32_t, std::size_t>;  // by trial: places in a replay

  LowestCuts lowest_cuts(const std::vector<Logged>& all) const;
  static bool is_cut_away(const Logged& logged, std::size_t place, const LowestCuts& cuts);

  void on(const LoggedTrial& added);
  void on(const LoggedStart& started);
  void on(const LoggedRest& rest);
  void on(const LoggedResult& result);
  void on(const LoggedCut& cut);
  void on(const LoggedFailure& failed);
  void on(const LoggedConfig& changed);

  void write_params(TrialNumber trial, const Packed& config);
  Open& open(TrialNumber trial);
  Kept& kept(TrialNumber trial);
  void flush(TrialNumber number, Open& open);
  void mark_dirty(TrialNumber number, Open& open);

  std::filesystem::path directory_;
  std::string experiment_;
  ExperimentTags tags_;

  std::unordered_map<std::uint32_t, std::unique_ptr<Open>> open_;  // by trial; never iterated
  std::size_t keepers_ = 0;                                        // of descriptors
  std::vector<TrialNumber> dirty_;                                 // with results to write
  std::size_t dirty_bytes_ = 0;                                    // about
  std::vector<Kept> kept_;                                         // by trial
  bool is_replay_ = false;                                         // until the first take()

  ResultText text_;
  LocalDates dates_;
};

}  // namespace tune
