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
#include "tune/results/event_text.h"
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
  // The file's length when save() gave this. Throws as restore().
  static std::uint64_t bytes_in(std::string_view state);

 private:
  std::filesystem::path file_;
  SideWork& work_;
  AppendFile out_;  // the work's
  bool is_begun_ = false;
  std::uint64_t bytes_ = 0;  // of the lines up to the last flush
  EventText lines_;          // since then
};

}  // namespace tune
