// FileLogger: one folder a trial with params.json, result.json, progress.csv and error.txt. The
// journal is the truth: told the journal again, from its beginning or from the state of save(), the
// logger makes the same bytes of the files (but for the time zone of `date`). Nothing is written
// before flush(). stdout, stderr and checkpoints belong to others.
//
// It stays in the driver's loop and only copies the records; the text is made and written beside
// the loop (trial_log.h).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/side_work.h"
#include "tune/results/logger.h"
#include "tune/results/trial_log.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class FileLogger : public Logger {
 public:
  // The experiment's folder exists.
  FileLogger(std::filesystem::path directory, const ExperimentSpec& spec, SideWork& work);
  ~FileLogger() override { work_.stop(); }

  void record(const Record& record, const Telling& telling) override;
  void flush() override;
  std::future<std::string> save() override;
  void restore(std::string_view state) override;

  std::filesystem::path trial_directory(TrialNumber trial) const;

 private:
  void on(const TrialAdded& added, WallTime wall);
  void on(const ResultRecorded& recorded, WallTime wall);
  void on(const ResultsCut& cut, WallTime wall);
  void on(const TrialChanged& changed, WallTime wall);
  void on(const AttemptFailed& failed, WallTime wall);
  void on(const TrialReplaced& replaced, WallTime wall);
  void on(const NodeJoined& joined, WallTime wall);
  template <class Other>
  void on(const Other&, WallTime) {}  // of no trial's files

  template <class One>
  void add(One logged, std::size_t bytes) {
    waiting_.emplace_back(std::in_place_type<One>, std::move(logged));
    waiting_bytes_ += sizeof(Logged) + bytes;
  }

  SideWork& work_;
  TrialLog log_;  // the work's, once there was a flush
  std::map<AgentNumber, std::shared_ptr<const std::string>> hostnames_;
  std::vector<bool> started_;    // by trial: the log knows its tag
  std::vector<Logged> waiting_;  // for the next flush
  std::size_t waiting_bytes_ = 0;
};

}  // namespace tune
