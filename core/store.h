// Store: where an experiment's journal lives. The edge behind it is Redis (core/platform/
// redis_store.h); tests use a memory store. One thread.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {

// "<epoch>-<sequence>", chosen by the driver. A driver takes its epoch by appending {last + 1, 0}.
struct EntryId {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  friend auto operator<=>(const EntryId&, const EntryId&) = default;
};
std::string to_string(EntryId id);
std::optional<EntryId> parse_entry_id(std::string_view text);

struct Entry {
  EntryId id;
  std::string payload;
};

// A newer driver has appended: this one must exit and touch nothing more.
class SupersededError : public Error {
 public:
  explicit SupersededError(const std::string& message) : Error(ErrorCode::kStore, message) {}
};

// The server does not answer: it is silent, gone or still reads its file. The call may have taken
// effect or not; the same call made again goes on with it.
class StoreSilentError : public Error {
 public:
  StoreSilentError(const std::string& message, std::string why)
      : Error(ErrorCode::kStore, message), why_(std::move(why)) {}
  const std::string& why() const { return why_; }  // "the store at unix:///r: connection refused"

 private:
  std::string why_;
};

class Store {
 public:
  virtual ~Store() = default;

  // No entry and no value is larger; callers cut larger ones into parts.
  static constexpr std::size_t kMaxPayloadBytes = 64u << 20;

  // Appends one entry durably. Ids grow strictly. After a lost connection the same id is sent
  // again: if it is there with this payload the append succeeded; if anything else has the id or a
  // greater one, throws SupersededError. Throws StoreSilentError, naming address and cause, when
  // the server gives no answer for as long as the store waits; so do all calls below. Throws Error
  // (kStore) when the entry is larger than allowed.
  virtual void append(EntryId id, std::string_view payload) = 0;
  // Entries after `after` (exclusive), oldest first, at most `limit` of them.
  virtual std::vector<Entry> read(EntryId after, std::size_t limit) = 0;
  // The greatest id ever appended, even if its entry was trimmed since; nothing: none yet.
  virtual std::optional<EntryId> last() = 0;
  // Named values beside the journal (a snapshot, say): a name without ':' or blanks. Throw Error
  // (kStore) when a value is larger than allowed.
  virtual void put(std::string_view name, std::string_view value) = 0;
  virtual std::optional<std::string> get(std::string_view name) = 0;
  virtual void remove(std::string_view name) = 0;  // nothing when it is not there
  // Writes a named value and removes all entries up to and including `through`, both or neither.
  // Throws SupersededError, and changes nothing, when the journal is at a later epoch than
  // `through`.
  virtual void put_and_trim(std::string_view name, std::string_view value, EntryId through) = 0;
  // Removes the journal, with its last id, and every named value, all or none: as if nothing had
  // ever been written. For a driver whose experiment never began.
  virtual void remove_all() = 0;

  // Sets a function that is called whenever a lost connection is made again, before the interrupted
  // call is sent again: a server that stands in for a lost one may lack the last writes. The
  // function may call the store; an exception of it ends the call.
  void when_reconnected(std::function<void()> look) { look_ = std::move(look); }
  std::uint64_t reconnects() const { return reconnects_; }  // so far

 protected:
  void reconnected() {
    ++reconnects_;
    if (look_) look_();
  }

 private:
  std::function<void()> look_;
  std::uint64_t reconnects_ = 0;
};

// Throws Error (kStore) when `bytes` is more than a store takes at once.
void refuse_too_large(std::size_t bytes, std::string_view doing);

}  // namespace tune
