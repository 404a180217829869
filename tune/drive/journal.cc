#include "tune/drive/journal.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/wire.h"

namespace tune {

namespace {

constexpr std::size_t kFirstRead = 8;  // entries
constexpr std::size_t kMaxReadEntries = 128;
constexpr int kMaxStoreTries = 20;  // a connection that is lost each time does not count

// The connection was lost and is there again: earlier writes may be gone.
struct Reconnected {};

[[noreturn]] void throw_unreadable(const std::string& what, const std::string& cause) {
  throw Error(ErrorCode::kProtocol, fmt::format("reading {}: {}", what, cause));
}

// [epoch, sequence, now, controller, logger, format]
std::string packed(const Snapshot& snapshot) {
  PackWriter out;
  out.array(6);
  encode(out, snapshot.through.epoch);
  encode(out, snapshot.through.sequence);
  encode(out, snapshot.now);
  out.binary(snapshot.controller);
  out.binary(snapshot.logger);
  encode(out, kJournalFormat);
  return out.take();
}

// More fields may follow one day.
Snapshot unpacked_snapshot(std::string_view bytes) {
  PackReader in(bytes);
  const std::size_t size = in.array();
  if (size < 5) detail::bad_message("snapshot", size, 5);
  Snapshot snapshot;
  decode(in, snapshot.through.epoch);
  decode(in, snapshot.through.sequence);
  decode(in, snapshot.now);
  snapshot.controller = in.binary();
  snapshot.logger = in.binary();
  std::uint32_t format = kFirstJournalFormat;
  if (size > 5) decode(in, format);
  refuse_newer_format(format);
  for (std::size_t more = 6; more < size; ++more) in.skip();
  in.expect_end();
  return snapshot;
}

[[noreturn]] void throw_overtaken(EntryId id) {
  throw SupersededError(fmt::format("taking epoch {}: another driver has taken over", id.epoch));
}

[[noreturn]] void throw_superseded(EntryId found) {
  throw SupersededError(fmt::format(
      "the journal has entry {}, which is not of this driver: another one has taken over",
      to_string(found)));
}

// An epoch begins with sequence 0; no other id is ever left out.
bool follows(EntryId entry, EntryId last) {
  if (entry.epoch == last.epoch) return entry.sequence == last.sequence + 1;
  return entry.epoch == last.epoch + 1 && entry.sequence == 0;
}

EntryId before(EntryId id) {
  if (id.sequence > 0) return {id.epoch, id.sequence - 1};
  return {id.epoch - 1, std::numeric_limits<std::uint64_t>::max()};
}

std::size_t hash_of(std::string_view payload) {
  return std::hash<std::string_view>()(payload);
}

}  // namespace

bool Journal::is_in(Store& store) {
  return store.last().has_value() || SnapshotParts::is_in(store);
}

// Two passes: a logger cuts its files to the snapshot as soon as it hears of it, so a journal that
// cannot be read to its end must not be handed over in part. With one pass, the entry of a newer
// build was found when the lines after the snapshot were gone already. The result of the first pass
// is kept, unless it is large.
void Journal::replay(const Visitor& visitor) {
  TUNE_CHECK(!begun_);
  std::vector<Found> kept;
  std::size_t bytes = 0;
  bool all = true;
  Position ahead{last_, now_};
  read(ahead, [&](Found found) {
    bytes += found.bytes;
    all = all && bytes <= kAheadBytes;
    if (all) kept.push_back(std::move(found));
  });
  for (const Found& found : kept) take(found, visitor);
  if (all) return;
  Position rest{last_, now_};
  read(rest, [&](const Found& found) { take(found, visitor); });
}

// Reads the entries after a position, and moves it. After each batch the snapshot is read if
// another driver took one and trimmed entries that were not read here yet. Ids cannot show that the
// last entries of an epoch are gone. The size of the largest entry decides how many are fetched
// next: a thousand large ones are more than memory holds.
void Journal::read(Position& position, const std::function<void(Found)>& sink) {
  if (position.last == EntryId{}) read_snapshot(position, sink);
  for (std::size_t limit = kFirstRead;;) {
    const std::vector<Entry> batch = store_.read(position.last, limit);
    const EntryId next{position.last.epoch, position.last.sequence + 1};
    if (!batch.empty() && batch.front().id != next) read_snapshot(position, sink);
    std::size_t largest = 1;
    for (const Entry& entry : batch) {
      largest = std::max(largest, entry.payload.size());
      if (entry.id > position.last) sink(read_entry(position, entry));
    }
    if (batch.size() < limit) return;
    limit = std::clamp<std::size_t>(kReadBytes / largest, 1, kMaxReadEntries);
  }
}

void Journal::read_snapshot(Position& position, const std::function<void(Found)>& sink) {
  Found found;
  try {
    const std::optional<std::string> stored = parts_.read();
    if (!stored) return;
    found.snapshot = unpacked_snapshot(*stored);
    found.bytes = stored->size();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kProtocol) throw;
    throw_unreadable("the journal's snapshot", error.what());
  }
  if (found.snapshot->through <= position.last) return;
  position = {found.snapshot->through, found.snapshot->now};
  sink(std::move(found));
}

