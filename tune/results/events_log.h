// EventsLog: events.jsonl in the experiment's folder, the answer to yesterday's questions: one JSON
// object a line for every start, end, failure, verdict (but "go on"), node and notice. Its lines
// are described in tune/README.md, "Events". Told the same events again on a resume, it makes the
// same lines: lines beyond the snapshot are cut away first. Nothing is written before flush().
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/platform/files.h"
#include "core/platform/side_work.h"
#include "tune/results/logger.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class EventsLog : public Logger {
 public:
  // The experiment's folder exists.
  EventsLog(const std::filesystem::path& directory, const ExperimentSpec& spec, SideWork& work);
  ~EventsLog() override { work_.stop(); }

  void record(const Record& record, const Telling& telling) override;
  void flush() override;
  std::future<std::string> save() override;
  void restore(std::string_view state) override;

 private:
  class Line;

  template <class Other>  // results and checkpoints have files of their own
  void on(const Other&, WallTime) {}
  void on(const DriverBegan& began, WallTime wall);
  void on(const NodeJoined& joined, WallTime wall);
  void on(const NodeLeft& left, WallTime wall);
  void on(const PlaceSetAside& set_aside, WallTime wall);
  void on(const PlaceTakenBack& taken_back, WallTime wall);
  void on(const TrialProposed& proposed, WallTime wall);
  void on(const AttemptBegan& began, WallTime wall);
  void on(const VerdictGiven& given, WallTime wall);
  void on(const AttemptOver& over, WallTime wall);
  void on(const TrialReplaced& replaced, WallTime wall);
  void on(const AttemptFailed& failed, WallTime wall);
  void on(const TrialChanged& changed, WallTime wall);
  void on(const Notice& notice, WallTime wall);
  void on(const DriverNotice& notice, WallTime wall);
  void on(const ExperimentOver& over, WallTime wall);

  Line line(WallTime wall, std::string_view event);
  Line line(WallTime wall, std::string_view event, const Trial& trial);

  std::filesystem::path file_;
  std::string experiment_;
  SideWork& work_;
  AppendFile out_;  // the work's
  bool is_begun_ = false;
  std::uint64_t bytes_ = 0;  // of the lines up to the last flush
  std::string text_;         // since then
};

}  // namespace tune
