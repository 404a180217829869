#include "core/agent/object_carrier.h"

#include <doctest/doctest.h>

#include <string>

#include "agent/relay_sides.h"
#include "core/refusal.h"
#include "core/sha256.h"
#include "memory_objects.h"

namespace tune {
namespace {

using Kind = ObjectError::Kind;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kExperiment = "ab12c";
constexpr std::uint64_t kPiece = 4;

// An agent that carries; it may die at any request of the store, or while it writes, and be there
// again at once without its files, as another agent is.
struct Carried {
  MemoryFiles files;
  MemoryObjects store;
  std::unique_ptr<ObjectCarrier> carrier =
      std::make_unique<ObjectCarrier>(files, store, kExperiment, kPiece);
  std::chrono::nanoseconds now{};
  std::vector<RelayOutcome> outcomes;

  void run(std::chrono::nanoseconds time = minutes(2)) {
    const auto end = now + time;
    while (!carrier->is_idle() && now < end) {
      now = carrier->next_look(now);
      carrier->on_time(now);
      now += std::chrono::milliseconds(10);
    }
    for (RelayOutcome& outcome : carrier->take_outcomes()) outcomes.push_back(std::move(outcome));
  }
  void save(std::uint64_t iteration, const std::string& text, AttemptNumber attempt = {1}) {
    const std::string folder =
        checkpoint_place(kExperiment, {TrialNumber{3}, iteration, attempt}).place;
    files.folders.insert({folder, folder + "/empty", folder + "/model"});
    files.files[folder + "/model/weights"] = text;
    files.files[folder + "/step"] = std::to_string(iteration);
    carrier->store(saved(iteration, attempt));
  }
  static CheckpointSaved saved(std::uint64_t iteration, AttemptNumber attempt = {1}) {
    CheckpointSaved one;
    one.trial = TrialNumber{3};
    one.attempt = attempt;
    one.iteration = iteration;
    return one;
  }
  std::string restored(AttemptNumber attempt = {2}) {
    return files.shown(restored_place(kExperiment, TrialNumber{3}, attempt).place);
  }
  void fetch(std::uint64_t iteration, AttemptNumber by = {2}) {
    carrier->fetch(TrialNumber{3}, by, {TrialNumber{3}, iteration, AttemptNumber{1}});
  }
  template <class Of>
  std::vector<Of> ended() const {
    std::vector<Of> found;
    for (const RelayOutcome& outcome : outcomes) {
      if (const auto* one = std::get_if<Of>(&outcome)) found.push_back(*one);
    }
    return found;
  }
  std::size_t manifests() const {
    std::size_t count = 0;
    for (const auto& [name, bytes] : store.objects) count += name.ends_with("manifest.json");
    return count;
  }
};

std::string shown(std::uint64_t iteration, const std::string& text) {
  return "empty/;model/;model/weights=" + text + ";step=" + std::to_string(iteration) + ";";
}

[[noreturn]] void fail(Kind kind) {
  throw ObjectError(kind, "the store says no");
}

TEST_CASE("a machine with a folder of its own keeps what it has stored for its trial") {
  Carried one;
  one.carrier->keep_stored();
  one.save(10, "abcdefghij");
  one.run();
  one.carrier->on_ended(TrialNumber{3}, true);
  one.store.objects.clear();  // nothing is asked of it
  one.fetch(10);
  one.run();
  REQUIRE(one.ended<RelayFetched>().size() == 1);
  CHECK(one.ended<RelayFetched>()[0].error.empty());
  CHECK(one.restored() == shown(10, "abcdefghij"));
}

TEST_CASE("a checkpoint goes to the store in pieces, the manifest last, and comes back as it was") {
  Carried one;
  one.save(10, "0123456789");
  one.run();
  CHECK(one.ended<RelayStored>().at(0).error.empty());
  CHECK_FALSE(one.ended<RelayStored>().at(0).is_newer);
  CHECK(one.store.requests.back() == "put ab12c_00003/checkpoint_000010/manifest.json");
  CHECK(one.store.requests.size() == 4);  // 12 bytes are 3 pieces of 4
  CHECK(one.files.files.empty());         // it is gone here
  one.fetch(10);
  one.run();
  CHECK(one.ended<RelayFetched>().at(0).error.empty());
  CHECK(one.restored() == shown(10, "0123456789"));
}

TEST_CASE("an agent that dies at any request leaves a stored checkpoint or none") {
  for (std::size_t dies_at = 1; dies_at <= 4; ++dies_at) {
    for (const bool is_carried_out : {false, true}) {
      CAPTURE(dies_at);
      CAPTURE(is_carried_out);
      Carried one;
      (is_carried_out ? one.store.after : one.store.before) = [&](std::size_t request) {
        if (request == dies_at) throw Died{};
      };
      one.save(10, "0123456789");
      try {
        one.run();
        FAIL("it lives");
      } catch (const Died&) {
      }
      const bool is_stored = is_carried_out && dies_at == 4;
      CHECK(one.manifests() == (is_stored ? 1 : 0));
      one.store.before = one.store.after = [](std::size_t) {};
      one.carrier = std::make_unique<ObjectCarrier>(one.files, one.store, kExperiment, kPiece);
      one.fetch(10);
      one.run();
      CHECK(one.ended<RelayFetched>().at(0).error.empty() == is_stored);
      CHECK(one.restored() == (is_stored ? shown(10, "0123456789") : "nothing"));
    }
  }
}

TEST_CASE("an agent that dies while it writes what it has fetched leaves nothing half there") {
  Carried first;
  first.save(10, "0123456789");
  first.run();
  for (std::uint64_t dies_at = 0; dies_at < 15; ++dies_at) {
    CAPTURE(dies_at);
    Carried one;
    one.store.objects = first.store.objects;
    one.files.dies_at = dies_at;
    one.fetch(10);
    try {
      one.run();
    } catch (const Died&) {
    }
    const std::string found = one.restored();
    CHECK((found == "nothing" || found == shown(10, "0123456789")));
  }
}

TEST_CASE("a checkpoint that is saved again never damages the one that is there") {
  Carried one;
  one.save(10, "first version");
  one.run();
  const auto stored = one.store.objects;
  for (std::size_t dies_at = 1; dies_at <= 5; ++dies_at) {
    Carried two;
    two.store.objects = stored;
    two.store.after = [&](std::size_t request) {
      if (request == dies_at) throw Died{};
    };
    two.save(10, "another text!");
    try {
      two.run();
    } catch (const Died&) {
    }
    Carried three;
    three.store.objects = two.store.objects;
    three.fetch(10);
    three.run();
    CHECK(three.restored() == shown(10, dies_at < 5 ? "first version" : "another text!"));
  }
}

TEST_CASE("a store that is away is waited for: nothing is lost, and it is said once") {
  for (const Kind kind : {Kind::kAway, Kind::kDenied}) {
    Carried one;
    const auto back_at = minutes(20);
    one.store.before = [&](std::size_t) {
      if (one.now < back_at) fail(kind);
    };
    one.save(10, "old");
    one.run(minutes(2));
    one.save(11, "newer");
    one.run(minutes(1));
    one.save(12, "newest");
    one.run(minutes(30));
    const auto stored = one.ended<RelayStored>();
    REQUIRE(stored.size() == 3);
    CHECK((stored[0].is_newer && stored[0].saved.iteration == 10));
    CHECK((stored[1].is_newer && stored[1].saved.iteration == 11));
    CHECK((!stored[2].is_newer && stored[2].error.empty() && stored[2].saved.iteration == 12));
    CHECK(one.store.requests.size() < 40);  // pauses grow to a minute
    const auto notices = one.ended<RelayNotice>();
    REQUIRE(notices.size() == 2);
    CHECK(testing::has(notices[0].text, "the store says no; checkpoints wait on this machine"));
    CHECK(notices[1].text == "the object store answers again");
    one.fetch(12);
    one.carrier->fetch(TrialNumber{3}, {3}, {TrialNumber{3}, 12, AttemptNumber{1}});
    one.run();
    CHECK(one.restored() == shown(12, "newest"));
  }
}

TEST_CASE("short failures are not told") {
  Carried one;
  one.store.before = [&](std::size_t request) {
    if (request < 3) fail(Kind::kAway);
  };
  one.save(10, "x");
  one.run();
  CHECK(one.ended<RelayStored>().at(0).error.empty());
  CHECK(one.ended<RelayNotice>().empty());
}

TEST_CASE("waiting has an end, that of a restore sooner, as another machine may reach the store") {
  Carried one;
  one.store.before = [](std::size_t) { fail(Kind::kAway); };
  one.save(10, "x");
  one.run(minutes(29));
  CHECK(one.ended<RelayStored>().empty());
  one.run(minutes(5));
  CHECK(one.ended<RelayStored>().at(0).error == "the store says no");
  one.fetch(10);
  one.run(minutes(7));
  CHECK(one.ended<RelayFetched>().at(0).error == "the store says no");
  CHECK(one.ended<RelayFetched>().at(0).is_of_agent);
}

TEST_CASE("a full store is tried five times, and the next checkpoint anew") {
  Carried one;
  one.store.before = [](std::size_t) { fail(Kind::kRefused); };
  one.save(10, "x");
  one.run();
  CHECK(one.ended<RelayStored>().at(0).error == "the store says no");
  CHECK(one.store.requests.size() == 5);
  one.store.before = [](std::size_t) {};
  one.save(11, "y");
  one.run();
  CHECK(one.ended<RelayStored>().at(1).error.empty());
}

TEST_CASE("what is damaged, absent or harmful in the store is not restored") {
  Carried stored;
  stored.save(10, "0123456789");
  stored.run();
  const std::string folder = "ab12c_00003/checkpoint_000010/";
  const auto restored = [&](const std::function<void(MemoryObjects&)>& change) {
    Carried one;
    one.store.objects = stored.store.objects;
    change(one.store);
    one.fetch(10);
    one.run();
    CHECK(one.restored() == "nothing");
    CHECK(one.files.files.empty());
    CHECK_FALSE(one.ended<RelayFetched>().at(0).is_of_agent);
    return one.ended<RelayFetched>().at(0).error;
  };
  const std::string piece = folder + to_hex(sha256("4567"));
  CHECK(testing::has(restored([&](MemoryObjects& s) { s.objects.at(piece) = "4568"; }),
                     "other bytes than were written"));
  CHECK(testing::has(restored([&](MemoryObjects& s) { s.objects.erase(piece); }), "not there"));
  CHECK(testing::has(restored([&](MemoryObjects& s) { s.objects.erase(folder + "manifest.json"); }),
                     "not there"));
  CHECK(testing::has(restored([&](MemoryObjects& s) {
                       std::string& text = s.objects.at(folder + "manifest.json");
                       text.replace(text.find("step"), 4, "../x");
                     }),
                     "leaves its folder"));
}

TEST_CASE("what is given up ends, also what comes later") {
  Carried one;
  one.save(10, "x");
  one.save(10, "y", {2});
  one.fetch(9, {1});
  one.carrier->give_up(TrialNumber{3}, {1});
  one.run();
  const auto stored = one.ended<RelayStored>();
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].error == "its attempt has ended");
  CHECK(stored[1].error.empty());
  CHECK(one.ended<RelayFetched>().at(0).error == "its attempt has ended");
  one.save(12, "z");
  one.fetch(10, {5});
  one.carrier->give_up_all();
  one.save(13, "z");
  one.fetch(10, {6});
  one.run();
  CHECK(one.carrier->is_idle());
  CHECK(one.ended<RelayStored>().size() == 4);
  CHECK(one.ended<RelayFetched>().size() == 3);
  CHECK(one.files.files.empty());
}

