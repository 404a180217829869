// The server is killed while it appends, takes snapshots and rewrites its file, at each step of
// all that: what was acknowledged is there again.
#include <fcntl.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "core/platform/redis_store.h"
#include "core/random.h"
#include "file_calls.h"
#include "platform/redis_servers.h"
#include "skip.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSnapshotEvery = 40;
constexpr std::chrono::seconds kPatience{30};  // with a server that is watched

// Short by default, for the one that writes when its server is killed: each kill costs one.
RedisStoreOptions at(const PlainServer& server,
                     std::chrono::milliseconds timeout = std::chrono::milliseconds(500)) {
  RedisStoreOptions options;
  options.address = server.address();
  options.prefix = "tune:kill";
  options.timeout = timeout;
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

// The entries and values that a driver knows to be stored.
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

// The server's answer to a command without arguments, or the beginning of it; empty: it is
// gone.
std::string ask(const PlainServer& server, const std::string& command) {
  const FileDescriptor connection = connect_to(server.socket());
  const std::string line = command + "\r\n";
  ::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
  std::array<char, 8192> answer{};
  const ssize_t count = ::read(connection.get(), answer.data(), answer.size());
  return {answer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

void rewrite_file(const PlainServer& server) {
  ask(server, "BGREWRITEAOF");
}

// Everything acknowledged is there. What was not may be: it becomes known.
void check_all_there(RedisStore& store, Acknowledged& known) {
  EntryId after{};
  const std::vector<Entry> first = store.read(after, 1);
  if (const auto snapshot = store.get("snapshot")) {
    const auto through =
        parse_entry_id(snapshot->substr(0, snapshot->find_first_of("abcdefghijklmnopqrstuvwxyz")));
    REQUIRE(through);
    CHECK(*snapshot == snapshot_of(*through));
    if (known.snapshot) CHECK(*through >= *known.snapshot);
    known.snapshot = after = *through;
    CHECK((first.empty() || first[0].id > after));  // what it covers is trimmed, all or nothing
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
  constexpr int kKills = 10;
  RandomStream random(kSeed, "moments", 0);
  PlainServer server;
  Acknowledged known;
  for (int i = 0; i < kKills; ++i) {
    CAPTURE(i);
    std::atomic<int> appends = 0;
    std::atomic<bool> has_given_up = false;  // a busy disk made it wait for too long
    std::thread writer([&] {
      RedisStore patient(at(server, kPatience));
      check_all_there(patient, known);
      write_until_it_dies(*connected(server), known, appends);
      has_given_up = true;
    });
    // A moment is so many appends, and then so many microseconds of a rewrite.
    const int wanted = static_cast<int>(random.integer(1, 100));
    while (!eventually([&] { return appends >= wanted || has_given_up; })) {
    }  // a busy disk may stall for longer; the test's own limit ends it
    rewrite_file(server);
    std::this_thread::sleep_for(std::chrono::microseconds(random.integer(0, 30000)));
    server.kill();
    writer.join();
    server.start();
  }
  CHECK(known.snapshot.has_value());
}

// ---- At each step

// A client's words to the test, by a pipe, so that server and client can be killed at once.
struct Told {
  enum Kind { kAppended, kSnapshotBegun, kSnapshotDone, kThrough };
  Kind kind = kAppended;
  EntryId id{};
};

class Client {
 public:
  Client(const PlainServer& server, std::uint64_t epoch, int teller)
      : server_(server), store_(at(server, kPatience)), epoch_(epoch), teller_(teller) {}

  void append() {
    const EntryId id{epoch_, next_++};
    store_.append(id, payload_of(id));
    tell(Told::kAppended, id);
  }
  void snapshot() {
    const EntryId id{epoch_, next_ - 1};
    tell(Told::kSnapshotBegun, id);
    store_.put_and_trim("snapshot", snapshot_of(id), id);
    tell(Told::kSnapshotDone, id);
  }
  void wait_for_rewrite() const {
    eventually([&] {
      return ask(server_, "INFO persistence").find("aof_rewrite_in_progress:0") !=
             std::string::npos;
    });
  }
  void tell(Told::Kind kind, EntryId id) const {
    const Told told{kind, id};
    [[maybe_unused]] const ssize_t count = ::write(teller_, &told, sizeof told);
  }

 private:
  const PlainServer& server_;
  RedisStore store_;
  std::uint64_t epoch_;
  std::uint64_t next_ = 0;
  int teller_;
};

// A driver's life in short. The second half happens while the file is rewritten, or after it.
void be_client(const PlainServer& server, std::uint64_t epoch, int teller) {
  try {
    Client client(server, epoch, teller);
    client.append();
    client.snapshot();
    client.append();
    rewrite_file(server);
    client.append();
    client.snapshot();
    client.append();
    client.wait_for_rewrite();
    client.append();
    client.tell(Told::kThrough, {});
  } catch (const Error&) {
    // then it is not through
  }
  server.signal(SIGTERM);
}

constexpr const char* kAppendFolder = "appendonlydir";

// Traces of a server that was killed in the middle of something.
const std::set<std::string> kStages = {
    "a snapshot was asked for and not stored",
    "a snapshot was stored and not acknowledged",
    "a new append file is there that the manifest does not name",
    "a manifest is not in its place yet",
    "the manifest names two append files",
    "the rewritten file is half written",
    "the rewritten file is not in its place",
    "the rewritten file is in its place and the manifest does not name it",
    "the manifest names the old files as history, and they are there",
    "the manifest names the old files as history, and one is gone",
};

// The files of the server's folder, but for its log and its socket.
std::set<std::string> files_of(const PlainServer& server) {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(server.folder())) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && name != "log") files.insert(name);
  }
  return files;
}

// The stages of a rewrite that its folder shows. What was there `before` is of an earlier kill.
std::set<std::string> stages_on_disk(const PlainServer& server,
                                     const std::set<std::string>& before) {
  std::set<std::string> stages;
  std::set<std::string> files = files_of(server);
  std::ifstream manifest(server.folder() / kAppendFolder / "appendonly.aof.manifest");
  int appended = 0;
  for (std::string line; std::getline(manifest, line);) {
    std::istringstream words(line);  // file appendonly.aof.2.incr.aof seq 2 type i
    std::string word, name, sequence, type;
    words >> word >> name >> word >> sequence >> word >> type;
    const bool is_there = files.erase(name) == 1;
    appended += type == "i" ? 1 : 0;
    if (type != "h") continue;
    stages.insert(is_there ? "the manifest names the old files as history, and they are there"
                           : "the manifest names the old files as history, and one is gone");
  }
  if (appended == 2) stages.insert("the manifest names two append files");
  for (const std::string& name : files) {
    if (before.contains(name)) continue;
    const auto is = [&](const char* begin, const char* end) {
      return name.starts_with(begin) && name.ends_with(end);
    };
    if (is("temp-rewriteaof-bg-", "")) {
      stages.insert("the rewritten file is not in its place");
    } else if (is("temp-rewriteaof-", "")) {
      stages.insert("the rewritten file is half written");
    } else if (is("temp-", ".manifest")) {
      stages.insert("a manifest is not in its place yet");
    } else if (is("", ".incr.aof")) {
      stages.insert("a new append file is there that the manifest does not name");
    } else if (is("", ".base.rdb")) {
      stages.insert("the rewritten file is in its place and the manifest does not name it");
    }
  }
  return stages;
}

// One server on one folder, killed again and again.
class KilledServer {
 public:
  // Lets a client write until the n-th step of the server, kills both there and checks that what
  // was acknowledged is there again.
  Watched live(int n) {
    const std::set<std::string> before = files_of(server_);
    std::array<int, 2> pipe{};
    REQUIRE(::pipe2(pipe.data(), O_NONBLOCK | O_CLOEXEC) == 0);
    const FileDescriptor ear(pipe[0]), mouth(pipe[1]);
    const std::uint64_t epoch = known_.appended ? known_.appended->epoch + 1 : 1;
    std::optional<Child> client;
    int steps = 0;
    const Watched outcome = watch_file_calls(
        server_.pid(), server_.folder(),
        [&] { client.emplace([&] { be_client(server_, epoch, mouth.get()); }, Child::kAtOnce); },
        [&](const FileCall& call) { return call.path.filename() == "log" || ++steps < n; });
    if (outcome == Watched::kNotTraced) return outcome;
    server_.was_reaped();
    client.reset();
    const std::optional<EntryId> unanswered = hear(ear.get(), outcome == Watched::kEnded);
    seen_.merge(stages_on_disk(server_, before));
    server_.start();
    check(unanswered);
    return outcome;
  }

  const fs::path& folder() const { return server_.folder(); }
  std::set<std::string> missing() const {
    std::set<std::string> missing;
    std::set_difference(kStages.begin(), kStages.end(), seen_.begin(), seen_.end(),
                        std::inserter(missing, missing.end()));
    return missing;
  }

 private:
  // The answers that the client had; returns the snapshot for which it had none yet.
  std::optional<EntryId> hear(int ear, bool must_be_through) {
    std::optional<EntryId> unanswered;
    bool is_through = false;
    for (Told told; ::read(ear, &told, sizeof told) == sizeof told;) {
      if (told.kind == Told::kAppended) known_.appended = told.id;
      if (told.kind == Told::kSnapshotBegun) unanswered = told.id;
      if (told.kind == Told::kSnapshotDone) known_.snapshot = told.id, unanswered.reset();
      is_through = told.kind == Told::kThrough;
    }
    CHECK((is_through || !must_be_through));
    return unanswered;
  }

  void check(std::optional<EntryId> unanswered) {
    RedisStore store(at(server_, kPatience));
    check_all_there(store, known_);
    if (!unanswered) return;
    seen_.insert(known_.snapshot == unanswered ? "a snapshot was stored and not acknowledged"
                                               : "a snapshot was asked for and not stored");
  }

  PlainServer server_{{"--hz", "500"}};  // which sees soon that a rewrite is done
  Acknowledged known_;
  std::set<std::string> seen_;
};

TEST_CASE("a server killed at each step of appends, snapshots and rewrites loses nothing") {
  constexpr int kMoreTries = 200;
  RandomStream random(5, "steps", 0);
  KilledServer server;
  int steps = 0;
  for (Watched outcome = Watched::kKilled; outcome != Watched::kEnded; ++steps) {
    CAPTURE(steps);
    outcome = server.live(steps + 1);
    if (outcome == Watched::kNotTraced) return skip("processes may not be traced here");
  }
  MESSAGE(steps << " steps");
  if (!fs::exists(server.folder() / kAppendFolder))
    return skip("before 7.0 there is one file only");
  // Server and rewriting child run side by side: a stage may have hidden between two kills.
  for (int i = 0; i < kMoreTries && !server.missing().empty(); ++i) {
    CAPTURE(i);
    server.live(static_cast<int>(random.integer(1, steps)));
  }
  for (const std::string& stage : server.missing()) FAIL_CHECK("no kill met this: " << stage);
}

// ---- In the middle of a write

fs::path append_file(const fs::path& folder) {
  const fs::path latest = folder / kAppendFolder / "appendonly.aof.1.incr.aof";
  return fs::exists(latest) ? latest : folder / "appendonly.aof";  // before 7.0
}

// Every place within `text` where a word of the transaction begins or ends, and its two ends.
std::set<std::size_t> cuts_of(const std::string& text) {
  std::set<std::size_t> cuts = {0, 1, text.size() - 1, text.size()};
  for (const char* word : {"MULTI", "SET", "XTRIM", "EXEC"}) {
    const std::size_t at = text.find(word);
    REQUIRE(at != std::string::npos);
    cuts.insert({at, at + 2, at + std::string(word).size(), at + std::string(word).size() + 2});
  }
  return cuts;
}

TEST_CASE("a snapshot of whose write only a part came to the disk is there with its trim or not") {
  PlainServer server;
  const auto append_bytes = [&] { return read_file(append_file(server.folder())); };
  std::string before;
  {
    RedisStore store(at(server, kPatience));
    for (std::uint64_t i = 0; i < 3; ++i) store.append({1, i}, payload_of({1, i}));
    before = append_bytes();
    store.put_and_trim("snapshot", snapshot_of({1, 1}), {1, 1});
  }
  server.kill();
  const std::string all = append_bytes();
  const std::string transaction = all.substr(before.size());
  for (const std::size_t cut : cuts_of(transaction)) {
    CAPTURE(cut);
    write_file_atomically(append_file(server.folder()), before + transaction.substr(0, cut));
    server.start();
    RedisStore store(at(server, kPatience));
    const std::vector<Entry> entries = store.read({}, 10);
    if (cut < transaction.size()) {
      CHECK_FALSE(store.get("snapshot").has_value());
      CHECK(entries.size() == 3);
    } else {
      CHECK(store.get("snapshot") == snapshot_of({1, 1}));
      CHECK(entries.size() == 1);
    }
    server.kill();
  }
}

}  // namespace
}  // namespace tune::testing
