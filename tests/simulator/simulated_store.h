// The journal's store of a simulated experiment. Its contents, with every entry ever appended, are
// shared by all drivers. One driver's connection to it may be slow, may fall silent in any call,
// for a while or for good, and may be found again at a server that lacks the last writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "memory_store.h"
#include "simulator/world.h"

namespace tune::simulator {

struct StoreContents {
  std::shared_ptr<testing::MemoryStore::Contents> now =
      std::make_shared<testing::MemoryStore::Contents>();
  std::vector<Entry> ever;          // with trimmed ones
  std::optional<EntryId> answered;  // the newest whose driver knows that it is there
  // A driver's write without an answer: it arrives before any later write.
  std::function<void()> under_way;
  // Named values, newest last, each as it was before a change since the last append or trim.
  std::vector<std::pair<std::string, std::optional<std::string>>> changed;

  // While the server lacks entries of the newest epoch: the contents with these entries. That
  // epoch's driver is to make them good; for any other the former server is back.
  std::optional<testing::MemoryStore::Contents> whole;
  int silences = 0;  // that were not planned, of all drivers
  bool lacks_some() const { return whole.has_value(); }
};

class SimulatedStore : public Store {
 public:
  static constexpr int kSlowCalls = 10;  // of one driver, from one entry to the next
  static constexpr int kSilences = 4;    // the same, of those that are not planned
  // Of all drivers, too: no patience outlives an outage without end.
  static constexpr int kAllSilences = 100;

  SimulatedStore(World& world, StoreContents& contents)
      : world_(world), contents_(contents), inner_(contents.now) {}

  // The store falls silent once, in one of the next calls of that kind: for that time, or for good.
  // A write of that call may be stored all the same, or still be under way.
  void fall_silent_soon(StoreCall in, std::optional<Time> duration);
  // From here on it may fall silent for a while in any call: the driver makes the call again.
  void stop_waiting() { waits_ = false; }

  // The newest entry that was to be appended.
  std::optional<EntryId> asked() const { return asked_; }
  // The newest entry that was there when entries were read last.
  std::optional<EntryId> read_up_to() const { return read_up_to_; }

  void append(EntryId id, std::string_view payload) override;
  std::vector<Entry> read(EntryId after, std::size_t limit) override;
  std::optional<EntryId> last() override;
  void put(std::string_view name, std::string_view value) override;
  void remove(std::string_view name) override { change(name, {}); }
  std::optional<std::string> get(std::string_view name) override;
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override;
  void remove_all() override { inner_.remove_all(); }

 private:
  void change(std::string_view name, std::optional<std::string> value);
  void write(StoreCall call, const std::function<void()>& effect, std::uint64_t& lost);
  template <class T, class Read>
  T ask(Read read);
  void reach_server(bool writes);
  void look();
  void lose_some();
  void take_time();
  bool may(int happened, int limit);
  bool falls_silent_in(StoreCall call);
  void fall_silent(std::optional<Time> duration);
  bool is_silent();
  void let_arrive();

  World& world_;
  StoreContents& contents_;
  testing::MemoryStore inner_;
  StoreCall fails_in_ = StoreCall::kAny;
  std::optional<int> calls_left_;  // of those, that are answered
  std::optional<Time> silent_for_;
  bool waits_ = true;
  bool is_silent_ = false;
  std::optional<Time> silent_until_;
  bool needs_look_ = false;  // the connection is a new one
  bool looks_ = false;
  int goes_back_left_ = 8;  // for one driver: each time what was begun begins anew
  int slow_calls_ = 0;      // since there were so many entries:
  int silences_ = 0;
  std::size_t entries_ = 0;
  std::optional<EntryId> asked_;
  std::optional<EntryId> read_up_to_;
};

}  // namespace tune::simulator
