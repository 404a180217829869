#include "core/platform/lock_sign.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace tune {
namespace {

using namespace std::chrono_literals;
using Verdict = HolderWatch::Verdict;

const LockSign kOwn{.pid = 7, .host = "here", .boot = "b1"};
const LockSign kOther{.pid = 12, .host = "there", .boot = "b2", .beats = 3};

LockSign beaten(LockSign sign, std::uint64_t beats) {
  sign.beats = beats;
  return sign;
}

TEST_CASE("a sign is read as it was written, and what cannot be read is nobody's") {
  CHECK(to_text(kOther) == "12 there b2 3\n");
  CHECK(sign_of_text(to_text(kOther)) == kOther);
  CHECK(sign_of_text("12 there b2 3\n2 4\n") == kOther);  // the rest of a longer one
  CHECK(sign_of_text("12") == LockSign{.pid = 12});       // of an earlier version
  for (const char* text : {"", "\n", "nonsense", "-1 a b 2", "0 a b 2"}) {
    CAPTURE(text);
    CHECK(sign_of_text(text) == LockSign{});
  }
  CHECK(describe(kOther) == "process 12 of host there");
}

TEST_CASE("a sign that the flock of this kernel would show to be held is free") {
  for (const LockSign& free : {LockSign{}, LockSign{.pid = 12}, LockSign{12, "other", "b1", 9}}) {
    HolderWatch watch(kOwn, 10s);
    CHECK(watch.look(free, 100s) == Verdict::kFree);
  }
}

TEST_CASE("a holder of another host that counts on is alive, one that does not is silent") {
  HolderWatch watch(kOwn, 10s);
  CHECK(watch.look(kOther, 100s) == Verdict::kUnclear);
  CHECK(watch.look(kOther, 109s) == Verdict::kUnclear);
  CHECK(watch.look(beaten(kOther, 4), 109s) == Verdict::kAlive);
  CHECK(watch.look(beaten(kOther, 4), 118s) == Verdict::kAlive);
  CHECK(watch.look(beaten(kOther, 4), 119s) == Verdict::kSilent);
}

TEST_CASE("the clock of the other host does not matter, nor which way its count goes") {
  HolderWatch watch(kOwn, 10s);
  CHECK(watch.look(beaten(kOther, 1'000'000), 0s) == Verdict::kUnclear);
  CHECK(watch.look(beaten(kOther, 5), 9s) == Verdict::kAlive);
  CHECK(watch.look(beaten(kOther, 5), 19s) == Verdict::kSilent);
}

TEST_CASE("a lock that is given back while it is watched is free") {
  HolderWatch watch(kOwn, 10s);
  CHECK(watch.look(kOther, 0s) == Verdict::kUnclear);
  CHECK(watch.look({}, 1s) == Verdict::kFree);
}

TEST_CASE("another holder that takes it meanwhile is watched anew") {
  HolderWatch watch(kOwn, 10s);
  CHECK(watch.look(kOther, 0s) == Verdict::kUnclear);
  CHECK(watch.look({13, "third", "b3", 0}, 9s) == Verdict::kAlive);
  CHECK(watch.look({13, "third", "b3", 0}, 18s) == Verdict::kAlive);
}

}  // namespace
}  // namespace tune
