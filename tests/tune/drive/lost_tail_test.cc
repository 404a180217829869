// A server that takes the place of a lost one lacks what was written last: the journal is whole
// again before anything is appended, or belongs to another driver.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "fuzz/journal_experiment.h"
#include "memory_store.h"
#include "schedulers/scheduler_spec.h"
#include "tune/drive/journaled_controller.h"

namespace tune {
namespace {

using std::chrono::seconds;
using Contents = testing::MemoryStore::Contents;

// One whose connection is lost, as a test asks, in the next call: then it is made again to what the
// server holds by then.
class FailoverStore : public testing::MemoryStore {
 public:
  explicit FailoverStore(std::shared_ptr<Contents> contents) : MemoryStore(std::move(contents)) {}

  // Before one of the next calls, 0: the next, which writes.
  void fail_over(int calls, std::function<void(Contents&)> change) {
    calls_ = calls;
    change_ = std::move(change);
  }
  int failovers() const { return failovers_; }
  // In one of the next calls, once; what it writes is written or not.
  void fall_silent(int calls, bool is_written) {
    calls_before_silence_ = calls;
    is_written_ = is_written;
  }
  int silences() const { return silences_; }

  void append(EntryId id, std::string_view payload) override {
    call([&] { MemoryStore::append(id, payload); });
  }
  std::optional<EntryId> last() override {
    if (looks_) answer([] {});
    return MemoryStore::last();
  }
  void put(std::string_view name, std::string_view value) override {
    if (is_in_trim_) return MemoryStore::put(name, value);
    call([&] { MemoryStore::put(name, value); });
  }
  void remove(std::string_view name) override {
    call([&] { MemoryStore::remove(name); });
  }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    call([&] {
      is_in_trim_ = true;
      MemoryStore::put_and_trim(name, value, through);
      is_in_trim_ = false;
    });
  }

 private:
  void call(const std::function<void()>& write) {
    if (change_ && calls_-- <= 0) {
      ++failovers_;
      std::exchange(change_, {})(*contents());
      needs_look_ = true;
    }
    if (needs_look_) look();
    answer(write);
  }
  void look() {
    looks_ = true;
    try {
      reconnected();
    } catch (const StoreSilentError&) {
      looks_ = false;
      throw;
    } catch (...) {
      looks_ = needs_look_ = false;
      throw;
    }
    looks_ = needs_look_ = false;
  }
  void answer(const std::function<void()>& write) {
    const bool is_silent = calls_before_silence_ >= 0 && calls_before_silence_-- == 0;
    if (!is_silent || is_written_) write();
    if (!is_silent) return;
    ++silences_;
    throw StoreSilentError("the store is lost", "the store: no answer");
  }

  int calls_ = 0;
  int failovers_ = 0;
  int calls_before_silence_ = -1;
  bool is_written_ = false;
  int silences_ = 0;
  bool needs_look_ = false;
  bool looks_ = false;
  bool is_in_trim_ = false;
  std::function<void(Contents&)> change_;
};

void lose_entries(Contents& contents, int count) {
  for (; count > 0 && !contents.entries.empty(); --count) {
    contents.entries.erase(std::prev(contents.entries.end()));
  }
  contents.last.reset();
  if (!contents.entries.empty()) contents.last = contents.entries.rbegin()->first;
}

// No trial ends by itself.
ControllerSetup endless() {
  ControllerSetup setup = fuzz::journal_experiment();
  setup.scheduler = fifo().make();
  setup.scheduler->configure(setup.objective);
  return setup;
}

class Lines : public Logger {
 public:
  void record(const Record& record, const Telling&) override {
    if (std::holds_alternative<ResultRecorded>(record)) ++results;
  }
  void flush() override {}
  std::future<std::string> save() override { return ready(std::to_string(results)); }
  void restore(std::string_view state) override { results = std::stoi(std::string(state)); }
  int results = 0;
};

// A driver of an experiment with four trials, of which two run; it reports steps of trial 0.
class LostTailDriver {
 public:
  explicit LostTailDriver(
      Store& store, std::size_t part_bytes = SnapshotParts::kPartBytes,
      const std::function<void()>& when_read = [] {})
      : experiment(store, endless(), &lines, part_bytes) {
    experiment.replay();
    when_read();
    DriverStarted started;
    started.epoch = experiment.next_epoch();
    started.num_samples = 4;
    experiment.take_over({experiment.now(), {}, {started}});
    AgentHello hello;
    hello.cpu_units = 2 * kUnit;
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    commit({FromAgent{{}, hello}, FromAgent{{}, ready}});
  }
  // Again and again, where the store falls silent; then this is done first.
  void report(const std::function<void()>& when_silent = {}) {
    Reported report;
    report.trial = TrialNumber{0};
    report.attempt = experiment.controller().trials().at(0).attempt;
    report.iteration = ++step_;
    report.result = pack(Result{{"m", 0.5}});
    const Turn turn{experiment.now() + seconds(1), {}, {FromAgent{{}, report}}};
    while (true) {
      try {
        experiment.commit(turn);
        return;
      } catch (const StoreSilentError&) {
        REQUIRE(when_silent);
        when_silent();
      }
    }
  }
  void store_snapshot() { experiment.store(experiment.snapshot()); }

