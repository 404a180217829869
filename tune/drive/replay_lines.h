// ReplayLines: the lines of events.jsonl as a replay makes them, beside those in the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

class ReplayLines {
 public:
  // The file may be missing or end early, unless `is_over`.
  ReplayLines(std::filesystem::path file, bool is_over);

  struct Mismatch {
    std::string what;  // "the line of trial 2f1e0_00003: verdict"
    std::string journaled;
    std::string replayed;
  };
  // Goes on from this place of the file.
  void begin_at(std::uint64_t byte);
  // Compares whole lines with the next ones of the file.
  std::optional<Mismatch> compare(std::string_view lines);
  // Whether the file has more lines than there should be.
  std::optional<Mismatch> rest();

  std::uint64_t compared() const { return compared_; }
  std::uint64_t of(const std::string& event) const;  // how many of these were compared

 private:
  std::optional<Mismatch> compare_line(const std::string& line);
  bool next(std::string& line);
  bool has_any(const std::string& event);

  std::filesystem::path file_;
  bool is_over_;
  std::ifstream in_;
  std::optional<std::string> ahead_;  // read, and not compared yet
  bool is_at_end_ = false;
  std::uint64_t compared_ = 0;
  std::map<std::string, std::uint64_t> events_;  // how many were compared
  std::map<std::string, bool> has_;              // what has_any found
};

}  // namespace tune
