// The journal's snapshot: what stands for the entries that were trimmed, and what is refused.
#include "tune/drive/journal.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/refusal.h"
#include "memory_store.h"

namespace tune {
namespace {

Turn turn(int number) {
  Turn made;
  made.now = std::chrono::seconds(number);
  made.events.push_back(InterruptRequested{number});
  return made;
}

// The parts that a replay hands over: "s<seconds>" for a snapshot, "<number>" for a turn.
class Heard {
 public:
  Journal::Visitor visitor() {
    return {[this](const Snapshot& snapshot) {
              words.push_back("s" + std::to_string(snapshot.now / std::chrono::seconds(1)));
            },
            [this](const Turn& turn) {
              const auto& event = std::get<InterruptRequested>(turn.events.at(0));
              words.push_back(std::to_string(event.signal));
            }};
  }
  void replay(Journal& journal) { journal.replay(visitor()); }
  std::vector<std::string> words;
};

using Words = std::vector<std::string>;

// Takes the epoch; gives what was found meanwhile.
Words begin(Journal& journal, const Turn& turn) {
  Heard heard;
  journal.take_epoch(turn, heard.visitor());
  return heard.words;
}

Words heard_from(Store& store) {
  Journal journal(store);
  Heard heard;
  heard.replay(journal);
  return heard.words;
}

std::string cause_of_refusal(Store& store) {
  return testing::refusal([&] { heard_from(store); }, ErrorCode::kProtocol);
}

TEST_CASE("a replay begins at the snapshot and goes on with what was appended since") {
  testing::MemoryStore store;
  Journal journal(store);
  begin(journal, turn(1));
  for (int i = 2; i <= 3; ++i) journal.append(turn(i));
  CHECK(heard_from(store) == Words{"1", "2", "3"});
  journal.store({journal.last(), std::chrono::seconds(3), "controller", "logger"});
  CHECK(store.read({}, 10).empty());
  CHECK(heard_from(store) == Words{"s3"});
  journal.append(turn(4));
  journal.append(turn(5));
  CHECK(heard_from(store) == Words{"s3", "4", "5"});
  journal.store({journal.last(), std::chrono::seconds(5), "", ""});
  CHECK(heard_from(store) == Words{"s5"});

  Journal next(store);
  Heard heard;
  heard.replay(next);
  CHECK_FALSE(next.is_empty());
  CHECK(next.next_epoch() == 2);  // the trimmed entries count
  begin(next, turn(6));
  CHECK(store.last() == EntryId{2, 0});
  CHECK(heard_from(store) == Words{"s5", "6"});
}

TEST_CASE("a snapshot comes back as it was taken") {
  testing::MemoryStore store;
  Journal journal(store);
  begin(journal, turn(1));
  const std::string bytes("\0\xff\x93 any", 7);
  journal.store({journal.last(), std::chrono::seconds(9), bytes, "of the logger"});
  Journal reader(store);
  int count = 0;
  reader.replay({[&](const Snapshot& snapshot) {
                   ++count;
                   CHECK(snapshot.through == EntryId{1, 0});
                   CHECK(snapshot.now == std::chrono::seconds(9));
                   CHECK(snapshot.controller == bytes);
                   CHECK(snapshot.logger == "of the logger");
                 },
                 [](const Turn&) { FAIL("there is no turn"); }});
  CHECK(count == 1);
}

TEST_CASE("a snapshot may be stored after further turns") {
  testing::MemoryStore store;
  Journal journal(store);
  begin(journal, turn(1));
  const EntryId then = journal.last();
  journal.append(turn(2));
  journal.append(turn(3));
  journal.store({then, std::chrono::seconds(1), "", ""});
  CHECK(heard_from(store) == Words{"s1", "2", "3"});
}

TEST_CASE("a follower of a running journal goes on over a snapshot that another took") {
  testing::MemoryStore store;
  Journal writer(store);
  Journal follower(store);
  Heard heard;
  begin(writer, turn(1));
  heard.replay(follower);
  CHECK(heard.words == Words{"1"});
  writer.append(turn(2));
  writer.store({writer.last(), std::chrono::seconds(2), "", ""});
  writer.append(turn(3));
  heard.replay(follower);
  CHECK(heard.words == Words{"1", "s2", "3"});
  writer.append(turn(4));
  heard.replay(follower);
  CHECK(heard.words == Words{"1", "s2", "3", "4"});
  // A snapshot of what was heard already says nothing new.
  writer.store({writer.last(), std::chrono::seconds(4), "", ""});
  heard.replay(follower);
  CHECK(heard.words.size() == 4);
}

TEST_CASE("a driver that was superseded takes no snapshot") {
  testing::MemoryStore store;
  Journal old(store);
  begin(old, turn(1));
  Journal next(store);
  Heard heard;
  heard.replay(next);
  begin(next, turn(2));
  CHECK_THROWS_AS(old.store({old.last(), {}, "stale", ""}), SupersededError);
  CHECK_THROWS_AS(old.append(turn(3)), SupersededError);
  CHECK(heard_from(store) == Words{"1", "2"});
}

TEST_CASE("a driver that takes the epoch hears what an older one has appended since the replay") {
  testing::MemoryStore store;
  Journal old(store);
  begin(old, turn(1));
  Journal next(store);
  Heard heard;
  heard.replay(next);
  CHECK(heard.words == Words{"1"});
  Turn first = turn(2);
  SUBCASE("entries") {
    old.append(turn(3));  // 1-1 and 1-2, as if they had still been under way
    old.append(turn(5));
    const Turn taken = next.take_epoch(first, heard.visitor());
    CHECK(heard.words == Words{"1", "3", "5"});
    CHECK(taken.now == std::chrono::seconds(5));  // none goes back in time
    CHECK(heard_from(store) == Words{"1", "3", "5", "2"});
  }
  SUBCASE("and a snapshot") {
    old.append(turn(3));
    old.store({old.last(), std::chrono::seconds(3), "", ""});
    old.append(turn(5));
    CHECK(next.take_epoch(first, heard.visitor()).now == std::chrono::seconds(5));
    CHECK(heard.words == Words{"1", "s3", "5"});
    CHECK(heard_from(store) == Words{"s3", "5", "2"});
  }
  SUBCASE("and a snapshot of all of them") {
    old.append(turn(3));
    old.store({old.last(), std::chrono::seconds(3), "", ""});
    CHECK(next.take_epoch(first, heard.visitor()).now == std::chrono::seconds(3));
    CHECK(heard.words == Words{"1", "s3"});
    CHECK(heard_from(store) == Words{"s3", "2"});
  }
  CHECK_THROWS_AS(old.append(turn(6)), SupersededError);
  CHECK(store.last() == EntryId{2, 0});
  next.append(turn(7));
}

TEST_CASE("a driver that takes the epoch hears more entries than are fetched at a time") {
  testing::MemoryStore store;
  Journal old(store);
  begin(old, turn(1));
  Journal next(store);
  Heard heard;
  heard.replay(next);
  for (int i = 2; i <= 2000; ++i) old.append(turn(i));
  CHECK(begin(next, turn(1)).size() == 1999);
  CHECK(heard_from(store).size() == 2001);
}

TEST_CASE("a follower hears the snapshot that stands for the end of an epoch") {
  testing::MemoryStore store;
  Journal old(store);
  Journal follower(store);
  Heard heard;
  begin(old, turn(1));
  heard.replay(follower);
  old.append(turn(2));
  old.store({old.last(), std::chrono::seconds(2), "", ""});
  Journal next(store);
  next.replay(Heard().visitor());
  begin(next, turn(3));
  heard.replay(follower);
  CHECK(heard.words == Words{"1", "s2", "3"});
}

// Plays two others between the append that takes the epoch and what is read after it.
class OvertakenStore : public testing::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  std::function<void()> after_append;
  void append(EntryId id, std::string_view payload) override {
    MemoryStore::append(id, payload);
    if (after_append) std::exchange(after_append, {})();
  }
};

TEST_CASE("a driver that is overtaken while it takes the epoch says so") {
  const auto contents = std::make_shared<testing::MemoryStore::Contents>();
  OvertakenStore store(contents);
  testing::MemoryStore others(contents);
  Journal first(store);
  Journal second(others);
  SUBCASE("by an entry") {
    store.after_append = [&] {
      second.replay(Heard().visitor());
      begin(second, turn(2));
    };
    CHECK_THROWS_AS(begin(first, turn(1)), SupersededError);
  }
  SUBCASE("by one that has trimmed the entry already") {
    store.after_append = [&] {
      second.replay(Heard().visitor());
      begin(second, turn(2));
      second.store({{1, 0}, std::chrono::seconds(1), "", ""});
    };
    CHECK_THROWS_AS(begin(first, turn(1)), SupersededError);
  }
  SUBCASE("by one that has trimmed all") {
    store.after_append = [&] {
      second.replay(Heard().visitor());
      begin(second, turn(2));
      second.store({second.last(), std::chrono::seconds(2), "", ""});
    };
    CHECK_THROWS_AS(begin(first, turn(1)), SupersededError);
  }
}

TEST_CASE("missing and damaged parts are refused by name") {
  testing::MemoryStore store;
  SUBCASE("an entry in the middle") {
    store.append({1, 0}, encoded(turn(1)));
    store.append({1, 2}, encoded(turn(3)));
    CHECK_HAS(cause_of_refusal(store), "entry 1-2: the entries between 1-0 and it are missing");
  }
  SUBCASE("the first entries, without a snapshot") {
    store.append({1, 5}, encoded(turn(6)));
    CHECK_HAS(cause_of_refusal(store), "entry 1-5");
  }
  SUBCASE("the begin of an epoch") {
    store.append({1, 0}, encoded(turn(1)));
    store.append({2, 1}, encoded(turn(2)));
    CHECK_HAS(cause_of_refusal(store), "entry 2-1");
  }
  SUBCASE("a turn before the one before it") {
    store.append({1, 0}, encoded(turn(2)));
    store.append({1, 1}, encoded(turn(1)));
    CHECK_HAS(cause_of_refusal(store), "journal entry 1-1: its time is before");
  }
  SUBCASE("a turn before the snapshot") {
    Journal journal(store);
    begin(journal, turn(1));
    journal.store({journal.last(), std::chrono::seconds(9), "", ""});
    journal.append(turn(8));
    CHECK_HAS(cause_of_refusal(store), "journal entry 1-1: its time is before");
  }
  SUBCASE("bytes that are not a turn") {
    store.append({1, 0}, "\xc1");
    CHECK_HAS(cause_of_refusal(store), "journal entry 1-0");
  }
  SUBCASE("bytes that are not a snapshot") {
    store.put("snapshot", "\x95\x01");
    CHECK_HAS(cause_of_refusal(store), "the journal's snapshot");
  }
}

TEST_CASE("a snapshot is due when the entries have outgrown the last one") {
  testing::MemoryStore store;
  Journal journal(store);
  Turn large = turn(1);
  Warning warning;
  warning.text.assign(1u << 20, 'x');
  large.events.push_back(FromAgent{AgentNumber{0}, warning});
  begin(journal, large);
  for (int i = 1; i < 3; ++i) journal.append(large);
  CHECK_FALSE(journal.snapshot_is_due());  // 3 MiB and a little; 4 MiB is the limit
  journal.append(large);
  CHECK(journal.snapshot_is_due());
  journal.store({journal.last(), {}, std::string(6u << 20, 'c'), ""});
  for (int i = 0; i < 5; ++i) journal.append(large);
  CHECK_FALSE(journal.snapshot_is_due());  // 5 MiB since one of 6 MiB
  journal.append(large);
  CHECK(journal.snapshot_is_due());

  // One who takes over counts the same.
  Journal next(store);
  Heard heard;
  next.replay({[](const Snapshot&) {}, [](const Turn&) {}});
  CHECK(next.snapshot_is_due());
}

TEST_CASE("a snapshot of any size is stored") {
  testing::MemoryStore store;
  Journal journal(store, 1000);
  begin(journal, turn(1));
  const std::string large(300'000, 'c');
  journal.store({journal.last(), std::chrono::seconds(1), large, "l"});
  CHECK(store.read({}, 10).empty());
  CHECK(store.get("snapshot").value().size() < 10'000);  // the list of its parts
  Journal reader(store);
  std::string found;
  reader.replay({[&](const Snapshot& snapshot) { found = snapshot.controller; },
                 [](const Turn&) { FAIL("there is no turn"); }});
  CHECK(found == large);
}

// ---- Formats

TEST_CASE("entries and snapshots of the first format are read") {
  testing::MemoryStore store;
  PackWriter entry;  // without a format
  entry.array(3), entry.integer(1'000'000'000), entry.integer(0);
  entry.array(1), encode(entry, Event(InterruptRequested{7}));
  store.append({1, 0}, entry.bytes());
  CHECK(heard_from(store) == Words{"7"});
  PackWriter snapshot;
  snapshot.array(5), snapshot.integer(1), snapshot.integer(0), snapshot.integer(2'000'000'000);
  snapshot.binary("c"), snapshot.binary("l");
  store.put_and_trim("snapshot", snapshot.bytes(), {1, 0});
  CHECK(heard_from(store) == Words{"s2"});
  CHECK(turn_of(entry.bytes()).format == kFirstJournalFormat);
  CHECK(turn_of(encoded(turn(1))).format == kJournalFormat);
}

TEST_CASE("what later builds add to entries and snapshots is skipped") {
  testing::MemoryStore store;
  PackWriter snapshot;
  snapshot.array(8), snapshot.integer(1), snapshot.integer(0), snapshot.integer(2'000'000'000);
  snapshot.binary("c"), snapshot.binary("l"), encode(snapshot, kJournalFormat);
  snapshot.text("more"), snapshot.array(0);
  store.put("snapshot", snapshot.bytes());
  PackWriter entry;
  entry.array(6), entry.integer(3'000'000'000), entry.integer(0);
  entry.array(1), encode(entry, Event(InterruptRequested{7})), encode(entry, kJournalFormat);
  entry.array(1), entry.text("the driver's own words");
  entry.map(1), entry.text("more"), entry.boolean(true);
  store.append({1, 1}, entry.bytes());
  CHECK(heard_from(store) == Words{"s2", "7"});
}

TEST_CASE("a newer format is refused, naming both, and nothing is handed over before") {
  testing::MemoryStore store;
  store.append({1, 0}, encoded(turn(1)));
  const auto check = [&] {
    Journal journal(store);
    Heard heard;
    const std::string told = testing::refusal([&] { heard.replay(journal); }, ErrorCode::kProtocol);
    CHECK_HAS(told, "format " + std::to_string(kJournalFormat + 1));
    CHECK_HAS(told, "reads up to " + std::to_string(kJournalFormat));
    CHECK_HAS(told, "go on with the newer tune");
    CHECK(heard.words.empty());
    return told;
  };
  SUBCASE("of an entry that this build could read") {
    Turn newer = turn(2);
    newer.format = kJournalFormat + 1;
    store.append({2, 0}, encoded(newer));
    CHECK_HAS(check(), "journal entry 2-0");
  }
  SUBCASE("of one that it could not") {
    PackWriter newer;
    newer.array(5), newer.integer(0), newer.text("later"), newer.map(0);
    newer.integer(kJournalFormat + 1), newer.null();
    store.append({2, 0}, newer.bytes());
    CHECK_HAS(check(), "journal entry 2-0");
  }
  SUBCASE("of a snapshot") {
    PackWriter newer;
    newer.array(6), newer.integer(0), newer.integer(5), newer.integer(0);
    newer.binary(""), newer.binary(""), newer.integer(kJournalFormat + 1);
    store.put("snapshot", newer.bytes());
    CHECK_HAS(check(), "the journal's snapshot");
  }
}

// An entry of this format in which the second event is one that this build does not know.
std::string with_unknown_kind(const std::function<void(PackWriter&)>& write_event) {
  PackWriter entry;
  entry.array(4), entry.integer(2'000'000'000), entry.integer(0);
  entry.array(2), encode(entry, Event(InterruptRequested{2})), write_event(entry);
  encode(entry, kJournalFormat);
  return entry.take();
}

TEST_CASE("a kind of event that is not known is refused, and not skipped") {
  testing::MemoryStore store;
  store.append({1, 0}, encoded(turn(1)));
  SUBCASE("of the driver") {
    store.append({1, 1}, with_unknown_kind([](PackWriter& out) {
                   out.array(2), out.integer(std::variant_size_v<Event>), out.array(0);
                 }));
  }
  SUBCASE("of an agent") {
    store.append({1, 1}, with_unknown_kind([](PackWriter& out) {
                   out.array(2), out.integer(1), out.array(2), out.integer(1);  // FromAgent
                   out.array(2), out.integer(std::variant_size_v<AgentEvent>), out.array(0);
                 }));
  }
  Journal journal(store);
  Heard heard;
  const std::string told = testing::refusal([&] { heard.replay(journal); }, ErrorCode::kProtocol);
  CHECK_HAS(told, "journal entry 1-1");
  CHECK_HAS(told, "message type");
  CHECK(heard.words.empty());
}

TEST_CASE("a new kind of event raises the journal's format") {
  // Those of this format. Adding one changes the format and its number here, in one commit.
  CHECK(kJournalFormat == 13);
  CHECK(std::variant_size_v<Event> == 9);
  CHECK(std::variant_size_v<AgentEvent> == 10);
}

TEST_CASE("a damaged entry after many good ones is found before any is handed over") {
  testing::MemoryStore store;
  for (std::uint64_t i = 0; i < 600; ++i) {
    store.append({1, i}, encoded(turn(static_cast<int>(i))));
  }
  store.append({1, 600}, "\xc1");
  Journal journal(store);
  Heard heard;
  const std::string told = testing::refusal([&] { heard.replay(journal); }, ErrorCode::kProtocol);
  CHECK_HAS(told, "journal entry 1-600");
  CHECK(heard.words.empty());
}

// Counts what is fetched at once.
class FetchedStore : public testing::MemoryStore {
 public:
  std::vector<Entry> read(EntryId after, std::size_t limit) override {
    std::vector<Entry> entries = MemoryStore::read(after, limit);
    std::size_t bytes = 0;
    for (const Entry& entry : entries) bytes += entry.payload.size();
    most = std::max(most, bytes);
    ++reads;
    return entries;
  }
  std::size_t most = 0;
  int reads = 0;
};

TEST_CASE("of large entries few are fetched at a time, of small ones many") {
  FetchedStore store;
  Turn large = turn(1);
  Warning warning;
  warning.text.assign(1u << 20, 'x');
  large.events.push_back(FromAgent{AgentNumber{0}, warning});
  for (std::uint64_t i = 0; i < 50; ++i) store.append({1, i}, encoded(large));
  for (std::uint64_t i = 50; i < 3000; ++i) store.append({1, i}, encoded(turn(1)));
  // 50 MiB are more than is kept of the first pass.
  CHECK(heard_from(store).size() == 3000);
  CHECK(store.most < 9u << 20);
  // Each pass: 8, then 7 at a time up to the last large ones, then 128.
  CHECK(store.reads < 2 * (1 + 7 + 24));
}

}  // namespace
}  // namespace tune
