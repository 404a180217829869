#include "core/platform/redis_store.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/refusal.h"
#include "memory_store.h"
#include "platform/redis_servers.h"
#include "platform/store_conformance.h"

namespace tune::testing {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{150};
constexpr milliseconds kLong{20000};

RedisStoreOptions store_at(const std::string& address, milliseconds timeout = kLong) {
  RedisStoreOptions options;
  options.address = address;
  options.prefix = "tune:test";
  options.timeout = timeout;
  return options;
}

std::string with_secret(const std::string& secret, const PlainServer& server) {
  return "unix://" + secret + "@" + server.socket();
}

TEST_CASE("a memory store appends as every store") {
  const auto contents = std::make_shared<MemoryStore::Contents>();
  check_appending([&] { return std::make_unique<MemoryStore>(contents); });
}

TEST_CASE("a memory store keeps values as every store") {
  const auto contents = std::make_shared<MemoryStore::Contents>();
  check_values([&] { return std::make_unique<MemoryStore>(contents); });
}

TEST_CASE("a Redis store appends as every store") {
  const PlainServer server;
  check_appending([&] { return std::make_unique<RedisStore>(store_at(server.address())); });
}

TEST_CASE("a Redis store keeps values as every store") {
  const PlainServer server;
  check_values([&] { return std::make_unique<RedisStore>(store_at(server.address())); });
}

TEST_CASE("experiments with different prefixes do not see each other") {
  const PlainServer server;
  RedisStore store(store_at(server.address()));
  RedisStoreOptions other = store_at(server.address());
  other.prefix = "tune:other";
  RedisStore neighbour(other);
  store.append({5, 0}, "a");
  store.put("snapshot", "s");
  CHECK(neighbour.read({}, 10).empty());
  CHECK_FALSE(neighbour.last());
  CHECK_FALSE(neighbour.get("snapshot"));
}

TEST_CASE("removing all of an experiment leaves others alone, whatever its name is like") {
  const PlainServer server;
  for (const char* prefix : {"tune:a", "tune:*", "tune:[a-z]?\\", "tune:a b"}) {
    CAPTURE(prefix);
    RedisStoreOptions options = store_at(server.address());
    options.prefix = prefix;
    RedisStore store(options);
    options.prefix = std::string(prefix) == "tune:a" ? "tune:ab" : "tune:xy";
    RedisStore neighbour(options);
    if (!neighbour.last()) neighbour.append({1, 0}, "theirs");
    store.append({1, 0}, "mine");
    store.put("snapshot", "mine");
    store.remove_all();
    CHECK_FALSE(store.last());
    CHECK_FALSE(store.get("snapshot"));
    CHECK(neighbour.read({}, 10).size() == 1);
  }
}

TEST_CASE("a server that was killed and comes back is connected to again, with all it had") {
  PlainServer server;
  RedisStore store(store_at(server.address()));
  store.append({1, 0}, "a");
  server.kill();
  std::thread appends([&] { store.append({1, 1}, "b"); });
  server.start();
  appends.join();
  CHECK(ids_of(store.read({}, 10)) == std::vector<std::string>{"1-0", "1-1"});
}

TEST_CASE("a server that stays away is an error that names it") {
  PlainServer server;
  RedisStore store(store_at(server.address(), kShort));
  store.append({1, 0}, "a");
  server.kill();
  for (int i = 0; i < 2; ++i) {  // the first call finds a broken pipe, the second no server
    const std::string message = refusal([&] { store.append({1, 1}, "b"); }, ErrorCode::kStore);
    CHECK_HAS(message, server.socket());
    CHECK_HAS(message, "is lost");
    CHECK_HAS(message, "0.15 s");
  }
}

TEST_CASE("a stopped server is an error after the time-out, and of use again when it goes on") {
  PlainServer server;
  RedisStore store(store_at(server.address(), kShort));
  store.append({1, 0}, "a");
  server.signal(SIGSTOP);
  CHECK_HAS(refusal([&] { store.append({1, 1}, "b"); }, ErrorCode::kStore), "no answer");
  server.signal(SIGCONT);
  bool goes_on = false;  // beside other work it may be later than the time-out
  for (int tries = 0; tries < 40 && !goes_on; ++tries) {
    try {
      store.append({1, 1}, "b");
      goes_on = store.read({}, 10).size() == 2;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kStore);
    }
  }
  CHECK(goes_on);
}

