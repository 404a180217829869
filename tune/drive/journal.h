// Journal: the ordered turns of an experiment in its store, and the snapshot that stands for those
// that were trimmed. Each turn is appended before its effects; state is what Controller makes of
// the snapshot and all turns after it.
//
// A driver owns the journal by its epoch: it takes epoch n + 1 by appending the entry (n + 1)-0,
// and as ids only grow, the store itself refuses every later entry of an older driver. Simpler ways
// fail:
// - A lock alone does not reach other hosts everywhere, and a driver that stands still may lose its
//   lock between looking at it and appending: two drivers then write one journal.
// - A look for a newer driver before each append: one may come between the look and the append.
// - Ids drawn by the store: after a lost connection a driver cannot tell whether its entry is
//   there, and appended again it counts twice. With an id of its own the driver sends it again: if
//   its own content has that id, the entry is stored.
// - Reading to the end once, before the epoch is taken: an older driver may append in between. So
//   the journal is read again after that, and the turn that takes the epoch counts as later.
//
// A server that takes the place of a lost one may lack the last writes. Appending the next entry
// there would leave a hole, and a journal that no driver can ever read again. So after each
// reconnect, before anything is sent again, the journal's end is compared with the last appended
// entry. When it is missing, LostTailError asks for a snapshot: the driver's own state is all that
// is left of the lost entries. Nothing is appended before one is stored, however often the store
// falls silent meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/journal_format.h"
#include "core/store.h"
#include "tune/drive/snapshot_parts.h"

namespace tune {

// The state of an experiment after the entry `through`.
struct Snapshot {
  EntryId through;
  ExperimentTime now{};
  std::string controller;  // Controller::save()
  std::string logger;      // Logger::save()
};

// The store has lost entries that were there: a snapshot that stands for all up to last() must be
// stored before anything is appended.
class LostTailError : public Error {
 public:
  explicit LostTailError(const std::string& message) : Error(ErrorCode::kStore, message) {}
};

class Journal {
 public:
  explicit Journal(Store& store, std::size_t part_bytes = SnapshotParts::kPartBytes)
      : store_(store), parts_(store, part_bytes), reconnects_(store.reconnects()) {}
  Journal(const Journal&) = delete;

  // Whether anything of a journal is in the store. Throws Error (kStore).
  static bool is_in(Store& store);

  struct Visitor {
    std::function<void(const Snapshot&)> snapshot;
    std::function<void(const Turn&)> turn;
  };
  // Hands over the snapshot, if it is newer than the turns seen so far, and every turn after it,
  // oldest first; a later call hands over only the entries that another driver appended since.
  // Throws Error (kProtocol), naming the entry, when it cannot be read, is missing, or is of a
  // newer format; nothing was handed over then.
  void replay(const Visitor& visitor);
  bool is_empty() const { return last_.epoch == 0; }
  // The epoch this driver takes: one above the last one seen by replay.
  std::uint64_t next_epoch() const { return last_.epoch + 1; }

  // Takes the epoch by appending `turn` durably; from then on no older driver can append. Hands
  // over, as replay does, the turns that an older driver has appended since this one's replay, and
  // returns `turn` as every replay will see it: its time is not before that of these turns. Throws
  // as append and replay do.
  Turn take_epoch(Turn turn, const Visitor& visitor);
  // Appends durably, after take_epoch. Throws SupersededError when a newer driver exists, Error
  // (kStore) when the store is lost, LostTailError when it has lost entries; then nothing was
  // appended.
  void append(const Turn& turn);

  // Whether another snapshot should be taken. It is due when the entries since the last one have
  // grown to more than kSnapshotAfterBytes and more than the snapshot itself, so that snapshots at
  // most double the writes. It is also due when the store may lack entries that this driver has
  // read, and after ask_for_snapshot.
  bool snapshot_is_due() const;
  void ask_for_snapshot() { is_wanted_ = true; }
  EntryId last() const { return last_; }
  // Stores it in place of all entries up to its `through`, both or neither; nothing when a later
  // one is stored already. Throws as append does; LostTailError only when its `through` is before
  // last().
  void store(const Snapshot& snapshot);

  static constexpr std::size_t kSnapshotAfterBytes = 4u << 20;
  static constexpr std::size_t kReadBytes = 8u << 20;    // of entries, about so many at a time
  static constexpr std::size_t kAheadBytes = 32u << 20;  // read before any of it is handed over

 private:
  // A snapshot, or a turn and where it stands.
  struct Found {
    std::optional<Snapshot> snapshot;
    EntryId id;
    Turn turn;
    std::size_t bytes = 0;
  };
  struct Position {
    EntryId last;
    ExperimentTime now{};
  };
  void read(Position& position, const std::function<void(Found)>& sink);
  void read_snapshot(Position& position, const std::function<void(Found)>& sink);
  Found read_entry(Position& position, const Entry& entry) const;
  void take(const Found& found, const Visitor& visitor);
  void take_in(const Found& found);
  void watch_connection();
  void look_after_reconnect();
  void look_for_what_was_read();
  void refuse_hole() const;
  bool has_lost_tail();

  Store& store_;
  SnapshotParts parts_;
  EntryId last_;
  ExperimentTime now_{};  // of the newest turn
  bool begun_ = false;
  std::size_t last_hash_ = 0;  // of what was appended last
  EntryId trimmed_;            // the entries up to it are in the snapshot
  const Snapshot* storing_ = nullptr;
  bool lacks_tail_ = false;       // the store does, and no snapshot has made that good yet
  std::uint64_t reconnects_ = 0;  // of the store, before anything was read
  bool is_wanted_ = false;        // a snapshot, however short the journal is
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
  std::size_t snapshot_bytes_ = 0;
  std::size_t bytes_since_snapshot_ = 0;  // appended since it was stored
};

}  // namespace tune
