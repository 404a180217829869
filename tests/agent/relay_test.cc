// The relay between an agent and a folder that it does not see: nothing half visible, nothing lost.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/relay_sides.h"
#include "core/agent/relay_folder.h"
#include "core/platform/files.h"
#include "core/refusal.h"

namespace tune {
namespace {

using std::chrono::seconds;

const std::string kTrial = "ab12c_00003";
const CheckpointSaved kSaved{{3}, {1}, 10, seconds(7), {}};
const std::string kName = kTrial + "/checkpoint_000010";

constexpr std::size_t kTwoPieces = kRelayPieceBytes + 7;
// With an empty file and an empty folder.
void put_checkpoint(MemoryFiles& files, const std::string& name, char mark = 'w',
                    std::size_t bytes = kTwoPieces) {
  files.folders.insert({name, name + "/empty", name + "/model"});
  files.files[name + "/model/weights"] = std::string(bytes, mark);
  files.files[name + "/model/step"] = "10";
  files.files[name + "/none"] = "";
}

std::string whole(char mark = 'w', std::size_t bytes = kTwoPieces) {
  MemoryFiles files;
  put_checkpoint(files, "c", mark, bytes);
  return files.shown("c");
}

// Each of them where there are few; else those at both ends, and some.
std::uint64_t next_step(std::uint64_t at, std::uint64_t steps) {
  return at + (steps < 1000 || at < 8 || at + 8 > steps ? 1 : 9973);
}

TEST_CASE(
    "a checkpoint comes to the experiment's folder and goes from the agent's with its trial") {
  RelaySides sides;
  put_checkpoint(sides.agent_files, kName);
  sides.client->store(kSaved);
  sides.run(seconds(1));
  REQUIRE(sides.ended<RelayStored>().size() == 1);
  CHECK(sides.ended<RelayStored>()[0].error.empty());
  CHECK(sides.driver_files.shown(kName) == whole());
  CHECK(sides.driver_files.folders.size() == 3);  // no temporary one
  CHECK(sides.agent_files.shown(kName) == whole());
  sides.client->on_ended({3}, false);
  CHECK(sides.agent_files.files.empty());
}

TEST_CASE("a connection that is cut at any message costs time and nothing else") {
  RelaySides calm;
  put_checkpoint(calm.agent_files, kName);
  calm.client->store(kSaved);
  calm.run(seconds(1));
  for (const std::uint64_t length : {1, 3, 9}) {
    for (std::uint64_t cut = 0; cut < calm.messages; ++cut) {
      CAPTURE(cut);
      CAPTURE(length);
      RelaySides sides;
      sides.loses = [&](std::uint64_t message) { return message >= cut && message < cut + length; };
      put_checkpoint(sides.agent_files, kName);
      sides.client->store(kSaved);
      sides.run(seconds(90));
      REQUIRE(sides.ended<RelayStored>().size() == 1);
      CHECK(sides.ended<RelayStored>()[0].error.empty());
      CHECK(sides.driver_files.shown(kName) == whole());
    }
  }
}

void check_every_death_of_driver(std::size_t bytes) {
  RelaySides calm;
  put_checkpoint(calm.agent_files, kName, 'w', bytes);
  calm.client->store(kSaved);
  calm.run(seconds(1));
  const std::uint64_t steps = calm.driver_files.written;
  CHECK(steps > bytes);
  for (std::uint64_t at = 0; at < steps; at = next_step(at, steps)) {
    CAPTURE(at);
    RelaySides sides;
    sides.driver_files.dies_at = at;
    put_checkpoint(sides.agent_files, kName, 'w', bytes);
    sides.client->store(kSaved);
    while (sides.driver_files.dies_at == at) {
      sides.turn();
      const std::string shown = sides.driver_files.shown(kName);
      CHECK_MESSAGE((shown == "nothing" || shown == whole('w', bytes)), "half of it is visible");
    }
    CHECK((at + 1 == steps || sides.ended<RelayStored>().empty()));  // told only when it is there
    sides.run(seconds(30));
    REQUIRE(sides.ended<RelayStored>().size() == 1);
    CHECK(sides.driver_files.shown(kName) == whole('w', bytes));
    CHECK(sides.driver_files.folders.size() == 3);
  }
}

void check_every_death_of_agent(std::size_t bytes) {
  const std::string restored = restored_place(RelaySides::kExperiment, {5}, {2}).place;
  RelaySides calm;
  put_checkpoint(calm.driver_files, kName, 'w', bytes);
  calm.client->fetch({5}, {2}, {{3}, 10, {1}});
  calm.run(seconds(1));
  const std::uint64_t steps = calm.agent_files.written;
  CHECK(steps > bytes);
  for (std::uint64_t at = 0; at < steps; at = next_step(at, steps)) {
    CAPTURE(at);
    RelaySides sides;
    sides.agent_files.dies_at = at;
    put_checkpoint(sides.driver_files, kName, 'w', bytes);
    const auto fetch = [&] { sides.client->fetch({5}, {2}, {{3}, 10, {1}}); };
    sides.client_died = fetch;
    fetch();
    while (sides.agent_files.dies_at == at) {
      sides.turn();
      const std::string shown = sides.agent_files.shown(restored);
      CHECK_MESSAGE((shown == "nothing" || shown == whole('w', bytes)), "half of it is visible");
    }
    sides.run(seconds(20));
    REQUIRE_FALSE(sides.ended<RelayFetched>().empty());
    CHECK(sides.ended<RelayFetched>().back().error.empty());
    CHECK(sides.agent_files.shown(restored) == whole('w', bytes));
  }
}

TEST_CASE("a side that dies at any byte has the whole checkpoint or none of it") {
  for (const std::size_t bytes : {std::size_t{50}, kTwoPieces}) {
    check_every_death_of_driver(bytes);
    check_every_death_of_agent(bytes);
  }
}

TEST_CASE("a fetch that is cut at any message, or whose driver is another one then, goes on") {
  const std::string restored = restored_place(RelaySides::kExperiment, {5}, {2}).place;
  for (std::uint64_t cut = 0; cut < 14; ++cut) {
    for (const bool is_other : {false, true}) {
      CAPTURE(cut);
      RelaySides sides;
      sides.loses = [&](std::uint64_t message) { return message >= cut && message < cut + 3; };
      put_checkpoint(sides.driver_files, kName);
      sides.client->fetch({5}, {2}, {{3}, 10, {1}});
      sides.run(seconds(1));
      if (is_other) sides.desk = std::make_unique<RelayDesk>(sides.driver_files, "ab12c");
      sides.run(seconds(60));
      REQUIRE(sides.ended<RelayFetched>().size() == 1);
      CHECK(sides.ended<RelayFetched>()[0].error.empty());
      CHECK(sides.agent_files.shown(restored) == whole());
    }
  }
}

TEST_CASE("a checkpoint that is not there is an error in words") {
  RelaySides sides;
  sides.client->fetch({5}, {2}, {{3}, 10, {1}});
  sides.run(seconds(1));
  REQUIRE(sides.ended<RelayFetched>().size() == 1);
  CHECK(sides.ended<RelayFetched>()[0].error == "there is no " + kName);
  CHECK_FALSE(sides.ended<RelayFetched>()[0].is_of_agent);
}

TEST_CASE("the plugin's copy comes before a checkpoint, whatever is lost on the way") {
  const std::string copy = "plugin/0123456789abcdef";
  const std::string restored = restored_place(RelaySides::kExperiment, {5}, {2}).place;
  for (std::uint64_t cut = 0; cut < 16; ++cut) {
    CAPTURE(cut);
    RelaySides sides;
    sides.loses = [&](std::uint64_t message) { return message >= cut && message < cut + 3; };
    put_checkpoint(sides.driver_files, copy);
    put_checkpoint(sides.driver_files, kName);
    sides.client->fetch_plugin(copy);
    sides.client->fetch({5}, {2}, {{3}, 10, {1}});
    sides.run(seconds(60));
    REQUIRE(sides.ended<RelayPluginFetched>().size() == 1);
    CHECK(sides.ended<RelayPluginFetched>()[0].error.empty());
    CHECK(sides.agent_files.shown(kFetchedPlugin) == whole());
    REQUIRE(sides.ended<RelayFetched>().size() == 1);
    CHECK(sides.agent_files.shown(restored) == whole());
  }
}

TEST_CASE("as a plugin nothing is given but a copy of one") {
  for (const char* name : {"plugin/", "plugin/../secret", "plugin/0123456789abcde",
                           "plugin/0123456789abcdeg", "nodes", "plugin/0123456789abcdef/.."}) {
    CAPTURE(name);
    RelaySides sides;
    put_checkpoint(sides.driver_files, name);
    sides.client->fetch_plugin(name);
    sides.run(seconds(1));
    REQUIRE(sides.ended<RelayPluginFetched>().size() == 1);
    CHECK(sides.ended<RelayPluginFetched>()[0].error == std::string(name) + " holds no plugin");
    CHECK(sides.agent_files.files.empty());
  }
  RelaySides sides;
  sides.client->give_up_all();
  sides.client->fetch_plugin("plugin/0123456789abcdef");
  sides.run(seconds(1));
  REQUIRE(sides.ended<RelayPluginFetched>().size() == 1);
  CHECK_FALSE(sides.ended<RelayPluginFetched>()[0].error.empty());
}

TEST_CASE("an agent whose own folder is full says that it is its own") {
  RelaySides sides;
  put_checkpoint(sides.driver_files, kName);
  sides.agent_files.is_full = true;
  sides.client->fetch({5}, {2}, {{3}, 10, {1}});
  sides.run(seconds(1));
  REQUIRE(sides.ended<RelayFetched>().size() == 1);
  CHECK(sides.ended<RelayFetched>()[0].is_of_agent);
}

TEST_CASE("the newest checkpoint of a trial replaces one that waits, not the one on its way") {
  RelaySides sides;
  const auto save = [&](std::uint64_t iteration, char mark) {
    CheckpointSaved saved = kSaved;
    saved.iteration = iteration;
    put_checkpoint(sides.agent_files, kTrial + "/" + checkpoint_name(iteration, {1}), mark);
    sides.client->store(saved);
  };
  save(10, 'a');
  sides.client->on_time(sides.now);  // it is on its way
  save(11, 'b');
  save(12, 'c');
  sides.run(seconds(2));
  std::vector<std::pair<std::uint64_t, bool>> ends;
  for (const RelayStored& one : sides.ended<RelayStored>()) {
    ends.emplace_back(one.saved.iteration, one.is_newer);
  }
  CHECK(ends == std::vector<std::pair<std::uint64_t, bool>>{{11, true}, {10, false}, {12, false}});
  CHECK(sides.driver_files.shown(kName) == whole('a'));
  CHECK(sides.driver_files.shown(kTrial + "/checkpoint_000011") == "nothing");
  CHECK(sides.driver_files.shown(kTrial + "/checkpoint_000012") == whole('c'));
  CHECK(sides.agent_files.shown(kName) == "nothing");
  CHECK(sides.agent_files.shown(kTrial + "/checkpoint_000011") == "nothing");
  CHECK(sides.agent_files.shown(kTrial + "/checkpoint_000012") == whole('c'));  // kept
}

TEST_CASE("a full disk is told once and tried again; in the end the checkpoint is given up") {
  RelaySides sides;
  put_checkpoint(sides.agent_files, kName);
  sides.driver_files.is_full = true;
  sides.client->store(kSaved);
  SUBCASE("it stays full") {
    sides.run(seconds(60));
    REQUIRE(sides.ended<RelayStored>().size() == 1);
    CHECK(sides.ended<RelayStored>()[0].error.find("No space left") != std::string::npos);
    CHECK(sides.driver_files.folders.empty());
  }
  SUBCASE("it has room again") {
    sides.run(seconds(5));
    CHECK(sides.ended<RelayStored>().empty());
    sides.driver_files.is_full = false;
    sides.run(seconds(20));
    REQUIRE(sides.ended<RelayStored>().size() == 1);
    CHECK(sides.ended<RelayStored>()[0].error.empty());
    CHECK(sides.driver_files.shown(kName) == whole());
  }
  CHECK(sides.ended<RelayNotice>().size() == 1);
}

TEST_CASE("a checkpoint whose paths leave its folder is refused, and nothing is written") {
  for (const char* path : {"../x", "/etc/x", "a/../../x", "a//b", ".", "", "a/"}) {
    CAPTURE(path);
    RelaySides sides;
    sides.desk->on_request(sides.now, "b", OfferFolder{1, {{3}, 10, {1}}, {{path, false, 1}}});
    const auto answers = sides.desk->take_answers();
    REQUIRE(answers.size() == 1);
    CHECK(std::get<FolderStored>(answers[0].second).error.find("leaves its folder") !=
          std::string::npos);
    CHECK(sides.driver_files.written == 0);
  }
  CHECK(why_not_relayed({{"a", false, 1}, {"a", false, 1}}) ==
        "a path in it stands there twice: a");
  CHECK(why_not_relayed(std::vector<RelayFile>(kMaxRelayFiles + 1)).find("the limit") !=
        std::string::npos);
}

TEST_CASE("pieces that nobody asked for, and of another size, are not written") {
  RelaySides sides;
  sides.desk->on_request(sides.now, "b", OfferFolder{1, {{3}, 10, {1}}, {{"x", false, 3}}});
  const std::uint64_t before = sides.driver_files.written;
  sides.desk->on_request(sides.now, "b", RelayPiece{1, 0, kRelayPieceBytes, {"abc"}, {}});
  sides.desk->on_request(sides.now, "b", RelayPiece{1, 7, 0, {"abc"}, {}});
  sides.desk->on_request(sides.now, "b", RelayPiece{1, 0, 0, {"abcd"}, {}});
  sides.desk->on_request(sides.now, "c", RelayPiece{1, 0, 0, {"abc"}, {}});
  CHECK(sides.driver_files.written == before);
}

TEST_CASE("so many checkpoints come at once, others wait, and a silent agent loses its turn") {
  RelaySides sides;
  const auto offer = [&](const std::string& agent) {
    sides.desk->on_request(sides.now, agent, OfferFolder{1, {{3}, 10, {1}}, {{"x", false, 3}}});
  };
  for (std::size_t i = 0; i <= RelayDesk::kMaxPulls; ++i) offer("agent" + std::to_string(i));
  CHECK(sides.desk->take_answers().size() == RelayDesk::kMaxPulls);  // one piece is asked of each
  sides.now += RelayDesk::kSilence - seconds(1);
  for (std::size_t i = 1; i <= RelayDesk::kMaxPulls; ++i) offer("agent" + std::to_string(i));
  sides.now += seconds(1);
  sides.desk->on_time(sides.now);
  const auto answers = sides.desk->take_answers();
  const auto is_for_last = [](const auto& one) {
    return one.first == "agent" + std::to_string(RelayDesk::kMaxPulls);
  };
  CHECK(std::ranges::count_if(answers, is_for_last) == 1);
}

TEST_CASE("output comes once, whatever is cut and wherever the driver dies") {
  std::string text;
  for (int line = 0; line < 3000; ++line) text += "line " + std::to_string(line) + "\n";
  for (std::uint64_t cut = 0; cut < 24; ++cut) {
    CAPTURE(cut);
    RelaySides sides;
    if (cut % 2 == 0) sides.loses = [&](std::uint64_t message) { return message % 24 == cut; };
    sides.driver_files.dies_at = cut % 2 == 0 ? ~std::uint64_t{0} : cut * 1733;
    sides.driver_files.files[kTrial + "/stdout"] = "of an attempt elsewhere\n";
    sides.agent_files.files[kTrial + "/stdout"] = text.substr(0, 1000);
    sides.client->follow({3}, 1);
    sides.run(seconds(5));
    sides.agent_files.files[kTrial + "/stdout"] = text;
    sides.agent_files.files[kTrial + "/usage.jsonl"] = "{}\n";
    sides.client->finish_output(sides.now, {3}, {1});
    sides.run(seconds(50));
    CHECK(sides.ended<RelayOutputDone>().size() == 1);
    CHECK(sides.driver_files.files[kTrial + "/stdout"] == "of an attempt elsewhere\n" + text);
    CHECK(sides.driver_files.files[kTrial + "/usage.jsonl"] == "{}\n");
  }
}

TEST_CASE("of a trial that is over nothing is kept, and one that comes back goes on") {
  RelaySides sides;
  const std::string file = kTrial + "/stdout";
  std::string all;
  for (const std::string text : {"--- attempt 1 ---\none\n", "--- attempt 2 ---\ntwo\n"}) {
    const AttemptNumber attempt{all.empty() ? 1u : 2u};
    all += text;
    sides.agent_files.files[file] = text;
    sides.client->follow({3}, 1);
    sides.run(seconds(1));
    sides.client->finish_output(sides.now, {3}, attempt);
    sides.run(seconds(2));
    CHECK(sides.ended<RelayOutputDone>().size() == attempt.value);
    CHECK(sides.driver_files.files[file] == all);
    CHECK(sides.agent_files.files.empty());
  }
  const std::uint64_t messages = sides.messages;
  sides.run(seconds(5));
  CHECK(sides.messages == messages);
  CHECK(sides.ended<RelayNotice>().empty());
}

TEST_CASE("output that could not be stored at first comes before its attempt is reported") {
  RelaySides sides;
  const std::string file = kTrial + "/stdout";
  sides.client->follow({3}, 1);
  sides.agent_files.files[file] = "first\n";
  sides.run(seconds(1));
  sides.agent_files.files[file] += "left out\n";
  sides.driver_files.is_full = true;
  sides.run(seconds(1));
  sides.driver_files.is_full = false;
  sides.agent_files.files[file] += "at the end\n";
  sides.client->finish_output(sides.now, {3}, {1});
  sides.run(seconds(10));
  CHECK(sides.ended<RelayOutputDone>().size() == 1);
  CHECK(sides.driver_files.files[file] == "first\nat the end\n");
}

TEST_CASE("files that no relay carries are told of, once") {
  RelaySides sides;
  for (const std::uint32_t trial : {3u, 4u}) {
    const std::string folder = trial_id(RelaySides::kExperiment, {trial});
    for (const char* name : {"/stdout", "/checkpoint_000010/x", "/.restored-2/x", "/results/a/b"}) {
      sides.agent_files.files[folder + name] = "x";
    }
    sides.client->follow({trial}, 1);
    sides.client->finish_output(sides.now, {trial}, {1});
    sides.run(seconds(2));
  }
  const auto notices = sides.ended<RelayNotice>();
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].text.find("/results stays on this machine") != std::string::npos);
}

