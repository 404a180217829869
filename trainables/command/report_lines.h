// The meaning of a program's lines: reports, and on TUNE_FD the words of the contract
// (trainables/command/README.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/command_spec.h"
#include "core/line_pattern.h"
#include "core/value.h"
#include "trainables/command/line_buffer.h"

namespace tune {

// The version of the contract between tune and a program.
inline constexpr std::uint32_t kCommandContract = 1;

// ---- Words of a program on TUNE_FD --------------------------------------------------------------

// It reads an answer to each report; with `saves` it can save and load.
struct Hello {
  bool saves = false;
};
struct Saved {};
struct SaveFailed {
  std::string why;
};
using ProgramWord = std::variant<Result, Hello, Saved, SaveFailed>;

class ReportLines {
 public:
  // Throws Error (kBadInput): a regular expression that is none.
  explicit ReportLines(const CommandSpec& command);

  // The report in a line of standard output. Throws Error (kBadInput) for one that is broken; a
  // line that is not meant as a report is none. `number` counts the lines from 1.
  std::optional<Result> of_output(const Line& line, std::size_t number) const;
  // Throws Error (kBadInput) when the beginning of a line that is already too long can only be that
  // of a report. An expression may still match what the line's end brings.
  void refuse_too_long(const Line& line, std::size_t number) const;
  // Throws Error (kBadInput) for anything that the contract does not know.
  ProgramWord of_descriptor(const Line& line, std::size_t number) const;
  // A line of the file; nothing: it is empty.
  std::optional<Result> of_file(const Line& line, std::size_t number) const;

  // The way for a program to have its reports found; for one that ended without any.
  std::string how_to_report() const;

 private:
  std::optional<Result> matched(const Line& line) const;

  ReportSource source_;
  std::string text_;  // the expression, or the file
  std::optional<LinePattern> pattern_;
};

}  // namespace tune
