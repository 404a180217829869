// A Redis server that is silent for a while, and a caller that goes on meanwhile and makes its call
// again.
#include <doctest/doctest.h>

#include <signal.h>

#include <atomic>
#include <optional>
#include <string>

#include "core/platform/redis_store.h"
#include "memory_store.h"
#include "platform/redis_servers.h"
#include "platform/store_conformance.h"

namespace tune::testing {
namespace {

RedisStoreOptions at(const std::string& address) {
  RedisStoreOptions options;
  options.address = address;
  options.prefix = "tune:test";
  return options;
}

// Of a store that does not wait: the call until it is answered.
template <class Call>
void again_and_again(Call call) {
  REQUIRE(eventually([&] {
    try {
      call();
      return true;
    } catch (const StoreSilentError&) {
      return false;
    }
  }));
}

struct Silenced {
  Silenced() {
    store.append({1, 0}, "a");
    store.stop_waiting(std::chrono::milliseconds(20));
  }
  std::vector<std::string> ids() const {
    return ids_of(RedisStore(at(server.address())).read({}, 10));
  }
  PlainServer server;
  RedisStore store{at(server.address())};
};

TEST_CASE("an append whose answer takes longer than it waits goes on where it was") {
  Silenced one;
  const std::string large(12'000'000, 'x');  // more than a socket holds
  one.server.signal(SIGSTOP);
  for (int i = 0; i < 3; ++i) {
    try {
      one.store.append({1, 1}, large);
      FAIL_CHECK("there cannot be an answer");
    } catch (const StoreSilentError& silence) {
      CHECK(silence.why() == "the store at " + one.server.socket() + ": no answer");
    }
    CHECK(one.store.descriptor() >= 0);
  }
  one.server.signal(SIGCONT);
  again_and_again([&] { one.store.append({1, 1}, large); });
  CHECK(one.ids() == std::vector<std::string>{"1-0", "1-1"});
  CHECK(one.store.reconnects() == 0);
}

TEST_CASE("an answer that nobody waits for any more is not taken for another's") {
  Silenced one;
  one.server.signal(SIGSTOP);
  CHECK_THROWS_AS(one.store.append({1, 1}, "b"), StoreSilentError);
  one.server.signal(SIGCONT);
  std::optional<EntryId> last;
  again_and_again([&] { last = one.store.last(); });
  CHECK(last >= EntryId{1, 0});
  std::optional<std::string> value = "none";
  again_and_again([&] { value = one.store.get("snapshot"); });
  CHECK_FALSE(value);
  again_and_again([&] { one.store.append({1, 1}, "b"); });
  CHECK(one.ids() == std::vector<std::string>{"1-0", "1-1"});
}

TEST_CASE("an append that was stored although nobody heard of it is not stored twice") {
  Silenced one;
  one.server.signal(SIGSTOP);
  CHECK_THROWS_AS(one.store.append({1, 1}, "b"), StoreSilentError);
  // Its connection is given up for another call's sake.
  CHECK_THROWS_AS(one.store.put("snapshot", "s"), StoreSilentError);
  CHECK(one.store.descriptor() == -1);
  one.server.signal(SIGCONT);
  REQUIRE(eventually([&] { return one.ids().size() == 2; }));
  again_and_again([&] { one.store.append({1, 1}, "b"); });
  CHECK(one.ids() == std::vector<std::string>{"1-0", "1-1"});
}

TEST_CASE("after a silence what may take long is sent only to a server that answers") {
  Silenced one;
  one.server.signal(SIGSTOP);
  CHECK_THROWS_AS(one.store.append({1, 1}, "b"), StoreSilentError);
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(one.store.put("x", "y"), StoreSilentError);
  one.server.signal(SIGCONT);
  RedisStore beside(at(one.server.address()));
  CHECK_FALSE(beside.get("x"));
  again_and_again([&] { one.store.put("x", "y"); });
  CHECK(beside.get("x") == "y");
}

TEST_CASE("a look that falls silent is made anew before anything is appended") {
  Silenced one;
  int begun = 0, done = 0;
  one.store.when_reconnected([&] {
    ++begun;
    const std::optional<EntryId> last = one.store.last();
    const bool is_appended = !one.store.read({1, 0}, 1).empty();
    CHECK(last == EntryId{1, 0});
    CHECK_FALSE(is_appended);
    ++done;
  });
  one.server.kill();
  one.server.start();
  again_and_again([&] { (void)RedisStore(at(one.server.address())); });  // it has read its file
  one.server.signal(SIGSTOP);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(one.store.append({1, 1}, "b"), StoreSilentError);
  CHECK(begun >= 1);
  CHECK(done == 0);
  one.server.signal(SIGCONT);
  again_and_again([&] { one.store.append({1, 1}, "b"); });
  CHECK(begun >= 2);
  CHECK(done >= 1);
  CHECK(one.ids() == std::vector<std::string>{"1-0", "1-1"});
}

TEST_CASE("a look whose connection is lost is made anew before anything is appended") {
  std::atomic<int> looks = 0, appends = 0, early = 0;
  std::atomic<bool> begins = true;
  FakeServer server([&](const std::string& request) -> std::string {
    if (request.find("XADD") != std::string::npos) {
      if (looks < 3) ++early;
      return ++appends == 1 ? "" : "$3\r\n1-0\r\n";  // the first is lost with its connection
    }
    if (request.find("GET") == std::string::npos || begins) return "+PONG\r\n";
    return ++looks <= 2 ? "" : "$-1\r\n";
  });
  RedisStore store(at(server.address()));
  store.stop_waiting(std::chrono::seconds(5));
  store.when_reconnected([&] { (void)store.get("x"); });
  begins = false;
  CHECK_THROWS_AS(store.append({1, 0}, "a"), StoreSilentError);
  looks = 0;
  early = 0;
  again_and_again([&] { store.append({1, 0}, "a"); });
  CHECK(looks == 3);
  CHECK(early == 0);
  CHECK(appends == 2);
}

TEST_CASE("a server that cannot write now is waited for, by the caller or by the call") {
  for (const char* error : {"-MISCONF Errors writing to the AOF file: No space left on device\r\n",
                            "-READONLY You can't write against a read only replica.\r\n"}) {
    CAPTURE(error);
    for (const bool waits : {true, false}) {
      std::atomic<int> asked = 0;
      FakeServer server([&](const std::string& request) -> std::string {
        if (request.find("XADD") == std::string::npos) return "+PONG\r\n";
        return ++asked <= 2 ? error : "$3\r\n1-0\r\n";
      });
      RedisStore store(at(server.address()));
      if (!waits) {
        store.stop_waiting(std::chrono::seconds(5));
        for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(store.append({1, 0}, "a"), StoreSilentError);
      }
      store.append({1, 0}, "a");
      CHECK(asked == 3);
    }
  }
}

}  // namespace
}  // namespace tune::testing