TEST_CASE("output that is too far behind is left out but for its end, and says how much") {
  RelaySides sides;
  const std::string text(RelayClient::kOutputBehind + 1000, 'x');
  sides.agent_files.files[kTrial + "/stderr.1"] = text;
  sides.client->follow({3}, 2);
  sides.run(seconds(20));
  const std::string& found = sides.driver_files.files[kTrial + "/stderr.1"];
  const std::uint64_t left_out = text.size() - RelayClient::kOutputKept;
  CHECK(found == "\n[" + std::to_string(left_out) + " bytes of output are left out here]\n" +
                     text.substr(left_out));
}

TEST_CASE("only output of trials is written by that name") {
  RelaySides sides;
  for (const char* name : {"../keys.json", "params.json", "stdout/../../x", "usage.jsonl/../x"}) {
    sides.desk->on_request(sides.now, "b", RelayOutput{1, {3}, name, 0, {"x"}});
  }
  CHECK(sides.driver_files.files.empty());
  CHECK(sides.desk->take_answers().size() == 4);
}

TEST_CASE("a connection that was silent for nobody is not complained of later") {
  RelaySides sides;
  sides.loses = [](std::uint64_t) { return true; };
  put_checkpoint(sides.agent_files, kName);
  sides.client->store(kSaved);
  sides.client->fetch({5}, {2}, {{3}, 10, {1}});
  sides.client->fetch({6}, {1}, {{3}, 10, {1}});
  sides.run(seconds(1));
  sides.client->give_up({3}, {1});
  sides.client->give_up({6}, {1});  // it has waited behind the other one
  sides.client->give_up({5}, {2});
  sides.run(seconds(1));
  CHECK(sides.ended<RelayFetched>().size() == 2);
  sides.now += std::chrono::hours(1);
  sides.loses = [](std::uint64_t) { return false; };
  put_checkpoint(sides.agent_files, kName);
  sides.client->store(kSaved);
  sides.run(seconds(5));
  CHECK(sides.ended<RelayStored>().back().error.empty());
  CHECK(sides.ended<RelayNotice>().empty());
}

