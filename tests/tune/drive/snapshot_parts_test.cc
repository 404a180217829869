// A snapshot that is cut into parts: it is there as a whole or not at all, whatever happens between
// two of them.
#include "tune/drive/snapshot_parts.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/refusal.h"
#include "memory_store.h"
#include "tune/drive/journal.h"

namespace tune {
namespace {

using Contents = testing::MemoryStore::Contents;

constexpr std::size_t kTiny = 10;

// The connection is lost for good after so many writes, of which the last may have its effect.
class DyingStore : public testing::MemoryStore {
 public:
  DyingStore(std::shared_ptr<Contents> contents, int writes, bool last_counts)
      : MemoryStore(std::move(contents)), left_(writes), last_counts_(last_counts) {}

  void put(std::string_view name, std::string_view value) override {
    write([&] { MemoryStore::put(name, value); });
  }
  void remove(std::string_view name) override {
    write([&] { MemoryStore::remove(name); });
  }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    // Not with this store's own put, which would count once more.
    write([&] { testing::MemoryStore(contents()).put_and_trim(name, value, through); });
  }
  bool has_died() const { return left_ < 0; }

 private:
  void write(const std::function<void()>& effect) {
    if (--left_ >= 0) return effect();
    if (last_counts_ && left_ == -1) effect();
    throw Error(ErrorCode::kStore, "the store does not answer");
  }
  int left_;
  bool last_counts_;
};

std::string text_of(char letter, std::size_t size) {
  std::string text(size, letter);
  for (std::size_t i = 0; i < size; i += 7) text[i] = static_cast<char>('0' + i % 10);
  return text;
}

void append_three(Store& store) {
  for (std::uint64_t i = 0; i < 3; ++i) store.append({1, i}, "entry");
}

// Names of parts that are in the store.
std::set<std::string> parts_in(const Contents& contents) {
  std::set<std::string> names;
  for (const auto& [name, value] : contents.values) {
    if (name != "snapshot" && name != "snapshot.parts") names.insert(name);
  }
  return names;
}

TEST_CASE("a snapshot of any size comes back as it was, in values of the part's size at most") {
  for (const std::size_t size : {0, 1, 9, 10, 11, 20, 21, 1000}) {
    CAPTURE(size);
    const auto contents = std::make_shared<Contents>();
    testing::MemoryStore store(contents);
    append_three(store);
    const std::string bytes = "\x95" + text_of('a', size);
    SnapshotParts(store, kTiny).write(bytes, {1, 1});
    CHECK(SnapshotParts(store).read() == bytes);
    CHECK(store.read({}, 10).size() == 1);
    for (const std::string& name : parts_in(*contents)) {
      CHECK(contents->values.at(name).size() <= kTiny);
    }
    CHECK(parts_in(*contents).size() == (bytes.size() > kTiny ? (bytes.size() + 9) / 10 : 0));
  }
}

TEST_CASE("parts of former snapshots do not stay") {
  const auto contents = std::make_shared<Contents>();
  testing::MemoryStore store(contents);
  append_three(store);
  SnapshotParts parts(store, kTiny);
  parts.write("\x95" + text_of('a', 50), {1, 0});
  CHECK(parts_in(*contents).size() == 6);
  SUBCASE("with a larger one") {
    parts.write("\x95" + text_of('b', 90), {1, 1});
    CHECK(parts_in(*contents).size() == 10);
  }
  SUBCASE("with a smaller one, by another driver") {
    SnapshotParts(store, kTiny).write("\x95" + text_of('b', 20), {1, 1});
    CHECK(parts_in(*contents).size() == 3);
  }
  SUBCASE("with one in a single value, by another driver") {
    SnapshotParts(store).write("\x95" + text_of('b', 90), {1, 1});
    CHECK(parts_in(*contents).empty());
  }
}

TEST_CASE("a driver killed between any two writes leaves the former snapshot or the new one") {
  std::set<std::string> seen;
  for (const bool last_counts : {false, true}) {
    for (int writes = 0;; ++writes) {
      CAPTURE(writes);
      CAPTURE(last_counts);
      const auto contents = std::make_shared<Contents>();
      testing::MemoryStore store(contents);
      append_three(store);
      const std::string former = "\x95" + text_of('a', 50);
      const std::string next = "\x95" + text_of('b', 30);
      SnapshotParts(store, kTiny).write(former, {1, 0});
      DyingStore dying(contents, writes, last_counts);
      try {
        SnapshotParts(dying, kTiny).write(next, {1, 1});
      } catch (const Error&) {
      }
      const std::string found = SnapshotParts(store).read().value();
      const bool is_new = found == next;
      CHECK((is_new || found == former));
      CHECK(store.read({}, 10).size() == (is_new ? 1 : 2));  // trimmed with it, both or neither
      seen.insert(is_new ? "new" : "former");
      if (is_new && parts_in(*contents).size() > 4) seen.insert("new, with parts of the former");
      if (!is_new && parts_in(*contents).size() > 6) seen.insert("former, with parts of the new");

      // The next driver's leaves nothing of either.
      SnapshotParts(store, kTiny).write("\x95" + text_of('c', 15), {1, 2});
      CHECK(parts_in(*contents).size() == 2);
      if (!dying.has_died()) break;
    }
  }
  CHECK(seen == std::set<std::string>{"former", "former, with parts of the new", "new",
                                      "new, with parts of the former"});
}

// Another driver stores its own whenever a part is asked for.
class BusyStore : public testing::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  std::function<void()> before_part;
  std::optional<std::string> get(std::string_view name) override {
    if (name.starts_with("snapshot.1") && before_part) std::exchange(before_part, {})();
    return MemoryStore::get(name);
  }
};

