// JournaledController: the controller of an experiment whose every turn is in the journal before
// its effects. The driver, a reader of a running experiment and the simulator share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/store.h"
#include "tune/control/controller.h"
#include "tune/drive/journal.h"
#include "tune/results/logger.h"

namespace tune {

class JournaledController {
 public:
  // `logger` is told every record, including those of replayed turns, and is saved in snapshots;
  // null: a reader, which never commits.
  JournaledController(Store& store, ControllerSetup setup, Logger* logger,
                      std::size_t part_bytes = SnapshotParts::kPartBytes);

  // Brings the state to the journal's end; called again, follows what another driver appended.
  // Effects are discarded. Throws as Journal::replay, before the logger is told anything, and Error
  // (kProtocol) when a scheduler, searcher or logger does not know the snapshot's state as its own.
  void replay();

  // The first turn of a driver that commits, after replay(). Takes the journal's epoch with this
  // turn; first brings the state to the last entry that an older driver has appended, then handles
  // the turn. From then on no other driver appends. now() may be after the turn's own time. The
  // effects are those of commit; `unsettled` also has the begun trials that are not over, and those
  // whose checkpoints an older driver had to remove, as it may not have done so; of a trial that
  // runs on, these are in `removals`. Throws as Journal::take_epoch.
  Effects take_over(const Turn& turn);
  // A further turn: appended, then handled. Commands and removals may be carried out, and the
  // agents' events be acknowledged, when it returns. Throws as Journal::append; nothing has
  // happened then. Entries that the store has lost are made good by a snapshot first.
  Effects commit(const Turn& turn);

  // A message for the user about lost entries that were made good since the last call; empty: none.
  std::string take_mended() { return std::exchange(mended_, {}); }

  bool snapshot_is_due() const { return journal_.snapshot_is_due(); }
  // The whole state as of now. The logger's part is ready when its files hold all records up to now
  // (Logger::save). Once these are on the disk the snapshot may be stored, also after further
  // turns: resuming begins there then, and the entries it stands for are removed. Where the store
  // has lost entries after it, a snapshot as of now is stored instead.
  struct BegunSnapshot {
    Snapshot snapshot;  // but for `logger`
    std::future<std::string> logger;
  };
  BegunSnapshot begin_snapshot();
  Snapshot snapshot();  // waits for it
  void store(const Snapshot& snapshot);

  const Controller& controller() const { return controller_; }
  bool is_new() const { return journal_.is_empty(); }  // nothing was ever committed
  std::uint64_t next_epoch() const { return journal_.next_epoch(); }
  EntryId last() const { return journal_.last(); }  // entry that the state stands for
  ExperimentTime now() const { return now_; }       // of the newest turn

 private:
  Journal::Visitor follower();
  void restore(const Snapshot& snapshot);
  Effects handle(const Turn& turn, bool is_again);
  void remove_again(const Trial& trial, Effects& effects) const;

  void append(const Turn& turn);
  void mend(const std::string& why);

  Journal journal_;
  Controller controller_;
  Logger* logger_;
  ExperimentTime now_{};
  // By replayed turns, whose removals may not have been done: these, and others of the trial.
  std::map<TrialNumber, std::set<CheckpointId>> unsettled_;
  std::string mended_;  // see take_mended
};

}  // namespace tune
