#include "simulator/simulated_store.h"

#include <algorithm>
#include <iterator>

#include "simulator/violation.h"

namespace tune::simulator {

namespace {

constexpr std::uint32_t kSilentWhileLacking = 100'000;  // of a million calls

// The driver may have had no answer yet for the last entry that a server lacks: it alone is sent
// again.
void put_in(World& world, StoreContents& contents, const Entry& entry) {
  const std::optional<EntryId> last = contents.now->last;
  const bool is_new = !last || entry.id > *last;
  if (is_new && contents.lacks_some()) {
    const EntryId next{last->epoch, last->sequence + 1};
    if (entry.id != next || entry.id != contents.whole->last) {
      violate("nothing is appended where entries are missing", to_string(entry.id));
    }
    contents.whole.reset();
  }
  testing::MemoryStore(contents.now).append(entry.id, entry.payload);
  if (!is_new) return;
  world.trace("store", [&] { return "has entry " + to_string(entry.id); });
  if (contents.ever.empty() || entry.id > contents.ever.back().id) contents.ever.push_back(entry);
  contents.changed.clear();
}

// A driver makes good what a server lacks up to the last entry that it had an answer for. One more may
// have been there: it is as if it had never been, unless it is sent again.
void forget_unanswered(StoreContents& contents, EntryId through) {
  const EntryId last = std::max(through, contents.now->last.value_or(through));
  if (contents.answered > last) {
    violate("no answered entry is lost", to_string(*contents.answered));
  }
  auto& ever = contents.ever;
  if (ever.empty() || ever.back().id <= last) return;
  ever.pop_back();
  if (!ever.empty() && ever.back().id > last) violate("no answered entry is lost", to_string(ever.back().id));
}

}  // namespace

void SimulatedStore::fall_silent_soon(StoreCall in, std::optional<Time> duration) {
  if (calls_left_) return;
  fails_in_ = in;
  silent_for_ = duration;
  calls_left_ = static_cast<int>(world_.random.integer(0, 3));
}

// ---- Calls --------------------------------------------------------------------------------------

void SimulatedStore::append(EntryId id, std::string_view payload) {
  const bool is_again = asked_ == id;
  asked_ = id;
  const Entry entry{id, std::string(payload)};
  write(
      StoreCall::kAny,
      [&world = world_, &contents = contents_, entry, is_again] {
        const bool is_there = contents.now->last >= entry.id;
        if (is_again) ++(is_there ? world.tally.appends_found : world.tally.appends_made_again);
        put_in(world, contents, entry);
      },
      world_.tally.appends_lost);
  contents_.answered = id;
  // The answer was lost: the same id is sent again.
  if (world_.chance(world_.scenario.rates.append_doubted)) inner_.append(id, payload);
}

std::vector<Entry> SimulatedStore::read(EntryId after, std::size_t limit) {
  return ask<std::vector<Entry>>([&] {
    read_up_to_ = contents_.now->last;
    return inner_.read(after, limit);
  });
}

std::optional<EntryId> SimulatedStore::last() {
  return ask<std::optional<EntryId>>([&] { return inner_.last(); });
}

std::optional<std::string> SimulatedStore::get(std::string_view name) {
  return ask<std::optional<std::string>>([&] { return inner_.get(name); });
}

void SimulatedStore::put(std::string_view name, std::string_view value) {
  if (name != "snapshot.parts") ++world_.tally.snapshot_parts;
  change(name, std::string(value));
}

void SimulatedStore::change(std::string_view name, std::optional<std::string> value) {
  write(
      StoreCall::kTrim,
      [&all = contents_, name = std::string(name), value = std::move(value)] {
        testing::MemoryStore store(all.now);
        all.changed.emplace_back(name, store.get(name));
        value ? store.put(name, *value) : store.remove(name);
      },
      world_.tally.trims_lost);
}

void SimulatedStore::put_and_trim(std::string_view name, std::string_view value, EntryId through) {
  write(
      StoreCall::kTrim,
      [&all = contents_, name = std::string(name), value = std::string(value), through] {
        testing::MemoryStore(all.now).put_and_trim(name, value, through);
        all.changed.clear();
        if (all.whole) forget_unanswered(all, through);
        all.whole.reset();
      },
      world_.tally.trims_lost);
}

// A call takes its time before it has its effect and again until the answer is there.
void SimulatedStore::write(StoreCall call, const std::function<void()>& effect,
                           std::uint64_t& lost) {
  reach_server(true);
  if (!falls_silent_in(call)) {
    effect();
    return take_time();
  }
  ++lost;
  if (world_.chance(500'000)) {
    effect();
  } else if (world_.chance(500'000)) {
    contents_.under_way = effect;
  }
  throw StoreSilentError("the store does not answer", "the store: no answer");
}

template <class T, class Read>
T SimulatedStore::ask(Read read) {
  reach_server(false);
  if (falls_silent_in(StoreCall::kRead)) {
    ++world_.tally.reads_lost;
    throw StoreSilentError("the store does not answer", "the store: no answer");
  }
  T answer = read();
  take_time();
  return answer;
}

// ---- The connection -----------------------------------------------------------------------------

// A write under way arrives before anything that is sent anew. On a new connection the look comes
// before the call that made it.
void SimulatedStore::reach_server(bool writes) {
  take_time();
  if (is_silent()) throw StoreSilentError("the store does not answer", "the store: no answer");
  const auto& whole = contents_.whole;
  if (whole && !(asked_ && asked_->epoch == whole->last->epoch)) {
    *contents_.now = *whole;
    contents_.changed.clear();
    contents_.whole.reset();
    contents_.under_way = nullptr;  // it was on its way to the other server
  }
  if (writes) let_arrive();
  if (looks_) return;
  if (writes) lose_some();
  if (needs_look_) look();
}

void SimulatedStore::look() {
  looks_ = true;
  try {
    reconnected();
  } catch (const StoreSilentError&) {
    looks_ = false;  // and the look is still to be done
    ++world_.tally.silent_looks;
    throw;
  } catch (...) {
    looks_ = needs_look_ = false;
    throw;
  }
  looks_ = needs_look_ = false;
}

// The connection is lost, and found again at a server that was behind by some of the last writes.
void SimulatedStore::lose_some() {
  if (contents_.lacks_some() || !asked_ || asked_->sequence == 0) return;
  auto& now = *contents_.now;
  if (!now.last || now.last->epoch != asked_->epoch) return;
  if (goes_back_left_ == 0 || !world_.chance(world_.scenario.rates.store_goes_back)) return;
  --goes_back_left_;
  const testing::MemoryStore::Contents whole = now;
  auto& changed = contents_.changed;
  std::int64_t count = world_.random.integer(0, 4 + static_cast<std::int64_t>(changed.size()));
  for (; count > 0 && !changed.empty(); --count) {
    auto& [name, value] = changed.back();
    value ? void(now.values.insert_or_assign(name, *value)) : void(now.values.erase(name));
    changed.pop_back();
  }
  bool lacks_some = false;
  for (; count > 0 && !now.entries.empty() && now.entries.rbegin()->first.sequence > 0; --count) {
    now.entries.erase(std::prev(now.entries.end()));
    now.last = EntryId{now.last->epoch, now.last->sequence - 1};
    lacks_some = true;
  }
  ++world_.tally.went_back;
  world_.trace("store", [&] { return "goes back to entry " + to_string(*now.last); });
  needs_look_ = true;
  if (!lacks_some) return;
  ++world_.tally.lost_entries;
  contents_.whole = whole;
}

void SimulatedStore::take_time() {
  if (!may(slow_calls_, kSlowCalls)) return;
  if (!world_.chance(world_.scenario.rates.store_slow)) return;
  ++slow_calls_;
  ++world_.tally.slow_calls;
  world_.wait(world_.about(world_.scenario.store_delay));
}

// Work that begins anew each time, such as a snapshot in many parts, must have an end.
bool SimulatedStore::may(int happened, int limit) {
  if (entries_ == contents_.ever.size()) return happened < limit;
  entries_ = contents_.ever.size();
  slow_calls_ = silences_ = 0;
  return true;
}

// ---- Silence ------------------------------------------------------------------------------------

bool SimulatedStore::falls_silent_in(StoreCall call) {
  const bool is_planned = calls_left_ && (fails_in_ == StoreCall::kAny || fails_in_ == call);
  if (is_planned && (*calls_left_)-- == 0) {
    fall_silent(silent_for_);
    return true;
  }
  const std::uint32_t rate = world_.scenario.rates.store_silent;
  if (waits_ || rate == 0 || contents_.silences >= kAllSilences) return false;
  if (!may(silences_, kSilences)) return false;
  if (!world_.chance(contents_.lacks_some() ? kSilentWhileLacking : rate)) return false;
  ++silences_;
  ++contents_.silences;
  fall_silent(world_.about(world_.scenario.store_silence));
  return true;
}

void SimulatedStore::fall_silent(std::optional<Time> duration) {
  world_.trace("store", [] { return "falls silent"; });
  ++world_.tally.silences;
  if (contents_.lacks_some()) ++world_.tally.silences_while_lacking;
  is_silent_ = true;
  silent_until_.reset();
  if (duration) silent_until_ = world_.queue.now() + *duration;
}

// After the silence the connection is the same, or another one.
bool SimulatedStore::is_silent() {
  if (!is_silent_ || !silent_until_ || world_.queue.now() < *silent_until_) return is_silent_;
  is_silent_ = false;
  if (world_.chance(500'000)) needs_look_ = true;
  return false;
}

void SimulatedStore::let_arrive() {
  const auto late = std::exchange(contents_.under_way, {});
  if (!late) return;
  try {
    late();
    ++world_.tally.late_writes;
  } catch (const SupersededError&) {  // another has begun its epoch meanwhile
  }
}

}  // namespace tune::simulator
