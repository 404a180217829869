#include "tune/control/device_health.h"

#include <doctest/doctest.h>

#include <chrono>

#include "core/error.h"

namespace tune {
namespace {

using Names = DeviceHealth::Names;
using std::chrono::minutes;
using std::chrono::seconds;

const DeviceHealth::Places kBad = {"GPU 0 of a"};
const DeviceHealth::Places kGood = {"GPU 1 of a"};

// The trial fails at once there and reports elsewhere.
DeviceHealth::Findings blame(DeviceHealth& health, TrialNumber trial, ExperimentTime now = {}) {
  CHECK(health.attempt_failed(trial, kBad, true, now));
  return health.attempt_reported(trial, kGood, now);
}

DeviceHealth with_a_place_aside(ExperimentTime now) {
  DeviceHealth health(minutes(10));
  for (std::uint32_t i = 0; i < 3; ++i) blame(health, {i}, now);
  REQUIRE(health.set_aside() == Names{"GPU 0 of a"});
  return health;
}

TEST_CASE("a failure is tried once elsewhere, if there is another place, and counts there") {
  DeviceHealth health;
  CHECK_FALSE(health.attempt_failed({0}, kBad, false, {}));  // nowhere else
  CHECK(health.is_fine());
  CHECK(health.attempt_failed({0}, kBad, true, {}));
  CHECK(health.second_tries().at({0}) == kBad);
  CHECK_FALSE(health.attempt_failed({0}, kGood, true, {}));  // it is the trial's own fault
  CHECK(health.second_tries().empty());
  CHECK(health.is_fine());
}

TEST_CASE("three blames without a first report between them put a place aside") {
  DeviceHealth health;
  CHECK(blame(health, {0}).set_aside.empty());
  CHECK(blame(health, {1}).set_aside.empty());
  CHECK(health.attempt_reported({9}, kBad, {}).taken_back.empty());  // it works for another
  CHECK(blame(health, {2}).set_aside.empty());
  CHECK(blame(health, {3}).set_aside.empty());
  CHECK(blame(health, {4}).set_aside == std::vector<std::string>{"GPU 0 of a"});
  CHECK(health.closed() == Names{"GPU 0 of a"});
}

TEST_CASE("all GPUs of an attempt share its blame, and its success") {
  DeviceHealth health;
  const DeviceHealth::Places both = {"GPU 0 of a", "GPU 2 of a"};
  for (std::uint32_t i = 0; i < 2; ++i) {
    CHECK(health.attempt_failed({i}, both, true, {}));
    health.attempt_reported({i}, kGood, {});
  }
  health.attempt_reported({8}, {"GPU 2 of a"}, {});
  CHECK(blame(health, {3}).set_aside == std::vector<std::string>{"GPU 0 of a"});
}

TEST_CASE(
    "a place with three open second tries is in doubt until one of them has shown something") {
  DeviceHealth health;
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(health.closed().empty());
    CHECK(health.attempt_failed({i}, kBad, true, {}));
  }
  CHECK(health.closed() == Names{"GPU 0 of a"});
  CHECK(health.set_aside().empty());
  SUBCASE("a trial fails there too") {
    health.attempt_failed({1}, kGood, true, {});
  }
  SUBCASE("a trial is over or has no other place any more") {
    health.forget({1});
  }
  SUBCASE("a trial reports elsewhere: one blame") {
    health.attempt_reported({1}, kGood, {});
  }
  CHECK(health.closed().empty());
  CHECK(health.second_tries().size() == 2);
}

TEST_CASE("a place aside is probed by one trial at a time, whose first report takes it back") {
  DeviceHealth health = with_a_place_aside(seconds(5));
  const ExperimentTime due = seconds(5) + minutes(10);
  CHECK(health.next_probe(seconds(5)) == due);
  CHECK(health.due_probes(due - seconds(1)).empty());
  CHECK(health.due_probes(due) == Names{"GPU 0 of a"});
  CHECK_FALSE(health.next_probe(due));  // it waits for a trial, not for time
  health.attempt_began(kBad);
  CHECK(health.due_probes(due).empty());

  SUBCASE("it reports") {
    const auto findings = health.attempt_reported({7}, kBad, due);
    CHECK(findings.taken_back == kBad);
    CHECK(health.is_fine());
  }
  SUBCASE("it fails as well, and is tried elsewhere") {
    CHECK(health.attempt_failed({7}, kBad, true, due));
    CHECK(health.set_aside() == Names{"GPU 0 of a"});
    CHECK(health.next_probe(due) == due + minutes(10));
    CHECK(health.attempt_reported({7}, kGood, due).set_aside.empty());  // it is already
  }
  SUBCASE("it is lost, and has shown nothing") {
    health.attempt_ended(kBad);
    CHECK(health.due_probes(due) == Names{"GPU 0 of a"});
  }
}

TEST_CASE("what is saved goes on as it was; what does not fit together is refused") {
  DeviceHealth health = with_a_place_aside(seconds(5));
  health.attempt_failed({7}, {"node-2"}, true, seconds(6));
  PackWriter out;
  health.save(out);
  DeviceHealth other(minutes(10));
  other.attempt_failed({1}, kGood, true, {});  // is forgotten
  PackReader in(out.bytes());
  other.restore(in);
  CHECK(other.set_aside() == health.set_aside());
  CHECK(other.second_tries() == health.second_tries());
  CHECK(other.next_probe({}) == health.next_probe({}));
  PackWriter again;
  other.save(again);
  CHECK(again.bytes() == out.bytes());

  PackWriter bad;
  bad.map(0);
  bad.array(1);
  bad.array(2);
  bad.unsigned_integer(3);
  bad.array(1);
  bad.text("nowhere");
  PackReader bad_in(bad.bytes());
  CHECK_THROWS_AS(DeviceHealth().restore(bad_in), Error);
}

}  // namespace
}  // namespace tune
