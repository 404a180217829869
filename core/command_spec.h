// The program that runs as the trials of a sweep: its words, where its reports are read, and what
// happens when a trial goes on. Said in YAML (tune/spec/command_options.h), carried out by
// trainables/command. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/value.h"

namespace tune {

// Where the reports of a program are read.
enum class ReportSource : std::uint8_t {
  kAuto,           // the descriptor TUNE_FD, and lines `tune: {...}` of standard output
  kDescriptor,     // TUNE_FD alone
  kOutputJson,     // lines of standard output that are JSON objects
  kOutputPattern,  // lines of standard output that a regular expression matches
  kFile,           // a file in the trial's folder that grows, a JSON object a line
};

// The state that a trial begins with when it is started again.
enum class CommandRestart : std::uint8_t {
  kNever,           // it cannot go on: nothing pauses it, a failed one begins at step 1
  kFromScratch,     // the program begins anew; the reports that are known already are skipped
  kFromCheckpoint,  // the program saves and loads: `hello 1 save`
};

struct CommandSpec {
  std::vector<std::string> words;  // with placeholders, see core/command_words.h; empty: no command
  std::string program;             // what ${program} stands for; empty: nothing
  ReportSource report = ReportSource::kAuto;
  std::string report_text;  // the regular expression, or the file's path in the trial's folder
  CommandRestart restart = CommandRestart::kNever;

  bool is_given() const { return !words.empty(); }
  bool reads_output() const;      // standard output is read for reports
  bool reads_descriptor() const;  // the program has TUNE_FD
};

// As YAML has it: "auto", "fd", {stdout: json}, {file: metrics.jsonl}.
Value report_value(const CommandSpec& command);
// The value of `report` taken apart. Throws Error (kBadInput) that says what was expected.
void read_report(const Value& value, CommandSpec& command);
// "from_scratch", "from_checkpoint", or nothing known by that name.
bool read_restart(const std::string& word, CommandSpec& command);

// The keys of a sweep: {command: [...], program: ..., report: ..., restart: ...}.
Value to_value(const CommandSpec& command);
CommandSpec command_from_value(const Value& value);  // Error (kBadInput)

// The name of the trainable: of the script or program, without folders and ending.
std::string command_name(const CommandSpec& command);

// All that the process which starts the program is told of the sweep.
struct CommandSettings {
  CommandSpec command;
  std::string name;    // of the trainable
  double grace_s = 0;  // from SIGTERM to SIGKILL; 0: any time
  std::map<std::string, std::string> places = {};  // of the keys: {"command", "sweep.yaml:2"}
};
std::string to_text(const CommandSettings& settings);
CommandSettings settings_from_text(const std::string& text);  // Error (kBadInput)

}  // namespace tune