TEST_CASE("nobody at the address is bad input, and that it is waited for is told") {
  const TemporaryFolder folder;
  const std::string socket = (folder.path() / "nobody").string();
  RedisStoreOptions options = store_at("unix://" + socket, kShort);
  std::vector<std::string> told;
  options.notice = [&](const std::string& text) { told.push_back(text); };
  const std::string message = refusal([&] { RedisStore store(options); });
  CHECK_HAS(message, "connecting to the store at " + socket);
  CHECK_HAS(message, "No such file");
  CHECK_HAS(message, "start the server");
  CHECK_HAS(message, "leave store out");
  REQUIRE(told.size() == 1);
  CHECK_HAS(told[0], socket);
  CHECK_HAS(told[0], "waiting up to 0.15 s");
}

// Passes requests on to a server; the answer to the first append is lost with its connection.
class LosingAnswer {
 public:
  explicit LosingAnswer(const std::string& socket) : socket_(socket) {}
  std::function<void()> before_retry = [] {};

  std::string operator()(const std::string& request) {
    const FileDescriptor server = connect_to(socket_);
    if (::send(server.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
    char buffer[65536];
    const ssize_t count = ::read(server.get(), buffer, sizeof buffer);
    if (request.find("XADD") != std::string::npos && ++appends_ == 1) {
      before_retry();
      return {};
    }
    return std::string(buffer, count > 0 ? static_cast<std::size_t>(count) : 0);
  }

 private:
  std::string socket_;
  int appends_ = 0;
};

TEST_CASE("an append whose answer got lost is there once") {
  const PlainServer server;
  const FakeServer between{LosingAnswer(server.socket())};
  RedisStore store(store_at(between.address()));
  store.append({1, 0}, "a");
  store.append({1, 1}, "b");
  CHECK(ids_of(store.read({}, 10)) == std::vector<std::string>{"1-0", "1-1"});
}

TEST_CASE("an append that another driver overtook while the connection was lost is refused") {
  const PlainServer server;
  LosingAnswer losing(server.socket());
  losing.before_retry = [&] {  // another driver begins, and what was appended is trimmed
    RedisStore other(store_at(server.address()));
    other.put_and_trim("snapshot", "", {1, 0});
    other.append({2, 0}, "other");
  };
  const FakeServer between{losing};
  RedisStore store(store_at(between.address()));
  const auto append = [&] { store.append({1, 0}, "a"); };
  CHECK_THROWS_AS(append(), SupersededError);
}

TEST_CASE("a password is checked, and never shown") {
  const PlainServer server({"--requirepass", "s3cret"});
  const auto open = [&](const std::string& address) { RedisStore store(store_at(address)); };
  const std::string wrong = refusal([&] { open(with_secret(":gu3ss", server)); });
  CHECK_HAS(wrong, "WRONGPASS");
  CHECK_HAS(wrong, server.socket());
  CHECK_FALSE(has(wrong, "gu3ss"));
  CHECK_HAS(refusal([&] { open(server.address()); }), "wants a password");
  CHECK_NOTHROW(open(with_secret(":s3cret", server)));
  CHECK_NOTHROW(open(with_secret("default:s3cret", server)));
}

TEST_CASE("a password that the server does not know is refused") {
  const PlainServer server;
  CHECK_HAS(refusal([&] { RedisStore store(store_at(with_secret(":any", server))); }), "AUTH");
}

TEST_CASE("the database of the address is used, also after a reconnect") {
  PlainServer server;
  RedisStore store(store_at(server.address() + "?db=3"));
  RedisStore beside(store_at(server.address()));
  store.append({1, 0}, "a");
  server.kill();
  server.start();
  store.append({1, 1}, "b");
  CHECK(store.read({}, 10).size() == 2);
  CHECK(beside.read({}, 10).empty());
  CHECK_HAS(refusal([&] { RedisStore none(store_at(server.address() + "?db=99")); }), "SELECT");
}

TEST_CASE("a server that may lose entries is refused unless the user says so") {
  struct Case {
    std::vector<std::string> settings;
    const char* complaint;
  };
  for (const Case& c : {Case{{"--appendonly", "no"}, "append-only"},
                        Case{{"--maxmemory-policy", "allkeys-lru"}, "allkeys-lru"},
                        Case{{"--appendfsync", "no"}, "appendfsync no"},
                        Case{{"--appendfsync", "everysec"}, nullptr},
                        Case{{"--maxmemory-policy", "volatile-lru"}, nullptr}}) {
    const PlainServer server(c.settings);
    RedisStoreOptions options = store_at(server.address());
    if (c.complaint != nullptr) {
      const std::string message = refusal([&] { RedisStore store(options); });
      CHECK_HAS(message, c.complaint);
      CHECK_HAS(message, "store_unsafe: true");
      options.unsafe = true;
    }
    CHECK_NOTHROW(RedisStore{options});
  }
}

TEST_CASE("a server that may lose its last second is told of, one that loses nothing is not") {
  for (const char* when : {"everysec", "always"}) {
    CAPTURE(when);
    const PlainServer server({"--appendfsync", when});
    RedisStoreOptions options = store_at(server.address());
    std::vector<std::string> told;
    options.notice = [&](const std::string& text) { told.push_back(text); };
    const RedisStore store(options);
    if (std::string(when) == "always") {
      CHECK(told.empty());
      continue;
    }
    REQUIRE(told.size() == 1);
    CHECK_HAS(told[0], server.socket());
    CHECK_HAS(told[0], "appendfsync everysec");
    CHECK_HAS(told[0], "loses the last second");
  }
}

TEST_CASE("a store that was lost and is there again is looked at before anything is sent") {
  PlainServer server;
  RedisStore store(store_at(server.address()));
  int looks = 0;
  std::optional<EntryId> seen;
  store.when_reconnected([&] {
    ++looks;
    seen = store.last();
  });
  store.append({1, 0}, "a");
  CHECK(looks == 0);
  const auto restart = [&] {
    server.kill();
    server.start();
  };
  restart();
  store.append({1, 1}, "b");
  CHECK(looks >= 1);  // more on a busy machine, where the server takes its time
  CHECK(seen == EntryId{1, 0});
  CHECK(store.reconnects() >= 1);

  // Lost again while it is looked at: the look begins anew.
  looks = 0;
  store.when_reconnected([&] {
    if (++looks == 1) restart();
    seen = store.last();
  });
  restart();
  store.append({1, 2}, "c");
  CHECK(looks >= 2);
  CHECK(seen == EntryId{1, 1});

  // Its exception ends the call, and the store is of use again.
  store.when_reconnected([&] { throw SupersededError("not mine"); });
  restart();
  CHECK_THROWS_AS(store.append({1, 3}, "d"), SupersededError);
  store.when_reconnected({});
  CHECK(store.last() == EntryId{1, 2});
  store.append({1, 3}, "d");
  CHECK(ids_of(store.read({}, 10)) == std::vector<std::string>{"1-0", "1-1", "1-2", "1-3"});
}

std::string info(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

TEST_CASE("a version that lacks what is needed is refused, also when the user accepts the unsafe") {
  struct Case {
    const char* version;
    bool accepted;
  };
  for (const Case& c : {Case{"5.0.14", false}, Case{"6.0.16", false}, Case{"6.2.0", true},
                        Case{"7.0.15", true}, Case{"10.1", true}}) {
    CAPTURE(c.version);
    const FakeServer server([&](const std::string& request) -> std::string {
      if (!has(request, "INFO")) return "+PONG\r\n";
      return info(std::string("# Server\r\nredis_version:") + c.version + "\r\nx:1\r\n");
    });
    RedisStoreOptions options = store_at(server.address());
    options.unsafe = true;
    if (c.accepted) {
      CHECK_NOTHROW(RedisStore{options});
    } else {
      CHECK_HAS(refusal([&] { RedisStore store(options); }), std::string("Redis ") + c.version);
    }
  }
}

TEST_CASE("a server that may not be asked for its settings is accepted") {
  const FakeServer server([](const std::string& request) -> std::string {
    return has(request, "INFO") ? "-NOPERM no permissions\r\n" : "+PONG\r\n";
  });
  CHECK_NOTHROW(RedisStore{store_at(server.address())});
}

TEST_CASE("something that is not a Redis server is told at once") {
  const FakeServer server([](const std::string&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  const std::string message = refusal([&] { RedisStore store(store_at(server.address())); });
  CHECK_HAS(message, "is not a Redis server");
}

TEST_CASE("a server that is still reading its file is waited for") {
  int asked = 0;
  const FakeServer server([&](const std::string& request) -> std::string {
    if (++asked <= 2) return "-LOADING Redis is loading the dataset in memory\r\n";
    return has(request, "INFO") ? info("aof_enabled:1\r\n") : "+PONG\r\n";
  });
  CHECK_NOTHROW(RedisStore{store_at(server.address())});
}

TEST_CASE("a value that reads like a server's complaint is a value") {
  const PlainServer server;
  RedisStore store(store_at(server.address(), kShort));
  for (const char* value : {"LOADING", "NOAUTH", "-ERR"}) {
    store.put("value", value);
    CHECK(store.get("value") == value);
  }
}

TEST_CASE("a key that holds something else is an error, not an empty journal") {
  const PlainServer server;
  RedisStore store(store_at(server.address()));
  store.put("journal", "no stream");
  CHECK_HAS(refusal([&] { store.read({}, 10); }, ErrorCode::kStore), "WRONGTYPE");
  CHECK_HAS(refusal([&] { store.last(); }, ErrorCode::kStore), "WRONGTYPE");
  CHECK_HAS(refusal([&] { store.append({1, 0}, ""); }, ErrorCode::kStore), "WRONGTYPE");
}

}  // namespace
}  // namespace tune::testing
