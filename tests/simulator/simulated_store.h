// The journal's store of a simulated experiment: what all drivers share, with every entry ever
// appended, and one driver's connection to it, which may be slow and may be lost in any call.
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
  // What a driver that has given it up was writing: it arrives just before another one takes its
  // epoch, which has read all that is there by then.
  std::function<void()> under_way;
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
  // Planted: entries are only kept here until `settle`.
  void hold_back() { holds_back_ = true; }
  void settle() {
    for (const Entry& entry : std::exchange(held_, {})) put_in(contents_, entry);
  }

  // The newest entry that was to be appended.
  std::optional<EntryId> asked() const { return asked_; }
  // The newest entry that was there when entries were read last.
  std::optional<EntryId> read_up_to() const { return read_up_to_; }

  void append(EntryId id, std::string_view payload) override {
    asked_ = id;
    Entry entry{id, std::string(payload)};
    if (holds_back_) return held_.push_back(std::move(entry));
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
  void put(std::string_view name, std::string_view value) override { inner_.put(name, value); }
  std::optional<std::string> get(std::string_view name) override {
    return ask<std::optional<std::string>>([&] { return inner_.get(name); });
  }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    write(
        StoreCall::kTrim,
        [contents = contents_.now, name = std::string(name), value = std::string(value), through] {
          testing::MemoryStore(contents).put_and_trim(name, value, through);
        },
        world_.tally.trims_lost);
  }
  void remove_all() override { inner_.remove_all(); }

 private:
  static void put_in(StoreContents& contents, const Entry& entry) {
    const bool is_new = !contents.now->last || entry.id > *contents.now->last;
    testing::MemoryStore(contents.now).append(entry.id, entry.payload);
    if (is_new) contents.ever.push_back(entry);
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
    if (!world_.chance(world_.scenario.rates.store_slow)) return;
    ++world_.tally.slow_calls;
    world_.wait(world_.about(world_.scenario.store_delay));
  }
  bool is_lost_in(StoreCall call) {
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
  bool holds_back_ = false;
  std::optional<EntryId> asked_;
  std::optional<EntryId> read_up_to_;
  std::vector<Entry> held_;
};

}  // namespace tune::simulator
