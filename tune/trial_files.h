// The result files of one trial, result.json and progress.csv, while it runs. What is appended is
// written by flush(). Throws Error (kIo) when the disk refuses; what was written before stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/platform/files.h"
#include "tune/columns.h"
#include "tune/result_text.h"

namespace tune {

class TrialFiles {
 public:
  // `directory` is there; files in it are gone on with.
  explicit TrialFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void append(const ResultText& result);
  void flush();                   // one write a file; opens them when they are not
  void cut(std::uint64_t lines);  // keeps the first `lines` results; appended ones count
  // Frees the descriptors; the next flush opens the files again.
  void close();

 private:
  void rebuild();  // progress.csv from result.json
  std::filesystem::path json_path() const { return directory_ / "result.json"; }
  std::filesystem::path csv_path() const { return directory_ / "progress.csv"; }

  std::filesystem::path directory_;
  AppendFile json_;
  AppendFile csv_;
  std::string json_text_;  // not yet written
  std::string csv_text_;
  std::optional<Columns> columns_;  // of progress.csv; nothing: not looked at yet
  bool csv_is_stale_ = false;       // a column is missing: rebuild instead of appending
};

}  // namespace tune
