// The conformance of every Store, as sub-cases of the test case that calls it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "core/store.h"

namespace tune::testing {

// Opens one more store on the same contents. They are empty at first.
using OpenStore = std::function<std::unique_ptr<Store>()>;

inline std::vector<std::string> ids_of(const std::vector<Entry>& entries) {
  std::vector<std::string> ids;
  for (const Entry& entry : entries) ids.push_back(to_string(entry.id));
  return ids;
}

inline void check_appending(const OpenStore& open) {
  using Ids = std::vector<std::string>;
  const std::unique_ptr<Store> store = open();

  SUBCASE("an empty store has no last entry, no entries and no values") {
    CHECK_FALSE(store->last());
    CHECK(store->read({}, 10).empty());
    CHECK_FALSE(store->get("snapshot"));
  }
  SUBCASE("entries come back oldest first, after an id and at most so many") {
    store->append({1, 0}, "a");
    store->append({1, 1}, "b");
    store->append({1, 7}, "c");
    store->append({2, 0}, "d");
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-0", "1-1", "1-7", "2-0"});
    CHECK(ids_of(store->read({1, 1}, 10)) == Ids{"1-7", "2-0"});
    CHECK(ids_of(store->read({1, 3}, 1)) == Ids{"1-7"});
    CHECK(store->read({2, 0}, 10).empty());
    CHECK(store->last() == EntryId{2, 0});
    CHECK(store->read({1, 7}, 1)[0].payload == "d");
  }
  SUBCASE("payloads are bytes of any value, also none") {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
    bytes += "\r\n$3\r\n";
    store->append({1, 0}, bytes);
    store->append({1, 1}, "");
    const std::vector<Entry> entries = store->read({}, 10);
    REQUIRE(entries.size() == 2);
    CHECK(entries[0].payload == bytes);
    CHECK(entries[1].payload.empty());
  }
  SUBCASE("an entry sent twice is there once") {
    store->append({1, 0}, "a");
    store->append({1, 0}, "a");
    store->append({1, 1}, "b");
    store->append({1, 0}, "a");
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-0", "1-1"});
  }
  SUBCASE("an id taken by another payload is another driver's") {
    store->append({2, 0}, "mine");
    CHECK_THROWS_AS(open()->append({2, 0}, "theirs"), SupersededError);
    CHECK(store->read({}, 10)[0].payload == "mine");
  }
  SUBCASE("a driver whose epoch is over cannot append") {
    store->append({1, 0}, "a");
    open()->append({2, 0}, "b");
    CHECK_THROWS_AS(store->append({1, 1}, "c"), SupersededError);
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-0", "2-0"});
  }
}

inline void check_values(const OpenStore& open) {
  using Ids = std::vector<std::string>;
  const std::unique_ptr<Store> store = open();

  SUBCASE("the last value put under a name is read by all") {
    store->put("snapshot", "one");
    store->put("snapshot", std::string_view("t\0wo", 4));
    store->put("other", "");
    CHECK(open()->get("snapshot") == std::string("t\0wo", 4));
    CHECK(store->get("other") == "");
    CHECK(store->read({}, 10).empty());
  }
  SUBCASE("a value that is removed is gone, and others stay") {
    store->put("one", "1");
    store->put("two", "2");
    store->remove("one");
    store->remove("none");
    CHECK_FALSE(open()->get("one"));
    CHECK(open()->get("two") == "2");
  }
  SUBCASE("what is larger than allowed is refused, and what was there stays") {
    store->append({1, 0}, "a");
    store->put("snapshot", "of the former");
    const std::string huge(Store::kMaxPayloadBytes + 1, 'x');
    for (const auto& call :
         std::vector<std::function<void()>>{[&] {
                                              store->append({1, 1}, huge);
                                            },
                                            [&] { store->put("snapshot", huge); },
                                            [&] {
                                              store->put_and_trim("snapshot", huge, {1, 0});
                                            }}) {
      const std::string told = refusal(call, ErrorCode::kStore);
      CHECK_HAS(told, "67108865 bytes at once, at most 67108864 are allowed");
    }
    CHECK(store->get("snapshot") == "of the former");
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-0"});
  }
  SUBCASE("trimming removes the entries up to an id and stores the value") {
    for (std::uint64_t i = 0; i < 5; ++i) store->append({1, i}, "entry");
    store->put_and_trim("snapshot", "of three", {1, 2});
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-3", "1-4"});
    CHECK(store->get("snapshot") == "of three");
    store->put_and_trim("snapshot", "of three", {1, 2});  // sent twice
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-3", "1-4"});
  }
  SUBCASE("what was trimmed still counts: the last id stays, and no id comes again") {
    store->append({3, 0}, "a");
    store->append({3, 1}, "b");
    store->put_and_trim("snapshot", "all", {3, 1});
    CHECK(store->read({}, 10).empty());
    CHECK(store->last() == EntryId{3, 1});
    CHECK_THROWS_AS(store->append({3, 0}, "a"), SupersededError);
    store->append({4, 0}, "c");
    CHECK(ids_of(store->read({}, 10)) == Ids{"4-0"});
  }
  SUBCASE("a driver whose epoch is over cannot trim") {
    store->append({1, 0}, "a");
    open()->append({2, 0}, "b");
    store->put("snapshot", "of the newer");
    CHECK_THROWS_AS(store->put_and_trim("snapshot", "stale", {1, 0}), SupersededError);
    CHECK(ids_of(store->read({}, 10)) == Ids{"1-0", "2-0"});
    CHECK(store->get("snapshot") == "of the newer");
  }
  SUBCASE("trimming an empty journal only stores the value") {
    store->put_and_trim("snapshot", "nothing yet", {1, 5});
    CHECK(store->get("snapshot") == "nothing yet");
    CHECK_FALSE(store->last());
    store->append({1, 0}, "a");
    CHECK(store->last() == EntryId{1, 0});
  }
  SUBCASE("removing all leaves a store as it was at first") {
    store->append({3, 0}, "a");
    store->append({3, 1}, "b");
    store->put_and_trim("snapshot", "of one", {3, 0});
    store->put("other", "o");
    store->remove_all();
    const std::unique_ptr<Store> next = open();
    CHECK_FALSE(next->last());
    CHECK(next->read({}, 10).empty());
    CHECK_FALSE(next->get("snapshot"));
    CHECK_FALSE(next->get("other"));
    next->append({1, 0}, "a");
    CHECK(ids_of(next->read({}, 10)) == Ids{"1-0"});
  }
  SUBCASE("removing all where there is nothing changes nothing") {
    store->remove_all();
    CHECK_FALSE(store->last());
  }
}

}  // namespace tune::testing
