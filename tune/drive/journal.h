// Journal: the ordered turns of an experiment in its store, and the snapshot that stands for those
// that were trimmed. Each turn is appended before its effects; state is what Controller makes of
// the snapshot and all turns after it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/store.h"
#include "tune/control/events.h"

namespace tune {

// What an experiment was after the entry `through`.
struct Snapshot {
  EntryId through;
  ExperimentTime now{};
  std::string controller;  // Controller::save()
  std::string logger;      // Logger::save()
};

class Journal {
 public:
  explicit Journal(Store& store) : store_(store) {}

  // Whether anything of a journal is in the store. Throws Error (kStore).
  static bool is_in(Store& store);

  struct Visitor {
    std::function<void(const Snapshot&)> snapshot;
    std::function<void(const Turn&)> turn;
  };
  // Hands over the snapshot, when there is one that is newer than what was seen, and every turn
  // after it, oldest first; called again, only what somebody else appended since. Throws Error
  // (kProtocol) naming the entry that cannot be read or is missing.
  void replay(const Visitor& visitor);
  bool is_empty() const { return last_.epoch == 0; }
  // The epoch this driver takes: one above the last one seen by replay.
  std::uint64_t next_epoch() const { return last_.epoch + 1; }

  // Takes the epoch by appending `turn` durably; from then on no older driver can append. Hands
  // over as replay does what one of them has appended since this one's replay, and gives back the
  // turn as every replay will see it: its time is not before that of the turns so found. Throws as
  // append and replay do.
  Turn take_epoch(Turn turn, const Visitor& visitor);
  // Appends durably, after take_epoch. Throws SupersededError when a newer driver exists, Error
  // (kStore) when the store is lost.
  void append(const Turn& turn);

  // Whether the entries since the last snapshot have grown so much that another one should be
  // taken: to more than kSnapshotAfterBytes and more than the snapshot itself, so that snapshots at
  // most double what is written.
  bool snapshot_is_due() const;
  EntryId last() const { return last_; }
  // Stores it in place of all entries up to its `through`, both or neither. One too large for the
  // store is not taken: the entries stay. Throws as append does.
  void store(const Snapshot& snapshot);

  static constexpr std::size_t kSnapshotAfterBytes = 4u << 20;
  static constexpr std::size_t kMaxSnapshotBytes = 256u << 20;

 private:
  void read_snapshot(const Visitor& visitor);
  std::vector<Entry> read_batch(const Visitor& visitor);
  void visit(const Entry& entry, const Visitor& visitor);
  void take_in(EntryId id, Turn& turn, std::size_t bytes);

  Store& store_;
  EntryId last_;
  ExperimentTime now_{};  // of the newest turn
  bool begun_ = false;
  std::size_t snapshot_bytes_ = 0;
  std::size_t bytes_since_snapshot_ = 0;  // appended since it was stored
};

}  // namespace tune