// A driver that took the epoch may not have seen the last turns before it: its turn counts as after
// them.
Journal::Found Journal::read_entry(Position& position, const Entry& entry) const {
  const std::string what = fmt::format("journal entry {}", to_string(entry.id));
  if (!follows(entry.id, position.last)) {
    throw_unreadable(
        what, fmt::format("the entries between {} and it are missing", to_string(position.last)));
  }
  Found found;
  found.id = entry.id;
  found.bytes = entry.payload.size();
  try {
    found.turn = turn_of(entry.payload);
  } catch (const Error& error) {
    throw_unreadable(what, error.what());
  }
  if (found.turn.now < position.now) {
    if (entry.id.sequence != 0) {
      throw_unreadable(what, "its time is before that of the entry before it");
    }
    found.turn.now = position.now;
  }
  position = {found.id, found.turn.now};
  return found;
}

void Journal::take(const Found& found, const Visitor& visitor) {
  if (found.snapshot) {
    visitor.snapshot(*found.snapshot);
    last_ = trimmed_ = found.snapshot->through;
    now_ = found.snapshot->now;
    snapshot_bytes_ = found.bytes;
    bytes_since_snapshot_ = 0;
    return;
  }
  take_in(found);
  visitor.turn(found.turn);
}

void Journal::take_in(const Found& found) {
  last_ = found.id;
  now_ = found.turn.now;
  bytes_since_snapshot_ += found.bytes;
}

Turn Journal::take_epoch(Turn turn, const Visitor& visitor) {
  TUNE_CHECK(!begun_);
  const EntryId id{next_epoch(), 0};
  const std::string payload = encoded(turn);
  if (store_.reconnects() != reconnects_) look_for_what_was_read();
  watch_connection();
  store_.append(id, payload);
  begun_ = true;
  Position position{last_, now_};
  bool is_there = false;
  read(position, [&](const Found& found) {
    const EntryId at = found.snapshot ? found.snapshot->through : found.id;
    if (at > id || (found.snapshot && at == id)) throw_overtaken(id);
    if (at < id) return take(found, visitor);
    take_in(found);
    turn.now = found.turn.now;
    is_there = true;
  });
  if (!is_there) throw_overtaken(id);  // it was trimmed already
  last_hash_ = hash_of(payload);
  // Entries that were read before may be gone by now: ids cannot show that.
  is_wanted_ = store_.reconnects() != reconnects_;
  return turn;
}

void Journal::append(const Turn& turn) {
  TUNE_CHECK(begun_);
  TUNE_CHECK(turn.now >= now_);
  refuse_hole();
  const EntryId id{last_.epoch, last_.sequence + 1};
  const std::string payload = encoded(turn);
  store_.append(id, payload);
  last_ = id;
  last_hash_ = hash_of(payload);
  now_ = turn.now;
  bytes_since_snapshot_ += payload.size();
}

bool Journal::snapshot_is_due() const {
  return is_wanted_ || bytes_since_snapshot_ > std::max(kSnapshotAfterBytes, snapshot_bytes_);
}

void Journal::store(const Snapshot& snapshot) {
  TUNE_CHECK(begun_);
  // Taken before the tail was lost: the entries between it and the one that made that good are
  // gone.
  if (snapshot.through < trimmed_) return;
  if (snapshot.through < last_) refuse_hole();
  const std::string bytes = packed(snapshot);
  for (int tries = 1;; ++tries) {
    storing_ = &snapshot;
    try {
      parts_.write(bytes, snapshot.through);
    } catch (const Reconnected&) {
      if (tries < kMaxStoreTries) continue;
      storing_ = nullptr;
      throw Error(ErrorCode::kStore,
                  "storing the snapshot: the connection is lost again and again");
    } catch (...) {
      storing_ = nullptr;
      throw;
    }
    break;
  }
  storing_ = nullptr;
  trimmed_ = std::max(trimmed_, snapshot.through);
  snapshot_bytes_ = bytes.size();
  bytes_since_snapshot_ = 0;
  is_wanted_ = lacks_tail_ = false;
}

// ---- After a reconnect --------------------------------------------------------------------------

void Journal::watch_connection() {
  store_.when_reconnected([this, lives = std::weak_ptr(lives_)] {
    if (!lives.expired()) look_after_reconnect();
  });
}

// Parts of a snapshot that were written already may be gone as well: writing begins anew.
void Journal::look_after_reconnect() {
  if (!begun_) return look_for_what_was_read();
  parts_.forget();
  lacks_tail_ = has_lost_tail();
  const bool is_made_good = storing_ != nullptr && storing_->through >= last_;
  if (!is_made_good) refuse_hole();
  if (storing_ != nullptr) throw Reconnected();
}

// The first entry of an epoch follows any that is left: after it ids do not show what is missing.
void Journal::look_for_what_was_read() {
  const std::optional<EntryId> end = store_.last();
  if (last_ != EntryId{} && (!end || *end < last_)) lacks_tail_ = true;
}

void Journal::refuse_hole() const {
  if (!lacks_tail_) return;
  throw LostTailError(
      fmt::format("the store has lost entries of the journal up to {}", to_string(last_)));
}

bool Journal::has_lost_tail() {
  const std::optional<EntryId> end = store_.last();
  const EntryId next{last_.epoch, last_.sequence + 1};  // perhaps stored, unanswered
  if (end && *end > next) throw_superseded(*end);
  if (!end || *end < last_) return true;
  if (last_ <= trimmed_) return false;
  const std::vector<Entry> found = store_.read(before(last_), 1);
  if (found.empty() || found[0].id != last_) return true;
  if (hash_of(found[0].payload) != last_hash_) throw_superseded(last_);
  return false;
}

}  // namespace tune