TEST_CASE("a store that refuses the proof is told at once, one that is away is tried again") {
  Carried denied;
  denied.store.before = [](std::size_t) { fail(Kind::kDenied); };
  denied.carrier->prove("nonce");
  denied.run();
  CHECK(denied.ended<RelayRefused>().at(0).why == "the store says no");
  Carried skewed;
  skewed.store.before = [](std::size_t) { fail(Kind::kSkewed); };
  skewed.carrier->prove("nonce");
  skewed.run();
  CHECK(skewed.ended<RelayRefused>().at(0).is_of_clock);
  Carried away;
  away.store.before = [](std::size_t request) {
    if (request < 4) fail(Kind::kAway);
  };
  away.carrier->prove("nonce");
  away.run();
  CHECK(away.ended<RelayReached>().size() == 1);
  CHECK(away.store.objects.empty());
}

// ---- Parts of a group's checkpoints -------------------------------------------------------------

struct Group {
  MemoryObjects store;
  struct Node {
    MemoryFiles files;
    std::unique_ptr<ObjectCarrier> carrier;
  };
  Node nodes[2];
  std::chrono::nanoseconds now{};

  Group() {
    for (Node& node : nodes) {
      node.carrier = std::make_unique<ObjectCarrier>(node.files, store, kExperiment, kPiece);
    }
  }
  RelayStored run(std::uint32_t node, const CheckpointShare& share, std::uint64_t iteration = 5) {
    ObjectCarrier& carrier = *nodes[node].carrier;
    carrier.store(Carried::saved(iteration), share);
    while (!carrier.is_idle()) {
      now = carrier.next_look(now);
      carrier.on_time(now);
    }
    return std::get<RelayStored>(carrier.take_outcomes().back());
  }
  void put(std::uint32_t node, const std::string& file, const std::string& text) {
    const std::string folder =
        checkpoint_place(kExperiment, {TrialNumber{3}, 5, AttemptNumber{1}}).temporary;
    nodes[node].files.folders.insert(folder);
    nodes[node].files.files[folder + "/" + file] = text;
  }
  std::string fetched(std::uint32_t by) {
    ObjectCarrier& carrier = *nodes[by].carrier;
    carrier.fetch(TrialNumber{3}, AttemptNumber{2}, {TrialNumber{3}, 5, AttemptNumber{1}}, by);
    while (!carrier.is_idle()) carrier.on_time(now);
    carrier.take_outcomes();
    return nodes[by].files.shown(
        restored_place(kExperiment, TrialNumber{3}, AttemptNumber{2}, by).place);
  }
  std::size_t manifests() const {
    std::size_t count = 0;
    for (const auto& [name, bytes] : store.objects) count += name.ends_with("manifest.json");
    return count;
  }
};

