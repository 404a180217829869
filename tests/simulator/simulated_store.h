// The journal's store of a simulated experiment: what all drivers share, with every entry ever
// appended, and one driver's connection to it, which may be slow and may be lost in any call, or
// found again at a server that lacks what was written last.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
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
  // What a driver that has given it up was writing: it arrives just before another one takes its
  // epoch, which has read all that is there by then.
  std::function<void()> under_way;
  // Named values as they were, newest last, before each was changed since the last append or trim.
  std::vector<std::pair<std::string, std::optional<std::string>>> changed;
};

class SimulatedStore : public Store {
 public:
  SimulatedStore(World& world, StoreContents& contents)
      : world_(world), contents_(contents), inner_(contents.now) {}

  // It fails for good in one of the next calls of that kind: what that writes may be stored all the
  // same, or still be under way.
  void fail_soon(StoreCall in) {
    if (calls_left_) return;
    fails_in_ = in;
    calls_left_ = static_cast<int>(world_.random.integer(0, 3));
  }
  // The newest entry that was to be appended.
  std::optional<EntryId> asked() const { return asked_; }
  // The newest entry that was there when entries were read last.
  std::optional<EntryId> read_up_to() const { return read_up_to_; }

  void append(EntryId id, std::string_view payload) override {
    asked_ = id;
    lose_some();
    const Entry entry{id, std::string(payload)};
    if (id.sequence == 0) let_arrive();
    write(
        StoreCall::kAny, [&contents = contents_, entry] { put_in(contents, entry); },
        world_.tally.appends_lost);
    // The answer was lost: the same id is sent again.
    if (world_.chance(world_.scenario.rates.append_doubted)) inner_.append(id, payload);
  }
  std::vector<Entry> read(EntryId after, std::size_t limit) override {
    return ask<std::vector<Entry>>([&] {
      read_up_to_ = contents_.now->last;
      return inner_.read(after, limit);
    });
  }
  std::optional<EntryId> last() override {
    return ask<std::optional<EntryId>>([&] { return inner_.last(); });
  }
  void put(std::string_view name, std::string_view value) override {
    if (name != "snapshot.parts") ++world_.tally.snapshot_parts;
    change(name, std::string(value));
  }
  void remove(std::string_view name) override { change(name, {}); }
  std::optional<std::string> get(std::string_view name) override {
    return ask<std::optional<std::string>>([&] { return inner_.get(name); });
  }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    lose_some();
    write(
        StoreCall::kTrim,
        [&all = contents_, name = std::string(name), value = std::string(value), through] {
          testing::MemoryStore(all.now).put_and_trim(name, value, through);
          all.changed.clear();
        },
        world_.tally.trims_lost);
    lacks_some_ = false;
  }
  void remove_all() override { inner_.remove_all(); }

 private:
  static void put_in(StoreContents& contents, const Entry& entry) {
    const bool is_new = !contents.now->last || entry.id > *contents.now->last;
    testing::MemoryStore(contents.now).append(entry.id, entry.payload);
    if (!is_new) return;
    contents.ever.push_back(entry);
    contents.changed.clear();
  }

  void change(std::string_view name, std::optional<std::string> value) {
    lose_some();
    write(
        StoreCall::kTrim,
        [&all = contents_, name = std::string(name), value = std::move(value)] {
          testing::MemoryStore store(all.now);
          all.changed.emplace_back(name, store.get(name));
          value ? store.put(name, *value) : store.remove(name);
        },
        world_.tally.trims_lost);
  }

  // The connection is lost, and found again at a server that was behind by some of the last writes.
  // That driver is the one that has the journal, and nobody else comes to it until all is whole.
  void lose_some() {
    if (lacks_some_ || !asked_ || asked_->sequence == 0) return;
    auto& now = *contents_.now;
    if (!now.last || now.last->epoch != asked_->epoch) return;
    if (goes_back_left_ == 0 || !world_.chance(world_.scenario.rates.store_goes_back)) return;
    --goes_back_left_;
    auto& changed = contents_.changed;
    std::int64_t count = world_.random.integer(0, 4 + static_cast<std::int64_t>(changed.size()));
    for (; count > 0 && !changed.empty(); --count) {
      auto& [name, value] = changed.back();
      value ? void(now.values.insert_or_assign(name, *value)) : void(now.values.erase(name));
      changed.pop_back();
    }
    for (; count > 0 && !now.entries.empty() && now.entries.rbegin()->first.sequence > 0; --count) {
      now.entries.erase(std::prev(now.entries.end()));
      now.last = EntryId{now.last->epoch, now.last->sequence - 1};
      lacks_some_ = true;
    }
    ++world_.tally.went_back;
    if (lacks_some_) ++world_.tally.lost_entries;
    world_.trace("store", [&] { return "goes back to entry " + to_string(*now.last); });
    reconnected();
  }

  // A call takes its time before it has its effect and again until the answer is there.
  void write(StoreCall call, const std::function<void()>& effect, std::uint64_t& lost) {
    take_time();
    if (!is_lost_in(call)) {
      effect();
      return take_time();
    }
    ++lost;
    if (world_.chance(500'000)) {
      effect();
    } else if (world_.chance(500'000)) {
      contents_.under_way = effect;
    }
    fail();
  }
  template <class T, class Read>
  T ask(Read read) {
    take_time();
    if (is_lost_in(StoreCall::kRead)) ++world_.tally.reads_lost, fail();
    T answer = read();
    take_time();
    return answer;
  }

  void take_time() {
    if (lacks_some_ || !world_.chance(world_.scenario.rates.store_slow)) return;
    ++world_.tally.slow_calls;
    world_.wait(world_.about(world_.scenario.store_delay));
  }
  bool is_lost_in(StoreCall call) {
    if (lacks_some_) return false;
    const bool is_due = calls_left_ && (fails_in_ == StoreCall::kAny || fails_in_ == call);
    return is_due && (*calls_left_)-- <= 0;
  }

  void let_arrive() {
    const auto late = std::exchange(contents_.under_way, {});
    if (!late) return;
    try {
      late();
      ++world_.tally.late_writes;
    } catch (const SupersededError&) {  // another has begun its epoch meanwhile
    }
  }
  [[noreturn]] static void fail() { throw Error(ErrorCode::kStore, "the store does not answer"); }

  World& world_;
  StoreContents& contents_;
  testing::MemoryStore inner_;
  StoreCall fails_in_ = StoreCall::kAny;
  std::optional<int> calls_left_;  // of those, that are answered
  int goes_back_left_ = 8;   // for one driver: each time what was begun begins anew
  bool lacks_some_ = false;  // entries: what comes next makes that good
  std::optional<EntryId> asked_;
  std::optional<EntryId> read_up_to_;
};

}  // namespace tune::simulator
