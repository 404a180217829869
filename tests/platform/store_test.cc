#include "platform/store_conformance.h"

#include <doctest/doctest.h>

#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "core/platform/redis_server.h"
#include "core/platform/redis_store.h"
#include "core/platform/runtime_directory.h"
#include "memory_store.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "tune-store-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

RedisServerOptions server_options(const RuntimeDirectory& runtime, const fs::path& data) {
  RedisServerOptions options;
  options.runtime_directory = runtime.path();
  options.data_directory = data;
  return options;
}

RedisStoreOptions store_options(const RedisServer& server, int timeout_ms = 5000) {
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = "tune:test";
  options.timeout = std::chrono::milliseconds(timeout_ms);
  return options;
}

testing::OpenStore memory() {
  const auto contents = std::make_shared<testing::MemoryStore::Contents>();
  return [contents] { return std::make_unique<testing::MemoryStore>(contents); };
}

TEST_CASE("the memory store appends as stores do") { testing::check_appending(memory()); }
TEST_CASE("the memory store keeps values as stores do") { testing::check_values(memory()); }

TEST_CASE("the Redis store appends as stores do") {
  const Folder folder;
  const RuntimeDirectory runtime;
  const RedisServer server(server_options(runtime, folder.path()));
  testing::check_appending([&] { return std::make_unique<RedisStore>(store_options(server)); });
}

TEST_CASE("the Redis store keeps values as stores do") {
  const Folder folder;
  const RuntimeDirectory runtime;
  const RedisServer server(server_options(runtime, folder.path()));
  testing::check_values([&] { return std::make_unique<RedisStore>(store_options(server)); });
}

TEST_CASE("a server started again on the same folder has everything, however it ended") {
  const Folder folder;
  const RuntimeDirectory runtime;
  {
    const RedisServer server(server_options(runtime, folder.path()));
    RedisStore(store_options(server)).append({1, 0}, "kept");
    kill(server.pid(), SIGKILL);
  }
  const RedisServer server(server_options(runtime, folder.path()));
  RedisStore store(store_options(server));
  REQUIRE(store.last() == EntryId{1, 0});
  CHECK(store.read({}, 1)[0].payload == "kept");
}

TEST_CASE("a killed or stopped server is an error that names it, within the time-out") {
  for (const int number : {SIGKILL, SIGSTOP}) {
    CAPTURE(number);
    const Folder folder;
    const RuntimeDirectory runtime;
    const RedisServer server(server_options(runtime, folder.path()));
    RedisStore store(store_options(server, 300));
    store.append({1, 0}, "before");
    kill(server.pid(), number);
    try {
      store.append({1, 1}, "lost");
      FAIL("appended");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kStore);
      CHECK(std::string(error.what()).find("is lost") != std::string::npos);
      CHECK(std::string(error.what()).find(runtime.path().string()) != std::string::npos);
    }
    if (number != SIGSTOP) continue;
    // It goes on: the same entry is sent again and is there once.
    kill(server.pid(), SIGCONT);
    store.append({1, 1}, "lost");
    CHECK(store.read({}, 9).size() == 2);
  }
}

TEST_CASE("a server that cannot start gives its last words") {
  const Folder folder;
  const RuntimeDirectory runtime;
  fs::create_directories(folder.path() / "appendonlydir");
  fs::create_directory(folder.path() / "appendonlydir/appendonly.aof.manifest");  // not a file
  CHECK_THROWS_AS(RedisServer(server_options(runtime, folder.path())), Error);
}

}  // namespace
}  // namespace tune
