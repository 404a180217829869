#include "tune/drive/journal.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/wire.h"

namespace tune {

namespace {

constexpr std::size_t kReadBatch = 512;  // entries fetched at a time
constexpr const char* kSnapshotName = "snapshot";

[[noreturn]] void throw_unreadable(const std::string& what, const std::string& cause) {
  throw Error(
      ErrorCode::kProtocol,
      fmt::format("reading {}: {}: it is damaged, or was written by another version of tune", what,
                  cause));
}

std::string packed(const Snapshot& snapshot) {
  PackWriter out;
  out.array(5);
  encode(out, snapshot.through.epoch);
  encode(out, snapshot.through.sequence);
  encode(out, snapshot.now);
  out.binary(snapshot.controller);
  out.binary(snapshot.logger);
  return out.take();
}

Snapshot unpacked(std::string_view bytes) try {
  PackReader in(bytes);
  if (const std::size_t size = in.array(); size != 5) detail::bad_message("snapshot", size, 5);
  Snapshot snapshot;
  decode(in, snapshot.through.epoch);
  decode(in, snapshot.through.sequence);
  decode(in, snapshot.now);
  snapshot.controller = in.binary();
  snapshot.logger = in.binary();
  in.expect_end();
  return snapshot;
} catch (const Error& error) {
  throw_unreadable("the journal's snapshot", error.what());
}

[[noreturn]] void throw_overtaken(EntryId id) {
  throw SupersededError(fmt::format("taking epoch {}: another driver has taken over", id.epoch));
}

// An epoch begins with sequence 0; nothing else is ever left out.
bool follows(EntryId entry, EntryId last) {
  if (entry.epoch == last.epoch) return entry.sequence == last.sequence + 1;
  return entry.epoch == last.epoch + 1 && entry.sequence == 0;
}

}  // namespace

bool Journal::is_in(Store& store) {
  return store.last().has_value() || store.get(kSnapshotName).has_value();
}

void Journal::replay(const Visitor& visitor) {
  TUNE_CHECK(!begun_);
  if (last_ == EntryId{}) read_snapshot(visitor);
  while (true) {
    const std::vector<Entry> batch = read_batch(visitor);
    for (const Entry& entry : batch) {
      if (entry.id > last_) visit(entry, visitor);
    }
    if (batch.size() < kReadBatch) return;
  }
}

// The next entries, after the snapshot where another driver took one and trimmed what was not read
// here yet. That the last entries of an epoch are gone cannot be seen in the ids.
std::vector<Entry> Journal::read_batch(const Visitor& visitor) {
  std::vector<Entry> batch = store_.read(last_, kReadBatch);
  const EntryId next{last_.epoch, last_.sequence + 1};
  if (!batch.empty() && batch.front().id != next) read_snapshot(visitor);
  return batch;
}

void Journal::read_snapshot(const Visitor& visitor) {
  const std::optional<std::string> stored = store_.get(kSnapshotName);
  if (!stored) return;
  const Snapshot snapshot = unpacked(*stored);
  if (snapshot.through <= last_) return;
  visitor.snapshot(snapshot);
  last_ = snapshot.through;
  now_ = snapshot.now;
  snapshot_bytes_ = stored->size();
  bytes_since_snapshot_ = 0;
}

void Journal::visit(const Entry& entry, const Visitor& visitor) {
  const std::string what = fmt::format("journal entry {}", to_string(entry.id));
  if (!follows(entry.id, last_)) {
    throw_unreadable(what,
                     fmt::format("the entries between {} and it are missing", to_string(last_)));
  }
  Turn turn;
  try {
    PackReader in(entry.payload);
    decode(in, turn);
    in.expect_end();
  } catch (const Error& error) {
    throw_unreadable(what, error.what());
  }
  const bool takes_epoch = entry.id.sequence == 0;
  if (turn.now < now_ && !takes_epoch) {
    throw_unreadable(what, "its time is before that of the entry before it");
  }
  take_in(entry.id, turn, entry.payload.size());
  visitor.turn(turn);
}

// Who takes an epoch may not have seen the last turns before it: it counts as after them.
void Journal::take_in(EntryId id, Turn& turn, std::size_t bytes) {
  turn.now = std::max(turn.now, now_);
  last_ = id;
  now_ = turn.now;
  bytes_since_snapshot_ += bytes;
}

Turn Journal::take_epoch(Turn turn, const Visitor& visitor) {
  TUNE_CHECK(!begun_);
  const EntryId id{next_epoch(), 0};
  const std::string payload = encoded(turn);
  store_.append(id, payload);
  begun_ = true;
  while (true) {
    const std::vector<Entry> batch = read_batch(visitor);
    if (batch.empty() || last_ >= id) break;  // it was trimmed already
    for (const Entry& entry : batch) {
      if (entry.id <= last_) continue;
      if (entry.id == id && entry.id == batch.back().id) {
        take_in(id, turn, payload.size());
        return turn;
      }
      if (entry.id >= id) throw_overtaken(id);
      visit(entry, visitor);
    }
  }
  throw_overtaken(id);
}

void Journal::append(const Turn& turn) {
  TUNE_CHECK(begun_);
  TUNE_CHECK(turn.now >= now_);
  const EntryId id{last_.epoch, last_.sequence + 1};
  const std::string payload = encoded(turn);
  store_.append(id, payload);
  last_ = id;
  now_ = turn.now;
  bytes_since_snapshot_ += payload.size();
}

bool Journal::snapshot_is_due() const {
  return bytes_since_snapshot_ > std::max(kSnapshotAfterBytes, snapshot_bytes_);
}

void Journal::store(const Snapshot& snapshot) {
  TUNE_CHECK(begun_);
  const std::string bytes = packed(snapshot);
  if (bytes.size() <= kMaxSnapshotBytes) {
    store_.put_and_trim(kSnapshotName, bytes, snapshot.through);
  }
  snapshot_bytes_ = bytes.size();
  bytes_since_snapshot_ = 0;
}

}  // namespace tune