const CheckpointShare kBoth{.joins = {{0, "one"}, {1, "two"}}};

TEST_CASE("parts of a group are one folder by one manifest, which every node reads") {
  Group group;
  group.put(0, "0", "zero zero");
  group.put(0, "model", "the same");
  group.put(1, "1", "one one one");
  group.put(1, "model", "the same");
  CHECK(group.run(1, {.part = 1}).error.empty());
  CHECK(group.manifests() == 0);
  CHECK(group.run(0, {.part = 0}).error.empty());
  CHECK(group.manifests() == 0);
  CHECK(group.nodes[0].files.files.empty());
  CHECK(group.nodes[1].files.files.empty());
  CHECK(group.run(0, kBoth).error.empty());
  CHECK(group.manifests() == 1);
  for (const std::uint32_t by : {0u, 1u}) {
    CHECK(group.fetched(by) == "0=zero zero;1=one one one;model=the same;");
  }
}

TEST_CASE("a node whose ranks write nothing has a part as well") {
  Group group;
  group.put(0, "model", "of rank 0");
  group.put(1, "x", "");
  group.nodes[1].files.files.clear();
  CHECK(group.run(0, {.part = 0}).error.empty());
  CHECK(group.run(1, {.part = 1}).error.empty());
  CHECK(group.run(0, kBoth).error.empty());
  CHECK(group.fetched(1) == "model=of rank 0;");
}

TEST_CASE("without all parts, or with files that differ, there is no manifest") {
  Group group;
  group.put(0, "model", "this");
  CHECK(group.run(0, {.part = 0}).error.empty());
  SUBCASE("one is missing") {
    const RelayStored stored = group.run(0, kBoth);
    CHECK_HAS(stored.error, "part-1.json");
    CHECK_FALSE(stored.is_of_trial);
  }
  SUBCASE("they differ") {
    group.put(1, "model", "that");
    CHECK(group.run(1, {.part = 1}).error.empty());
    const RelayStored stored = group.run(0, kBoth);
    CHECK_HAS(stored.error, "node two of its group has written another file model");
    CHECK(stored.is_of_trial);
  }
  CHECK(group.manifests() == 0);
}

}  // namespace
}  // namespace tune
