// The folder of one experiment: its name, its lock, its files experiment.json (the resolved spec),
// with warm_start.json beside it, and run.json (the state of the run). The owner of the object
// holds the experiment's lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/platform/lock.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// kFailed: ended by a fault that no resume mends, such as a metric that is never reported.
enum class RunState { kRunning, kInterrupted, kFinished, kFailed, kLast = kFailed };

// run.json. A killed driver leaves kRunning behind; the lock tells whether it still lives.
struct RunRecord {
  RunState state = RunState::kRunning;
  std::uint32_t driver_pid = 0;
  std::string hostname;
  std::string store;     // address other commands of this host can read the journal at
  std::string prefix;    // of the keys there
  std::string requests;  // the socket that the driver takes requests at; empty: it takes none
  std::uint32_t journal_format = 0;  // that its driver writes; 0: of an earlier build
};

class ExperimentFolder {
 public:
  // A new experiment: <storage>/<name>. When the folder holds one already, throws Error (kBadInput)
  // with the way out (finished: another name or --fresh; interrupted: the command that resumes it).
  // With if_exists kFresh it renames the old one to <name>.old-N instead. Fills spec.name, and
  // draws spec.store_prefix.
  static ExperimentFolder create(ExperimentSpec& spec);
  // An existing experiment, to go on with. Throws Error (kBadInput) when there is none, and
  // (kProtocol) when a newer tune has gone on with it; then nothing of it was touched.
  static ExperimentFolder open(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }  // as the user wrote storage
  const std::filesystem::path& absolute() const { return absolute_; }
  int lock_descriptor() const { return lock_.descriptor(); }
  // Shows the holder to hosts that flock does not reach: call it after the last fork, and the other
  // now and then while something is waited for before that.
  void keep_alive() { lock_.keep_alive(); }
  void show_life() { lock_.show_life(); }
  // The process of another host that has taken the experiment meanwhile; empty: none has.
  std::string taken_by() const { return lock_.taken_by(); }
  // False after a standstill, until the lock's thread has looked: another host may have taken it.
  bool is_surely_held() const { return lock_.is_surely_held(); }
  // Looks now, unless it is surely held, which may take as long as the file system does not answer.
  void look_again() const { lock_.look_again(); }
  // The notice that its holder was silent and the experiment taken from it; empty: it was free.
  std::string taken_over() const;
  // False when the folder was removed or renamed: there is no place to write to any more. It looks,
  // which may take as long as the file system does not answer.
  bool is_in_place() const { return lock_.is_in_place(); }
  // Whether this holder still has it, in its place. It looks, too.
  bool is_ours() const {
    look_again();
    return taken_by().empty() && is_in_place();
  }
  // Whether it was taken, removed or renamed, as the lock's thread saw it a moment ago: for a loop,
  // as it never blocks.
  bool seems_lost() const { return !taken_by().empty() || !lock_.was_in_place(); }
  // For a new experiment that did not begin: removes its folder, with the folders that were made to
  // hold it, and puts back the experiment that kFresh has moved aside, so that all is as it was
  // before create().
  void withdraw() const;

  // The content is flushed to disk, but its name only by the next write_record(): one flush of the
  // folder serves the files of a start (spec and record) and those of an end (results.csv and
  // record). Without the spec a journal cannot be resumed: no trial may begin before.
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

// The content of a folder, with warm_start.json, without holding it. Throws Error (kBadInput) when
// it is not an experiment's.
ExperimentSpec read_spec(const std::filesystem::path& directory);
std::optional<RunRecord> read_record(const std::filesystem::path& directory);
// Whether a driver (or a process it left) holds the experiment now.
bool is_live(const std::filesystem::path& directory);

// Throws Error (kBadInput): there is no experiment in the folder, or not yet.
[[noreturn]] void refuse_no_experiment(const std::filesystem::path& directory);

// "tune resume results/s", for a shell.
std::string how_to_resume(const std::filesystem::path& directory);

}  // namespace tune
