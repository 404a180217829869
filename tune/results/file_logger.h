// FileLogger: one folder a trial with params.json, result.json, progress.csv and error.txt. The
// journal is the truth: told it again, from its beginning or from what save() knew, the logger makes
// the same bytes of the files again (but for the zone that `date` is told in). Nothing is written
// before flush(). stdout, stderr and checkpoints belong to others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tune/results/logger.h"
#include "tune/results/result_text.h"
#include "tune/results/trial_files.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class FileLogger : public Logger {
 public:
  // The experiment's folder is there.
  FileLogger(std::filesystem::path directory, const ExperimentSpec& spec);

  void record(const Record& record, WallTime wall) override;
  void flush() override;
  std::string save() override;
  void restore(std::string_view state) override;

  std::filesystem::path trial_directory(TrialNumber trial) const;

 private:
  // What is known of a trial's files, also when it is not open.
  struct Kept {
    FileLengths lengths;
    std::uint64_t error_bytes = 0;      // of error.txt
    bool may_hold_more = false;         // of an earlier driver: result.json and progress.csv,
    bool error_may_hold_more = false;   // error.txt
    template <class Self, class F>
    static void fields(Self& s, F& f) { f(s.lengths, s.error_bytes); }
  };
  struct Open {  // a trial with results of late
    explicit Open(TrialFiles files) : files(std::move(files)) {}
    TrialFiles files;
    std::string id;
    std::string tag;
    bool dirty = false;
    std::optional<std::list<Open*>::iterator> place;  // in used_
  };

  void on(const TrialAdded& added, WallTime wall);
  void on(const ResultRecorded& recorded, WallTime wall);
  void on(const ResultsCut& cut, WallTime wall);
  void on(const TrialChanged& changed, WallTime wall);
  void on(const AttemptFailed& failed, WallTime wall);
  void on(const NodeJoined& joined, WallTime wall);
  template <class Other>
  void on(const Other&, WallTime) {}  // of no trial's files

  Open& open(const Trial& trial);
  Kept& kept(TrialNumber trial);
  void flush(TrialNumber number, Open& open);
  void mark_dirty(TrialNumber number, Open& open);
  void use(Open& trial);
  void add_fields(const ResultRecorded& recorded, const Open& trial, WallTime wall);
  const std::string& date(std::int64_t second);
  std::string tag_of(const Trial& trial) const;

  std::filesystem::path directory_;
  std::string experiment_;
  std::vector<std::string> searched_;  // key paths

  std::map<AgentNumber, std::string> hostnames_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Open>> open_;  // by trial; never iterated
  std::list<Open*> used_;                        // those with descriptors, the last used first
  std::vector<TrialNumber> dirty_;               // with results to write
  std::vector<TrialNumber> ended_;               // no longer running: to be closed
  std::vector<Kept> kept_;                       // by trial

  ResultText text_;
  std::int64_t date_second_ = -1;
  std::string date_;
};

}  // namespace tune
