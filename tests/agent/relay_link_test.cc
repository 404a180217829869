// The relay over loopback, between two folders on disk.
#include <doctest/doctest.h>

#include <poll.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "core/agent/agent_relay.h"
#include "core/agent/relay_folder.h"
#include "core/agent/relay_host.h"
#include "core/agent/relay_link.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/refusal.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

struct RelayRoom {
  RelayRoom() {
    std::string name = (fs::temp_directory_path() / "tune-relay-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~RelayRoom() { fs::remove_all(path); }
  fs::path path;
};

void put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

constexpr const char* kId = "ab12c";

struct RelayPair {
  RelayPair() {
    keys.addresses = {"127.0.0.1:" + std::to_string(host.port())};
    link = std::make_unique<RelayLink>(token_of(keys, kId), keys.addresses[0], kId);
  }
  // The next outcome, which has to be of this kind.
  template <class Kind>
  Kind expect() {
    for (int i = 0; i < 100 && outcomes.empty(); ++i) {
      pollfd watched{link->descriptor(), POLLIN, 0};
      ::poll(&watched, 1, 100);
      for (RelayOutcome& one : link->take_outcomes()) outcomes.push_back(std::move(one));
    }
    REQUIRE_FALSE(outcomes.empty());
    RelayOutcome first = std::move(outcomes.front());
    outcomes.erase(outcomes.begin());
    REQUIRE(std::holds_alternative<Kind>(first));
    return std::get<Kind>(std::move(first));
  }
  RelayRoom room;
  JoinKeys keys = make_keys();
  RelayHost host{{"127.0.0.1"}, 0, keys, {room.path, kId}};
  std::unique_ptr<RelayLink> link;
  std::vector<RelayOutcome> outcomes;
};

TEST_CASE("a checkpoint goes over the network and comes back, and output goes") {
  RelayPair pair;
  pair.link->order([](RelayClient& client, RelayClient::Time) { client.greet(); });
  pair.expect<RelayReached>();
  const fs::path own = pair.link->folder();
  CHECK((fs::status(own).permissions() & fs::perms::others_all) == fs::perms::none);
  const fs::path trial = own / "ab12c_00003";
  std::string weights(3'000'001, 'x');
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(i * i >> 7);
  put(trial / "checkpoint_000010/model/weights", weights);
  put(trial / "checkpoint_000010/run.sh", "exit\n");
  fs::permissions(trial / "checkpoint_000010/run.sh", fs::perms::owner_all);
  fs::create_directory(trial / "checkpoint_000010/empty");
  put(trial / "stdout", "--- attempt 1 ---\nhello\n");
  const CheckpointSaved saved{{3}, {1}, 10, {}, {}};
  pair.link->order([&](RelayClient& client, RelayClient::Time) {
    client.follow({3}, 1);
    client.store(saved);
  });
  CHECK(pair.expect<RelayStored>().error.empty());
  const fs::path stored = pair.room.path / "ab12c_00003/checkpoint_000010";
  CHECK(read_file(stored / "model/weights") == weights);
  CHECK(fs::is_directory(stored / "empty"));
  CHECK((fs::status(stored / "run.sh").permissions() & fs::perms::owner_exec) != fs::perms::none);
  CHECK(fs::exists(trial / "checkpoint_000010"));  // kept while its trial may go on here

  pair.link->order([](RelayClient& client, RelayClient::Time now) {
    client.fetch({7}, {2}, {{3}, 10, {1}});
    client.finish_output(now, {3}, {1});
    client.on_ended({3}, false);
  });
  bool is_fetched = false, is_done = false;
  while (!is_fetched || !is_done) {
    pollfd watched{pair.link->descriptor(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 10'000) == 1);
    for (const RelayOutcome& one : pair.link->take_outcomes()) {
      is_done = is_done || std::holds_alternative<RelayOutputDone>(one);
      const auto* fetched = std::get_if<RelayFetched>(&one);
      if (fetched == nullptr) continue;
      is_fetched = true;
      CHECK(fetched->error.empty());
    }
  }
  CHECK(read_file(own / "ab12c_00007/.restored-2/model/weights") == weights);
  CHECK_FALSE(fs::exists(trial / "checkpoint_000010"));
  CHECK(read_file(pair.room.path / "ab12c_00003/stdout") == "--- attempt 1 ---\nhello\n");
  pair.link.reset();
  CHECK_FALSE(fs::exists(own));
}

TEST_CASE("a folder that is replaced, cut off or damaged on its way is never named") {
  RelayRoom room;
  RelayFolder files(room.path);
  const RelayPlace place = checkpoint_place(kId, {{3}, 10, {1}});
  put(room.path / "source/x", "good");
  const std::vector<RelayFile> listed = files.list("source");
  files.begin(place, listed);
  files.write(place.temporary + "/x", 0, "goo");
  CHECK_HAS(testing::refusal([&] { files.commit(place, listed); }, ErrorCode::kIo), "were sent");
  files.write(place.temporary + "/x", 0, "bad!");
  CHECK_HAS(testing::refusal([&] { files.commit(place, listed); }, ErrorCode::kIo), "were sent");
  CHECK_FALSE(fs::exists(room.path / place.place));
  files.write(place.temporary + "/x", 0, "good");
  files.commit(place, listed);
  CHECK(read_file(room.path / place.place / "x") == "good");
  CHECK_FALSE(fs::exists(room.path / place.temporary));
}

TEST_CASE("links in a checkpoint: a file's content goes, a folder's is refused in words") {
  RelayRoom room;
  RelayFolder files(room.path);
  put(room.path / "c/x", "good");
  fs::create_symlink("x", room.path / "c/y");
  CHECK(files.list("c").size() == 2);
  fs::create_directory_symlink("/", room.path / "c/z");
  CHECK_HAS(testing::refusal([&] { files.list("c"); }, ErrorCode::kIo),
            "cannot be carried to another machine");
}

TEST_CASE("output is appended once, also when a part of it is there") {
  RelayRoom room;
  RelayFolder files(room.path);
  CHECK(files.append("t/stdout", {}, "") == 0);
  CHECK(files.append("t/stdout", 0, "abc") == 3);
  CHECK(files.append("t/stdout", 0, "abc") == 3);     // the answer was lost
  CHECK(files.append("t/stdout", 0, "abcdef") == 6);  // the driver died in the middle of it
  put(room.path / "t/stdout", "abcdef--- attempt 2 ---\n");
  CHECK(files.append("t/stdout", 6, "ghi") == 27);  // others have written
  CHECK(read_file(room.path / "t/stdout") == "abcdef--- attempt 2 ---\nghi");
}

TEST_CASE("what a machine carries for one experiment never gets to another with the same keys") {
  for (const bool is_other : {true, false}) {
    CAPTURE(is_other);
    const RelayRoom room;
    JoinKeys keys = make_keys();
    const RelayHost host{{"127.0.0.1"}, 0, keys, {room.path, kId, "mark-a"}};
    keys.addresses = {"127.0.0.1:" + std::to_string(host.port())};
    const RelayHost second{{"127.0.0.1"}, 0, keys, {room.path / "second", kId, "mark-b"}};
    const JoinToken token = token_of(keys, kId);
    RelayLink link(token, keys.addresses[0], kId, is_other ? "mark-b" : "mark-a");
    put(link.folder() / "ab12c_00003/checkpoint_000010/x", "1");
    link.order([](RelayClient& client, RelayClient::Time) {
      client.follow({3}, 1);
      client.store({{3}, {1}, 10, {}, {}});
    });
    if (is_other) {  // it reaches its own in the end, and that alone
      link.order([](RelayClient& client, RelayClient::Time) { client.greet(); });
      pollfd nothing{link.descriptor(), POLLIN, 0};
      CHECK(::poll(&nothing, 1, 300) == 0);
      link.connect(token, "127.0.0.1:" + std::to_string(second.port()));
    }
    pollfd watched{link.descriptor(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 60'000) == 1);
    CHECK(fs::exists(room.path / "ab12c_00003/checkpoint_000010") == !is_other);
  }
}

TEST_CASE("a stranger is not answered, and a machine that reaches nobody says so in words") {
  RelayPair pair;
  JoinKeys other = make_keys();
  other.driver_public = pair.keys.driver_public;
  const RelayRoom room;
  SetupExperiment setup;
  setup.experiment_id = kId;
  setup.experiment_directory = "/results/x";
  setup.joined.relay_port = static_cast<std::uint32_t>(pair.host.port());
  AgentRelay stranger({}, token_of(other, kId), {"127.0.0.1:1"}, setup);
  AgentRelay friendly({}, token_of(pair.keys, kId), {"127.0.0.1:1"}, setup);
  pollfd watched{friendly.descriptor(), POLLIN, 0};
  REQUIRE(::poll(&watched, 1, 10'000) == 1);
  AgentMachine machine{AgentFacts{}};
  CHECK(friendly.take_outcomes(machine, {}).empty());
  CHECK(friendly.is_ready());
  stranger.take_outcomes(machine, {});
  CHECK_FALSE(stranger.is_ready());
  CHECK(friendly.why_unfit(AgentRelay::kReach).empty());
  CHECK(stranger.why_unfit(AgentRelay::kReach - std::chrono::seconds(1)).empty());
  CHECK_HAS(stranger.why_unfit(AgentRelay::kReach),
            "does not see the experiment's folder /results/x");
  CHECK_HAS(stranger.why_unfit(AgentRelay::kReach), "open that port");
}

}  // namespace
}  // namespace tune
