#include "core/platform/redis_server.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/platform/lock.h"
#include "core/platform/redis_store.h"
#include "core/platform/runtime_directory.h"
#include "core/refusal.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

// Where a server runs: a folder for its data, one for its socket.
struct Place {
  RedisServerOptions options(const std::string& data = "store") const {
    RedisServerOptions options;
    options.runtime_directory = runtime.path();
    options.data_directory = folder.path() / data;
    return options;
  }
  TemporaryFolder folder;
  RuntimeDirectory runtime;
};

RedisStoreOptions at(const RedisServer& server) {
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = "tune:test";
  return options;
}

bool is_running(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

TEST_CASE("a private server is fit for a store and keeps what it had") {
  const Place place;
  {
    const RedisServer server(place.options());
    RedisStore(at(server)).append({1, 0}, "kept");
  }
  const RedisServer server(place.options());
  RedisStore store(at(server));
  REQUIRE(store.read({}, 10).size() == 1);
  CHECK(store.read({}, 10)[0].payload == "kept");
}

TEST_CASE("two servers on one folder are refused, also those of two hosts") {
  const Place place;
  RedisServerOptions options = place.options();
  {
    const RedisServer server(options);
    Place elsewhere;
    RedisServerOptions second = elsewhere.options();
    second.data_directory = options.data_directory;
    second.start_limit = std::chrono::milliseconds(0);
    CHECK_HAS(refusal([&] { RedisServer other(second); }),
              "store is in use by process " + std::to_string(server.pid()) + " (redis-server)");
    CHECK(is_running(server.pid()));
  }
  const fs::path lock = options.data_directory / "lock";
  const RedisServer server(options);
  pollfd ended{server.exit_descriptor(), POLLIN, 0};
  CHECK(eventually([&] {  // another host takes the folder: this server must not write there
    std::ofstream(lock) << "12 node7 another-kernel 1\n";
    return ::poll(&ended, 1, 500) == 1;
  }));
}

TEST_CASE("what was appended before a kill is there after it") {
  const Place place;
  {
    const RedisServer server(place.options());
    RedisStore(at(server)).append({1, 0}, "kept");
    ::kill(server.pid(), SIGKILL);
  }
  const RedisServer server(place.options());
  CHECK(RedisStore(at(server)).last() == EntryId{1, 0});
}

TEST_CASE("an entry that a power cut left half written is dropped, those before it stay") {
  const Place place;
  {
    const RedisServer server(place.options());
    RedisStore store(at(server));
    store.append({1, 0}, "whole");
    store.append({1, 1}, "half");
  }
  for (const auto& entry : fs::recursive_directory_iterator(place.options().data_directory)) {
    if (entry.path().string().ends_with(".incr.aof")) {
      fs::resize_file(entry.path(), fs::file_size(entry.path()) - 3);
    }
  }
  const RedisServer server(place.options());
  CHECK(RedisStore(at(server)).last() == EntryId{1, 0});
}

TEST_CASE(
    "what a kill left of a rewrite of the file is removed with the next start, all else stays") {
  const Place place;
  const fs::path data = place.options().data_directory;
  {
    const RedisServer server(place.options());
    RedisStore(at(server)).append({1, 0}, "kept");
  }
  for (const char* name : {"temp-rewriteaof-17.aof", "temp-rewriteaof-bg-17.aof", "other-17.aof"}) {
    std::ofstream(data / name) << "half of it";
  }
  const RedisServer server(place.options());
  CHECK_FALSE(fs::exists(data / "temp-rewriteaof-17.aof"));
  CHECK_FALSE(fs::exists(data / "temp-rewriteaof-bg-17.aof"));
  CHECK(fs::exists(data / "other-17.aof"));
  CHECK(RedisStore(at(server)).last() == EntryId{1, 0});
}

TEST_CASE("a stopped server ends with the process that started it") {
  const Place place;
  RedisServerOptions options = place.options();
  const fs::path lock = place.folder.path() / "lock";
  Child parent([&] {
    static const ExperimentLock held(lock, std::chrono::milliseconds(0));
    options.lock_descriptor = held.descriptor();
    ::kill((new RedisServer(options))->pid(), SIGSTOP);
  });
  REQUIRE(holders_of(lock).size() == 2);
  parent.end();
  CHECK(eventually([&] { return !ExperimentLock::is_held(lock); }));
}

TEST_CASE("long paths and odd characters in the experiment's folder do not matter") {
  const Place place;
  std::string data = "a folder with 'quotes', \"more\" and back\\slash";
  for (int i = 0; i < 3; ++i) data += "/" + std::string(100, 'x');
  const RedisServer server(place.options(data));
  RedisStore(at(server)).append({1, 0}, "a");
  CHECK(fs::exists(place.folder.path() / data / "appendonlydir"));
}

TEST_CASE("the server ends with its owner's scope, also when it is stopped") {
  for (const int number : {0, SIGSTOP}) {
    const Place place;
    pid_t pid = 0;
    {
      const RedisServer server(place.options());
      pid = server.pid();
      CHECK(is_running(pid));
      ::kill(pid, number);
    }
    CHECK_FALSE(is_running(pid));
  }
}

TEST_CASE("the server ends when its owner is killed, and the lock it holds is free then") {
  const Place place;
  const fs::path lock_file = place.folder.path() / "lock";
  void* shared =
      ::mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* server_pid = static_cast<pid_t*>(shared);
  Child owner([&] {
    auto* lock = new ExperimentLock(lock_file, std::chrono::milliseconds(0));
    RedisServerOptions options = place.options();
    options.lock_descriptor = lock->descriptor();
    *server_pid = (new RedisServer(options))->pid();
  });
  REQUIRE(*server_pid > 0);
  const std::vector<int> holders = holders_of(lock_file);
  CHECK(std::find(holders.begin(), holders.end(), *server_pid) != holders.end());
  owner.end();
  CHECK(eventually([&] { return !ExperimentLock::is_held(lock_file); }));
  ::munmap(shared, sizeof(pid_t));
}

TEST_CASE("the terminal's signals are not for the server, and its end can be waited for") {
  const Place place;
  const RedisServer server(place.options());
  CHECK(::getsid(server.pid()) == server.pid());
  pollfd watched{server.exit_descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  ::kill(server.pid(), SIGKILL);
  CHECK(::poll(&watched, 1, 10000) == 1);
}

TEST_CASE("what is sent to every process of an experiment does not end the server") {
  const Place place;
  pid_t pid = 0;
  {
    const RedisServer server(place.options());
    pid = server.pid();
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::kill(pid, number);
    // They wait, for all of its life.
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    unsigned long blocked = 0, waiting = 0;
    for (std::string word; status >> word;) {
      if (word == "SigBlk:") status >> std::hex >> blocked;
      if (word == "ShdPnd:") status >> std::hex >> waiting;
    }
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      CAPTURE(number);
      CHECK((blocked >> (number - 1) & 1) == 1);
      if (number != SIGHUP) CHECK((waiting >> (number - 1) & 1) == 1);
    }
    RedisStore(at(server)).append({1, 0}, "a");
  }
  CHECK_FALSE(is_running(pid));
}

TEST_CASE("a server that was killed is started again on the same data and address") {
  const Place place;
  RedisServer server(place.options());
  RedisStore store(at(server));
  CHECK(server.take_end().empty());
  for (std::uint64_t i = 0; i < 3; ++i) {
    store.append({1, i}, "kept");
    const pid_t former = server.pid();
    const std::string address = server.address();
    ::kill(former, SIGKILL);
    std::string how;
    CHECK(eventually([&] { return !(how = server.take_end()).empty(); }));
    CHECK_HAS(how, "killed by signal 9 (SIGKILL)");
    CHECK_HAS(how, "redis.log");
    CHECK(server.take_end().empty());
    CHECK(server.exit_descriptor() == -1);
    server.start_again();
    CHECK(server.await_end().empty());
    CHECK(server.pid() != former);
    CHECK(server.address() == address);
    CHECK(store.last() == EntryId{1, i});
  }
}

TEST_CASE("a server that ends when another host has taken its folder writes nothing there") {
  const Place place;
  const fs::path data = place.options().data_directory;
  RedisServer server(place.options());
  std::ofstream(data / "lock") << "12 node7 another-kernel 1\n";
  // Killed by the thread of its lock, which knows by then.
  pollfd ended{server.exit_descriptor(), POLLIN, 0};
  REQUIRE(::poll(&ended, 1, 20'000) == 1);
  const auto before = fs::last_write_time(data);
  CHECK(server.take_end().empty());
  CHECK_HAS(refusal([&] { server.await_end(); }, ErrorCode::kStore),
            "process 12 of host node7 has taken over " + data.string());
  CHECK(fs::last_write_time(data) == before);
}

TEST_CASE("a server that cannot be started again says why") {
  const Place place;
  const fs::path program = place.folder.path() / "redis-server";
  fs::create_symlink("/usr/bin/redis-server", program);
  const ScopedVariable given("TUNE_REDIS_SERVER", program.string());
  RedisServer server(place.options());
  ::kill(server.pid(), SIGKILL);
  CHECK(eventually([&] { return !server.take_end().empty(); }));
  fs::remove(program);
  server.start_again();
  CHECK_HAS(server.await_end(), program.string());
  CHECK(server.exit_descriptor() == -1);
}

TEST_CASE("nobody else can reach the socket") {
  const Place place;
  const RedisServer server(place.options());
  const fs::path socket = server.address().substr(std::string("unix://").size());
  CHECK(fs::status(socket).permissions() == fs::perms::owner_all);
}

TEST_CASE("without the program the package and the alternative are named") {
  const Place place;
  const auto start = [&] { RedisServer server(place.options()); };
  for (const bool by_path : {false, true}) {
    const ScopedVariable given("TUNE_REDIS_SERVER",
                               by_path ? std::nullopt : std::optional<std::string>("/nowhere"));
    const ScopedVariable path("PATH", by_path ? "/nowhere:/neither" : "/usr/bin:/bin");
    const std::string message = refusal(start);
    CHECK_HAS(message, "redis-server");
    CHECK_HAS(message, "TUNE_REDIS_SERVER");
    CHECK_HAS(message, "store: redis://");
  }
}

TEST_CASE("a server that cannot read its file gives its last words") {
  const Place place;
  const fs::path folder = place.options().data_directory / "appendonlydir";
  fs::create_directories(folder);
  std::ofstream(folder / "appendonly.aof.manifest") << "no manifest\n";
  const std::string message =
      refusal([&] { RedisServer server(place.options()); }, ErrorCode::kStore);
  CHECK_HAS(message, "exited with code 1");
  CHECK_HAS(message, "manifest");
}

TEST_CASE("a program that ends without a word is named") {
  const Place place;
  const ScopedVariable given("TUNE_REDIS_SERVER", "/bin/true");
  const std::string message =
      refusal([&] { RedisServer server(place.options()); }, ErrorCode::kStore);
  CHECK_HAS(message, "/bin/true exited with code 0 and said nothing: is it a redis-server?");
  CHECK_HAS(message, "TUNE_REDIS_SERVER");
  CHECK_FALSE(has(message, "last words"));
}

TEST_CASE("a program that never answers is ended at the limit") {
  const Place place;
  const fs::path program = place.folder.path() / "redis-server";
  std::ofstream(program) << "#!/bin/sh\nexec sleep 1000\n";
  fs::permissions(program, fs::perms::owner_all);
  const ScopedVariable given("TUNE_REDIS_SERVER", program.string());
  RedisServerOptions options = place.options();
  options.start_limit = std::chrono::milliseconds(50);
  CHECK_HAS(refusal([&] { RedisServer server(options); }, ErrorCode::kStore),
            "did not answer in time");
}

TEST_CASE("a folder that cannot be made is an error that names it") {
  const Place place;
  std::ofstream(place.folder.path() / "file") << "x";
  CHECK_HAS(refusal([&] { RedisServer server(place.options("file/store")); }, ErrorCode::kIo),
            "file/store");
}

}  // namespace
}  // namespace tune::testing
