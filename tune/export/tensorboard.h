// TensorBoardExport: the event files of an experiment, for `tensorboard --logdir FOLDER`. Each
// trial is a run in a folder of its own, with every number it reported by iteration; the folder
// itself has the columns of the HParams table.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_file.h"
#include "core/platform/process.h"
#include "tune/export/exporter.h"
#include "tune/export/follower.h"
#include "tune/export/trial_run.h"
#include "tune/results/experiment_head.h"
#include "tune/search/search_space.h"

namespace tune {

// Of an experiment, for its event files.
inline constexpr const char* kTensorBoardFolder = "tensorboard";

class TensorBoardExport : public Exporter, private FolderListener {
 public:
  // `target` is made. Throws Error (kBadInput) when the first is not an experiment's folder or of a
  // newer tune; Error (kIo) when the target cannot be written.
  TensorBoardExport(const std::filesystem::path& experiment, std::filesystem::path target);

  // False: another process writes this target. Nothing is written then, and write_news() tries
  // again; finish() throws Error (kBadInput).
  bool has_target();

  void write_news(const std::function<bool()>& ends) override;
  void finish() override;
  std::vector<std::string> take_problems() override;

 private:
  struct Done {
    TrialStatus status = TrialStatus::kPending;
    std::uint64_t iterations = 0;
    bool operator==(const Done&) const = default;
  };
  void result(const FollowedTrial& trial, std::string_view line, const std::string& where) override;
  void trial_is_read(const FollowedTrial& trial) override;
  TrialRun& run_of(const FollowedTrial& trial, double time);
  void note_metric(std::string_view name, std::size_t place);
  std::string columns() const;
  void refresh_columns(std::chrono::steady_clock::time_point now);
  void write_columns(const std::string& content);

  std::filesystem::path experiment_;
  std::filesystem::path target_;
  FileDescriptor lock_;  // on the target; open when this process has it
  ExperimentHead head_;
  SearchSpace space_;
  Follower follower_;
  std::map<std::uint32_t, TrialRun> runs_;  // of trials that go on
  std::map<std::uint32_t, Done> done_;      // as they stand in their files
  ScalarsEvent scalars_;

  std::set<std::string, std::less<>> metrics_;
  std::vector<std::string> newest_names_;  // of the newest result, in order
  bool columns_are_old_ = true;            // those in the file lack a metric, or may
  std::chrono::steady_clock::time_point columns_are_due_{};
  std::size_t told_problems_ = 0;
};

}  // namespace tune