  Lines lines;
  JournaledController experiment;

 private:
  void commit(std::vector<Event> events) {
    experiment.commit({experiment.now() + seconds(1), {}, std::move(events)});
  }
  std::uint64_t step_ = 0;
};

void check_whole(const std::shared_ptr<Contents>& contents, const LostTailDriver& driver) {
  testing::MemoryStore store(contents);
  Lines lines;
  JournaledController reader(store, endless(), &lines);
  reader.replay();
  CHECK(reader.controller().save() == driver.experiment.controller().save());
  CHECK(lines.results == driver.lines.results);
}

TEST_CASE("entries that a store has lost are made good before the next is appended") {
  for (const int lost : {1, 2, 3, 100}) {
    CAPTURE(lost);
    const auto contents = std::make_shared<Contents>();
    FailoverStore store(contents);
    LostTailDriver driver(store);
    for (int i = 0; i < 5; ++i) driver.report();
    store.fail_over(0, [lost](Contents& now) { lose_entries(now, lost); });
    driver.report();
    CHECK(store.failovers() == 1);
    CHECK(driver.lines.results == 6);
    check_whole(contents, driver);
    const std::string mended = driver.experiment.take_mended();
    CHECK_HAS(mended, "has lost entries of the journal up to 1-6");
    CHECK_HAS(mended, "nothing is lost");
    CHECK(driver.experiment.take_mended().empty());
    CHECK(driver.experiment.snapshot_is_due());  // for which the files are on the disk
    driver.report();
    check_whole(contents, driver);
  }
}

// After it was read, and before the next driver has the epoch: that driver's first entry would
// follow whatever is left.
TEST_CASE(
    "entries that a store loses while a driver takes over are made good before its next one") {
  for (const int lost : {1, 3, 100}) {
    CAPTURE(lost);
    const auto contents = std::make_shared<Contents>();
    FailoverStore store(contents);
    {
      LostTailDriver former(store);
      for (int i = 0; i < 5; ++i) former.report();
    }
    const auto lose = [lost](Contents& now) { lose_entries(now, lost); };
    LostTailDriver driver(store, SnapshotParts::kPartBytes, [&] { store.fail_over(0, lose); });
    CHECK(store.failovers() == 1);
    check_whole(contents, driver);
    CHECK_HAS(driver.experiment.take_mended(), "has lost entries of the journal up to 2-0");
    CHECK(driver.experiment.snapshot_is_due());
    driver.store_snapshot();
    driver.report();
    check_whole(contents, driver);
  }
}

TEST_CASE("a connection that was lost and found again changes nothing") {
  const auto contents = std::make_shared<Contents>();
  FailoverStore store(contents);
  LostTailDriver driver(store);
  driver.report();
  SUBCASE("where the last entry is there") {}
  SUBCASE("where it was trimmed") {
    driver.store_snapshot();
  }
  store.fail_over(0, [](Contents&) {});
  driver.report();
  CHECK(store.failovers() == 1);
  CHECK(driver.experiment.take_mended().empty());
  CHECK_FALSE(driver.experiment.snapshot_is_due());
  check_whole(contents, driver);
}

TEST_CASE("an entry whose answer was lost with the connection is this driver's own") {
  const auto contents = std::make_shared<Contents>();
  FailoverStore store(contents);
  Journal journal(store);
  journal.take_epoch({seconds(0), {}, {}}, {[](const Snapshot&) {}, [](const Turn&) {}});
  const Turn turn{seconds(1), {}, {InterruptRequested{2}}};
  store.fail_over(0, [&](Contents& now) {
    now.entries.emplace(EntryId{1, 1}, encoded(turn));
    now.last = EntryId{1, 1};
  });
  journal.append(turn);
  CHECK(journal.last() == EntryId{1, 1});
  CHECK(store.failovers() == 1);
}

TEST_CASE("what another driver has appended meanwhile ends this one") {
  struct Case {
    const char* what;
    std::function<void(Contents&)> change;
  };
  for (const Case& c : {Case{"a later epoch",
                             [](Contents& now) {
                               lose_entries(now, 2);
                               now.entries.emplace(EntryId{2, 0}, "theirs");
                               now.last = EntryId{2, 0};
                             }},
                        Case{"other content under the last id",
                             [](Contents& now) { now.entries.rbegin()->second = "theirs"; }},
                        Case{"entries after the last", [](Contents& now) {
                               now.last = EntryId{1, now.last->sequence + 3};
                               now.entries.emplace(*now.last, "theirs");
                             }}}) {
    CAPTURE(c.what);
    const auto contents = std::make_shared<Contents>();
    FailoverStore store(contents);
    LostTailDriver driver(store);
    for (int i = 0; i < 3; ++i) driver.report();
    store.fail_over(0, c.change);
    CHECK_THROWS_AS(driver.report(), SupersededError);
    CHECK_FALSE(store.get("snapshot"));
  }
}

// Written in parts: their list, the parts, the snapshot, and what is removed of the former. All
// that was written since the former is lost before one of these, entries and parts.
void check_snapshot(bool is_older) {
  bool is_through = false;
  for (int calls = 0; !is_through; ++calls) {
    CAPTURE(calls);
    const auto contents = std::make_shared<Contents>();
    FailoverStore store(contents);
    LostTailDriver driver(store, 500);
    for (int i = 0; i < 3; ++i) driver.report();
    driver.store_snapshot();
    const Contents before = *contents;
    driver.report();
    const Snapshot then = driver.experiment.snapshot();
    if (is_older) driver.report();
    store.fail_over(calls, [before](Contents& now) { now = before; });
    driver.experiment.store(then);
    check_whole(contents, driver);
    is_through = store.failovers() == 0;
    driver.report();
    check_whole(contents, driver);
  }
}

TEST_CASE("a snapshot during which the server goes back in time is whole in the end") {
  SUBCASE("one of the last turn") {
    check_snapshot(false);
  }
  SUBCASE("one of a turn before") {
    check_snapshot(true);
  }
}

TEST_CASE(
    "a snapshot from before the tail was lost does not take the place of the one that mended it") {
  const auto contents = std::make_shared<Contents>();
  FailoverStore store(contents);
  LostTailDriver driver(store);
  driver.report();
  const Snapshot then = driver.experiment.snapshot();
  driver.report();
  store.fail_over(0, [](Contents& now) { lose_entries(now, 1); });
  driver.report();
  driver.experiment.store(then);
  check_whole(contents, driver);
  CHECK(driver.experiment.snapshot_is_due());
}

// In each call of it, also in the look that finds what is lost.
void check_silence_while_mending(std::size_t part_bytes, bool is_written) {
  CAPTURE(part_bytes);
  CAPTURE(is_written);
  bool is_through = false;
  for (int calls = 0; !is_through; ++calls) {
    CAPTURE(calls);
    const auto contents = std::make_shared<Contents>();
    FailoverStore store(contents);
    LostTailDriver driver(store, part_bytes);
    for (int i = 0; i < 3; ++i) driver.report();
    driver.store_snapshot();
    for (int i = 0; i < 3; ++i) driver.report();
    store.fail_over(0, [](Contents& now) { lose_entries(now, 2); });
    store.fall_silent(calls, is_written);
    driver.report([&] {
      JournaledController reader(store, endless(), nullptr);
      CHECK_NOTHROW(reader.replay());  // there is no hole
    });
    CHECK(store.failovers() == 1);
    CHECK(driver.lines.results == 7);
    CHECK_HAS(driver.experiment.take_mended(), "nothing is lost");
    check_whole(contents, driver);
    is_through = store.silences() == 0;
    CHECK((calls > 2 || !is_through));  // the look, the snapshot, the append
    store.fall_silent(-1, false);
    driver.report();
    check_whole(contents, driver);
  }
}

TEST_CASE("a store that falls silent while lost entries are made good gets nothing before them") {
  for (const std::size_t part_bytes : {SnapshotParts::kPartBytes, std::size_t{500}}) {
    for (const bool is_written : {false, true}) {
      check_silence_while_mending(part_bytes, is_written);
    }
  }
}

TEST_CASE("a driver whose connection was lost while it read the journal soon takes a snapshot") {
  const auto contents = std::make_shared<Contents>();
  {
    testing::MemoryStore store(contents);
    LostTailDriver former(store);
    former.report();
  }
  FailoverStore store(contents);
  store.fail_over(0, [](Contents& now) { lose_entries(now, 1); });  // as it takes the epoch
  LostTailDriver driver(store);
  CHECK(store.failovers() == 1);
  CHECK(driver.experiment.snapshot_is_due());
  driver.store_snapshot();
  CHECK_FALSE(driver.experiment.snapshot_is_due());
  check_whole(contents, driver);
}

}  // namespace
}  // namespace tune