TEST_CASE("what waits is given up when its attempt ends, or when no driver takes it") {
  RelaySides sides;
  sides.loses = [](std::uint64_t) { return true; };
  put_checkpoint(sides.agent_files, kName);
  sides.client->store(kSaved);
  sides.client->follow({3}, 1);
  sides.client->fetch({5}, {2}, {{3}, 10, {1}});
  sides.run(seconds(1));
  sides.client->give_up({3}, {1});
  sides.client->finish_output(sides.now, {3}, {1});
  sides.run(seconds(40));
  CHECK(sides.ended<RelayStored>().size() == 1);
  CHECK(sides.ended<RelayNotice>().size() == 1);  // it is not reached
  sides.client->give_up_all();
  sides.run(seconds(1));
  CHECK(sides.ended<RelayFetched>().size() == 1);
  sides.run(seconds(60));
  CHECK(sides.ended<RelayOutputDone>().size() == 1);
}

// ---- Parts of a group's checkpoints -------------------------------------------------------------

// What the ranks of node `node` have written, and its order.
void put_part(RelaySides& sides, std::uint32_t node, std::uint64_t iteration = 10,
              const std::string& same = "same") {
  const std::string folder =
      checkpoint_place(RelaySides::kExperiment, {kSaved.trial, iteration, kSaved.attempt})
          .temporary;
  sides.agent_files.folders.insert({folder, folder + "/shards"});
  sides.agent_files.files[folder + "/shards/" + std::to_string(node)] = std::to_string(node);
  sides.agent_files.files[folder + "/model"] = same;
  CheckpointSaved saved = kSaved;
  saved.iteration = iteration;
  sides.client->store(saved, {.part = node});
  sides.run(seconds(1));
}

