// The journal's store of a simulated experiment: what all drivers share, with every entry ever
// appended, and one driver's connection to it, which may be lost in an append.
#pragma once

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
  std::vector<Entry> ever;  // also those that were trimmed
  // Of a driver that has given it up: it arrives just before another one takes its epoch, which has
  // read all that is there by then.
  std::optional<Entry> under_way;
};

class SimulatedStore : public Store {
 public:
  SimulatedStore(World& world, StoreContents& contents)
      : world_(world), contents_(contents), inner_(contents.now) {}

  // The next append fails for good; its entry may be stored all the same, or still be under way.
  void fail_next_append() { fails_ = true; }
  // Planted: the entry is only kept here until `settle`.
  void hold_back() { holds_back_ = true; }
  void settle() {
    for (const Entry& entry : std::exchange(held_, {})) store(entry.id, entry.payload);
  }

  // The newest entry that was to be appended.
  std::optional<EntryId> asked() const { return asked_; }

  void append(EntryId id, std::string_view payload) override {
    asked_ = id;
    if (holds_back_) return held_.push_back({id, std::string(payload)});
    if (fails_ && world_.chance(500'000)) {
      if (world_.chance(500'000)) contents_.under_way = Entry{id, std::string(payload)};
      fail();
    }
    if (id.sequence == 0) let_arrive();
    store(id, payload);
    if (fails_) fail();
    // The answer was lost: the same id is sent again.
    if (world_.chance(world_.scenario.rates.append_doubted)) inner_.append(id, payload);
  }
  std::vector<Entry> read(EntryId after, std::size_t limit) override {
    return inner_.read(after, limit);
  }
  std::optional<EntryId> last() override { return inner_.last(); }
  void put(std::string_view name, std::string_view value) override { inner_.put(name, value); }
  std::optional<std::string> get(std::string_view name) override { return inner_.get(name); }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    inner_.put_and_trim(name, value, through);
  }
  void remove_all() override { inner_.remove_all(); }

 private:
  void store(EntryId id, std::string_view payload) {
    inner_.append(id, payload);
    contents_.ever.push_back({id, std::string(payload)});
  }
  void let_arrive() {
    const std::optional<Entry> late = std::exchange(contents_.under_way, std::nullopt);
    if (!late || late->id <= contents_.now->last.value_or(EntryId{})) return;
    store(late->id, late->payload);
    ++world_.tally.late_writes;
  }
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kStore, "appending: the store does not answer");
  }

  World& world_;
  StoreContents& contents_;
  testing::MemoryStore inner_;
  bool fails_ = false;
  bool holds_back_ = false;
  std::optional<EntryId> asked_;
  std::vector<Entry> held_;
};

}  // namespace tune::simulator
