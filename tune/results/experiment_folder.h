// The folder of one experiment: its name, its lock, its files experiment.json (the resolved spec)
// and run.json (how the run stands). Whoever holds the object holds the experiment's lock.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/platform/lock.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// kFailed: by what no resume mends, such as a metric that is never reported.
enum class RunState { kRunning, kInterrupted, kFinished, kFailed, kLast = kFailed };

// run.json. A killed driver leaves kRunning behind; the lock tells whether it still lives.
struct RunRecord {
  RunState state = RunState::kRunning;
  std::uint32_t driver_pid = 0;
  std::string hostname;
  std::string store;   // address other commands of this host can read the journal at
  std::string prefix;  // of the keys there
};

class ExperimentFolder {
 public:
  // A new experiment: <storage>/<name>. Throws Error (kBadInput) when the folder holds one already
  // (finished: another name or --fresh; interrupted: the command that resumes it) unless
  // if_exists is kFresh, which renames the old one to <name>.old-N. Fills spec.name, and draws
  // spec.store_prefix.
  static ExperimentFolder create(ExperimentSpec& spec);
  // An existing one, to go on with. Throws Error (kBadInput) when there is none.
  static ExperimentFolder open(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }  // as the user wrote storage
  const std::filesystem::path& absolute() const { return absolute_; }
  int lock_descriptor() const { return lock_.descriptor(); }
  // Shows hosts that flock does not reach that the experiment is held: call it after the last fork.
  void keep_alive() { lock_.keep_alive(); }
  // The process of another host that has taken the experiment meanwhile; empty: none has.
  std::string taken_by() const { return lock_.taken_by(); }
  // False when somebody has removed or renamed it: what is written has no place any more.
  bool is_in_place() const;
  // Of a new one that did not begin: removes it, with the folders that were made to hold it, and
  // puts back what kFresh has moved aside, so that all is as it was before create().
  void withdraw() const;

  // What is written is on the disk, but its name only after the next write_record(): one flush of the
  // folder serves the files of a start (spec and record) and those of an end (results.csv and record).
  // Without the spec a journal cannot be resumed: no trial may begin before.
  void write_spec(const ExperimentSpec& spec) const;
  void write_record(const RunRecord& record) const;
  // <storage>/latest -> <name>
  void link_latest() const;

 private:
  ExperimentFolder(std::filesystem::path path, ExperimentLock lock);
  static ExperimentFolder make(const std::filesystem::path& directory);

  std::filesystem::path path_;
  std::filesystem::path absolute_;
  std::filesystem::path replaced_;  // absolute; where kFresh has moved the old one; empty: none
  int made_parents_ = 0;            // folders above it that create() has made
  ExperimentLock lock_;
};

// What is in a folder, without holding it. Throws Error (kBadInput) when it is no experiment's.
ExperimentSpec read_spec(const std::filesystem::path& directory);
std::optional<RunRecord> read_record(const std::filesystem::path& directory);
// Whether a driver (or a process it left) holds the experiment now.
bool is_live(const std::filesystem::path& directory);

// "tune resume results/s", for a shell.
std::string how_to_resume(const std::filesystem::path& directory);

}  // namespace tune