CheckpointShare both() {
  return {.joins = {{0, "one"}, {2, "three"}}};
}

TEST_CASE("parts come beside each other, and are one checkpoint when they are put together") {
  RelaySides sides;
  put_part(sides, 0);
  put_part(sides, 2);
  CHECK(sides.agent_files.files.empty());
  CHECK(sides.driver_files.shown(kName) == "nothing");
  sides.client->store(kSaved, both());
  sides.run(seconds(1));
  REQUIRE(sides.ended<RelayStored>().size() == 3);
  for (const RelayStored& stored : sides.ended<RelayStored>()) CHECK(stored.error.empty());
  CHECK(sides.driver_files.shown(kName) == "shards/;model=same;shards/0=0;shards/2=2;");
  CHECK(sides.driver_files.files.size() == 3);  // nothing beside it
}

TEST_CASE("parts that differ are told of at once, and a missing one is asked for again") {
  RelaySides sides;
  put_part(sides, 0);
  SUBCASE("they differ") {
    put_part(sides, 2, 10, "other");
    sides.client->store(kSaved, both());
    sides.run(seconds(1));
    REQUIRE(sides.ended<RelayStored>().size() == 3);
    CHECK(sides.ended<RelayStored>()[2].is_of_trial);
    CHECK_HAS(sides.ended<RelayStored>()[2].error, "node three of its group has written");
    CHECK_HAS(sides.ended<RelayStored>()[2].error, "model");
  }
  SUBCASE("one is not there") {
    sides.client->store(kSaved, both());
    sides.run(seconds(60));
    REQUIRE(sides.ended<RelayStored>().size() == 2);
    CHECK_FALSE(sides.ended<RelayStored>()[1].is_of_trial);
    CHECK_HAS(sides.ended<RelayStored>()[1].error, "three has sent no part");
  }
  CHECK(sides.driver_files.shown(kName) == "nothing");
}

