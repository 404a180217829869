// ExperimentSpec: a validated sweep, resolved to plain values. Made from YAML
// (tune/spec/yaml_spec.h), from RunOptions, or from the stored experiment.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/command_spec.h"
#include "core/contract_values.h"
#include "core/resources.h"
#include "tune/spec/run_options.h"

namespace tune {

// The program to run: a plugin's trainable, or a program's own (then the program is run again on
// resume).
struct ProgramCall {
  std::string executable;              // absolute
  std::vector<std::string> arguments;  // without argv[0]
  std::string working_directory;
  std::uint32_t call = 0;            // the number of the tune::run in the program, from 1
  std::vector<std::string> earlier;  // folders of the calls before it, absolute
};

// A Python trainable that a process of its own imports.
struct PythonCall {
  std::string target;                     // "/abs/train.py:Train" or "package.module:Train"
  std::vector<std::string> preload = {};  // modules that are imported first
  std::string interpreter = {};           // absolute, once it is found
};

struct ExperimentSpec {
  std::string name;         // folder below storage; never empty once the run begins
  bool name_given = false;  // else <trainable>_<date>
  std::string trainable;
  std::string plugin;  // absolute path; empty for a program's own trainable
  std::optional<ProgramCall> program;
  CommandSpec command = {};  // of a sweep whose trials are programs: there is no plugin then
  RunOptions options;  // as given; metric and mode also when only the scheduler has them
  std::vector<StopRule> stop;
  ResourceRequest request;
  // For a YAML sweep, to report on resume that its files have changed (their fingerprint()).
  std::string sweep = {};  // absolute path; empty: not from a file
  // The places of options that only a run can refuse, by key: {"trainable", "b.yaml:2"}. Not
  // stored.
  std::map<std::string, std::string> places = {};
  // The choice of `auto` for options.searcher, and why, in words. Not stored; empty on resume.
  std::string searcher_choice = {};
  std::string sweep_hash = {};
  std::string plugin_hash = {};
  // The prefix of the keys in the store, drawn when the experiment's folder is made: no other
  // experiment has it, not even one of the same name and seed. Empty in folders of versions that
  // did not draw it.
  std::string store_prefix = {};
  std::optional<PythonCall> python = {};  // instead of a plugin
  // The results that options.warm_start gives the searcher. Not in experiment.json, but beside it.
  std::vector<EarlierTrial> earlier = {};
};

// One mistake in the input: its place, its nature, and the remedy.
struct Complaint {
  std::string path = {};  // key path, "config/lr"
  int line = 0;           // 1-based line of the YAML file; 0: not from a file
  std::string message = {};
  std::string option =
      {};  // the command line option it came from, "--set config/lr=x"; empty: none
};
// One a line: "sweep.yaml:4: config/lr: ...".
std::string complaint_lines(const std::string& source, const std::vector<Complaint>& all);
// The place of a complaint: "sweep.yaml:4", or its option.
std::string place_of(const std::string& source, const Complaint& complaint);
// Puts the places of the spec before the lines that begin with a key, or with a path below one:
// "trainable: ...", "warm_start/0: ...".
std::string with_places(const ExperimentSpec& spec, const std::string& lines);
// Throws one Error (kBadInput) with all of them.
[[noreturn]] void throw_complaints(const std::string& source, const std::vector<Complaint>& all);

// Finds mistakes in single values, whatever the others and the trainable are.
void check_values(const RunOptions& options, std::vector<Complaint>& complaints);

// Checks options and fills the spec: everything that can be known without running anything (stop
// rules or max_t or a time limit for a class, mode min with a bare stop number for the metric,
// ranges, resources, scheduler and searcher against metric and mode). Appends to `complaints`.
ExperimentSpec make_spec(RunOptions options, std::string trainable, bool is_function,
                         std::vector<Complaint>& complaints);

// experiment.json, both ways. Values of `env` are not stored, only its names. A custom scheduler or
// searcher is stored as a note; after spec_from_value() the program has to set it again.
Value to_value(const ExperimentSpec& spec);
ExperimentSpec spec_from_value(const Value& value);  // Error (kProtocol) when it is not one

}  // namespace tune