TEST_CASE("a reader of a snapshot that is replaced meanwhile gets the new one") {
  const auto contents = std::make_shared<Contents>();
  testing::MemoryStore other(contents);
  append_three(other);
  SnapshotParts writer(other, kTiny);
  writer.write("\x95" + text_of('a', 50), {1, 0});
  const std::string next = "\x95" + text_of('b', 30);
  BusyStore store(contents);
  store.before_part = [&] { writer.write(next, {1, 1}); };
  CHECK(SnapshotParts(store).read() == next);
}

TEST_CASE("a snapshot of which a part is missing is refused by name") {
  testing::MemoryStore store;
  append_three(store);
  Journal journal(store, kTiny);
  SnapshotParts(store, kTiny).write("\x95" + text_of('a', 50), {1, 2});
  store.remove("snapshot.1-2.3");
  const std::string told = testing::refusal(
      [&] {
        journal.replay({[](const Snapshot&) {}, [](const Turn&) {}});
      },
      ErrorCode::kProtocol);
  CHECK_HAS(told, "the journal's snapshot");
  CHECK_HAS(told, "snapshot.1-2.3");
  CHECK_HAS(told, "30 of its 51 bytes");
}

TEST_CASE("a list of more parts than there may be is refused before one is read") {
  testing::MemoryStore store;
  PackWriter list;
  list.map(1), list.text("parts");
  list.array(2), list.integer(1), list.array(SnapshotParts::kMaxParts + 1);
  for (std::size_t i = 0; i <= SnapshotParts::kMaxParts; ++i) list.text("p");
  store.put("snapshot", list.bytes());
  CHECK_HAS(testing::refusal([&] { SnapshotParts(store).read(); }, ErrorCode::kProtocol), "4097");
  testing::MemoryStore fresh;
  const auto write = [&] { SnapshotParts(fresh, 1).write(text_of('a', 4097), {1, 0}); };
  CHECK_HAS(testing::refusal(write, ErrorCode::kStore), "4097 bytes, at most 4096");
}

}  // namespace
}  // namespace tune