TEST_CASE("a part takes the place of an older one of its node, which was given up") {
  RelaySides sides;
  put_part(sides, 0, 9);
  put_part(sides, 0, 10);
  for (const auto& [name, text] : sides.driver_files.files) {
    CHECK(name.find("000009") == std::string::npos);
  }
  CHECK(sides.driver_files.files.size() == 2);
}

TEST_CASE("a driver that dies while parts are put together has all of them or none") {
  for (std::uint64_t dies_after = 0;; ++dies_after) {
    CAPTURE(dies_after);
    RelaySides sides;
    put_part(sides, 0);
    put_part(sides, 2);
    const std::uint64_t before = sides.driver_files.written;
    sides.driver_files.dies_at = before + dies_after;
    sides.client->store(kSaved, both());
    for (int turns = 0; turns < 600; ++turns) {
      const std::string found = sides.driver_files.shown(kName);
      const bool is_whole = found == "shards/;model=same;shards/0=0;shards/2=2;";
      CHECK((found == "nothing" || is_whole));
      sides.now += std::chrono::milliseconds(100);
      sides.turn();
    }
    REQUIRE(sides.ended<RelayStored>().size() == 3);
    CHECK(sides.ended<RelayStored>()[2].error.empty());
    CHECK(sides.driver_files.shown(kName) == "shards/;model=same;shards/0=0;shards/2=2;");
    if (sides.driver_files.dies_at != ~std::uint64_t{0}) break;  // it did not die any more
    REQUIRE(dies_after < 100);
  }
}

