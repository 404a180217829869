// The server is killed while it appends, takes snapshots and rewrites its file: what was
// acknowledged is there again.
#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/platform/redis_store.h"
#include "core/random.h"
#include "platform/redis_servers.h"

namespace tune::testing {
namespace {

constexpr std::uint64_t kSnapshotEvery = 40;

RedisStoreOptions at(const PlainServer& server) {
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = "tune:kill";
  options.timeout = std::chrono::milliseconds(500);  // of which each kill costs one
  return options;
}

// A server that reads its file may take longer than that on a busy machine.
std::unique_ptr<RedisStore> connected(const PlainServer& server) {
  for (int tries = 1;; ++tries) {
    try {
      return std::make_unique<RedisStore>(at(server));
    } catch (const Error&) {
      if (tries == 40) throw;
    }
  }
}

// Large enough that a rewrite takes a while, and different each time.
std::string payload_of(EntryId id) {
  return to_string(id) + std::string(20000, static_cast<char>('a' + id.sequence % 26));
}

std::string snapshot_of(EntryId through) {
  return payload_of(through) + "snapshot";
}

// What a driver knows to be stored.
struct Acknowledged {
  std::optional<EntryId> appended;
  std::optional<EntryId> snapshot;
};

// Appends and takes snapshots, in the epoch after `known`, until the store is gone.
void write_until_it_dies(RedisStore& store, Acknowledged& known, std::atomic<int>& appends) {
  const std::uint64_t epoch = known.appended ? known.appended->epoch + 1 : 1;
  try {
    for (std::uint64_t sequence = 0;; ++sequence) {
      const EntryId id{epoch, sequence};
      store.append(id, payload_of(id));
      known.appended = id;
      ++appends;
      if (sequence % kSnapshotEvery != kSnapshotEvery - 1) continue;
      store.put_and_trim("snapshot", snapshot_of(id), id);
      known.snapshot = id;
    }
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kStore);
  }
}

void rewrite_file(const PlainServer& server) {
  const FileDescriptor connection = connect_to(server.socket());
  constexpr std::string_view kCommand = "BGREWRITEAOF\r\n";
  ::send(connection.get(), kCommand.data(), kCommand.size(), MSG_NOSIGNAL);
  char answer[200];
  [[maybe_unused]] const ssize_t count = ::read(connection.get(), answer, sizeof answer);
}

// Everything acknowledged is there. What was not may be: it becomes known.
void check_all_there(RedisStore& store, Acknowledged& known) {
  EntryId after{};
  if (const auto snapshot = store.get("snapshot")) {
    const auto through =
        parse_entry_id(snapshot->substr(0, snapshot->find_first_of("abcdefghijklmnopqrstuvwxyz")));
    REQUIRE(through);
    CHECK(*snapshot == snapshot_of(*through));
    if (known.snapshot) CHECK(*through >= *known.snapshot);
    known.snapshot = after = *through;
  } else {
    CHECK_FALSE(known.snapshot.has_value());
  }
  for (const Entry& entry : store.read(after, 100000)) {
    const EntryId expected{after.epoch, after.sequence + 1};
    CHECK((entry.id == expected || entry.id == EntryId{after.epoch + 1, 0}));
    CHECK(entry.payload == payload_of(entry.id));
    after = entry.id;
  }
  CHECK((!known.appended || after >= *known.appended));
  if (after.epoch > 0) known.appended = after;
}

TEST_CASE("a server killed at any moment of appends, snapshots and rewrites loses nothing") {
  constexpr std::uint64_t kSeed = 4;
  constexpr int kKills = 20;
  RandomStream random(kSeed, "moments", 0);
  PlainServer server;
  Acknowledged known;
  for (int i = 0; i < kKills; ++i) {
    CAPTURE(i);
    std::atomic<int> appends = 0;
    std::thread writer([&] {
      const auto store = connected(server);
      check_all_there(*store, known);
      write_until_it_dies(*store, known, appends);
    });
    // A moment is so many appends, and then so many microseconds of a rewrite.
    const int wanted = static_cast<int>(random.integer(1, 100));
    eventually([&] { return appends >= wanted; });
    rewrite_file(server);
    std::this_thread::sleep_for(std::chrono::microseconds(random.integer(0, 30000)));
    server.kill();
    writer.join();
    server.start();
  }
  CHECK(known.snapshot.has_value());
}

}  // namespace
}  // namespace tune::testing
