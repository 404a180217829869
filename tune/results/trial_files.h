// The result files of one trial, result.json and progress.csv, while it runs. Appends and cuts take
// effect at flush(). Throws Error (kIo) when the disk refuses; earlier writes stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/platform/files.h"
#include "tune/results/columns.h"
#include "tune/results/result_text.h"

namespace tune {

// The lengths of the files up to the last record.
struct FileLengths {
  std::uint64_t lines = 0;       // results
  std::uint64_t json_bytes = 0;  // of result.json
  std::uint64_t csv_bytes = 0;   // of progress.csv
  std::uint64_t columns = 0;     // of progress.csv,
  std::uint64_t columns_at = 0;  // the last of which came with this line
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.lines, s.json_bytes, s.csv_bytes, s.columns, s.columns_at);
  }
};

class TrialFiles {
 public:
  // `directory` exists. Its files hold `lengths`; with `cut_back` they may hold more, of an earlier
  // driver, which the first flush cuts away.
  TrialFiles(std::filesystem::path directory, FileLengths lengths, bool cut_back)
      : directory_(std::move(directory)), lengths_(lengths), cut_back_(cut_back) {}

  void append(const ResultText& result);
  void cut(std::uint64_t lines);  // keeps the first `lines` results; appended ones count
  void flush();                   // one write a file; opens them when they are not
  // Frees the descriptors; the next flush opens the files again.
  void close();
  const FileLengths& lengths() const { return lengths_; }  // as of the last flush

 private:
  void load_columns();
  void cut_files();
  static void begin_at(const std::filesystem::path& file, std::uint64_t& bytes, std::string& text);
  void rebuild();  // progress.csv from result.json
  std::uint64_t lines_kept() const { return cut_to_.value_or(lengths_.lines); }
  std::filesystem::path json_path() const { return directory_ / "result.json"; }
  std::filesystem::path csv_path() const { return directory_ / "progress.csv"; }

  std::filesystem::path directory_;
  FileLengths lengths_;
  bool cut_back_;
  std::optional<std::uint64_t> cut_to_;  // lines of the files to be kept
  AppendFile json_;
  AppendFile csv_;
  std::string json_text_;            // not yet written
  std::string csv_text_;             // the same; begins with the header when the file has none
  std::uint64_t pending_lines_ = 0;  // in both
  std::optional<Columns> columns_;   // of progress.csv; nothing: not looked at yet
  bool csv_is_stale_ = false;        // a column is missing: rebuild instead of appending
};

}  // namespace tune