TEST_CASE("parts are put together on a disk, again after each step at which that was cut off") {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("tune-parts-" + std::to_string(::getpid()));
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  RelayFolder folder(root);
  const RelayPlace place{"t/.new", "t/whole", "t/.old"};
  const std::vector<RelayPart> parts = {{"t/one", "one"}, {"t/two", "two"}};
  write("t/.new/of-a-node-that-sees-it", "x");
  write("t/one/model", "m");
  write("t/one/shards/0", "0");
  std::filesystem::create_directories(root / "t/two/shards/deep");
  SUBCASE("at once") {
    write("t/two/model", "m");
  }
  SUBCASE("a file was moved before") {
    write("t/.new/shards/0", "0");
  }
  SUBCASE("they differ") {
    write("t/two/model", "other");
    try {
      folder.join(place, parts);
      FAIL("no error");
    } catch (const PartsDiffer& error) {
      CHECK_HAS(error.what(), "node two of its group has written another file model");
    }
    CHECK_FALSE(std::filesystem::exists(root / "t/whole"));
    std::filesystem::remove_all(root);
    return;
  }
  SUBCASE("a file of one is a folder of another") {
    write("t/two/model/weights", "w");
    CHECK_THROWS_AS(folder.join(place, parts), PartsDiffer);
    std::filesystem::remove_all(root);
    return;
  }
  folder.join(place, parts);
  folder.join(place, parts);  // its answer was lost
  std::filesystem::create_directories(root / "t/one/shards");
  folder.join(place, parts);  // it ended before all of a part was removed
  CHECK(read_file(root / "t/whole/of-a-node-that-sees-it") == "x");
  CHECK(read_file(root / "t/whole/model") == "m");
  CHECK(read_file(root / "t/whole/shards/0") == "0");
  CHECK(std::filesystem::is_directory(root / "t/whole/shards/deep"));
  CHECK_FALSE(std::filesystem::exists(root / "t/one"));
  std::filesystem::remove_all(root / "t/whole");
  CHECK_HAS(testing::refusal([&] { folder.join(place, parts); }, ErrorCode::kIo),
            "the part of one is not there");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tune
