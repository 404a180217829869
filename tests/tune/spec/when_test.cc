#include "tune/spec/when.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "core/refusal.h"

namespace tune {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_CASE("a duration is a number of seconds, or of units that are added") {
  CHECK(duration_of("90", "--idle") == seconds(90));
  CHECK(duration_of("90s", "--idle") == seconds(90));
  CHECK(duration_of("5m", "--idle") == minutes(5));
  CHECK(duration_of("1h30m", "--idle") == minutes(90));
  CHECK(duration_of("2d", "--idle") == hours(48));
  CHECK(duration_of("0", "--idle") == seconds(0));
}

TEST_CASE("what is not a duration is refused by the name of its option") {
  for (const char* wrong : {"", "m", "-5", "5x", "5 m", "1h-3m", "99999999999999999999", "99999d"}) {
    CAPTURE(wrong);
    const std::string told = testing::refusal([&] { duration_of(wrong, "--idle"); });
    CHECK_HAS(told, std::string("--idle: '") + wrong + "' is not a time such as");
  }
}

TEST_CASE("a time of day is the next such time, and a date that is over is refused") {
  std::tm local{};
  local.tm_year = 126, local.tm_mon = 10, local.tm_mday = 22, local.tm_hour = 17, local.tm_min = 30;
  local.tm_isdst = -1;
  const std::time_t now = std::mktime(&local);
  CHECK(time_until("18:00", now, "--until") == minutes(30));
  CHECK(time_until("17:30", now, "--until") == hours(24));
  CHECK(time_until("17:00", now, "--until") == hours(23) + minutes(30));
  CHECK(time_until("2026-11-22T17:45", now, "--until") == minutes(15));
  CHECK(time_until("4h", now, "--until") == hours(4));
  CHECK_HAS(testing::refusal([&] { time_until("2026-11-22T17:00", now, "--until"); }),
            "is not still to come");
  for (const char* wrong : {"25:00", "18:00x", "2026-11-22T", "12:", ":"}) {
    CAPTURE(wrong);
    CHECK_HAS(testing::refusal([&] { time_until(wrong, now, "--until"); }), "--until: ");
  }
}

TEST_CASE("a time is told by the units that matter") {
  CHECK(in_words(seconds(40)) == "40 s");
  CHECK(in_words(seconds(119)) == "119 s");
  CHECK(in_words(minutes(12)) == "12 min");
  CHECK(in_words(minutes(270)) == "4 h 30 min");
}

TEST_CASE("times are read as Slurm prints them") {
  using std::chrono::seconds;
  CHECK(time_of_slurm("3:04\n") == seconds(184));
  CHECK(time_of_slurm("02:03:04") == seconds(7384));
  CHECK(time_of_slurm("1-02:03:04") == seconds(86400 + 7384));
  for (const char* text : {"UNLIMITED", "INVALID", "", "7", "1:2:3:4", "1-", "-1:00", "1:00x"}) {
    CHECK_MESSAGE(!time_of_slurm(text), text);
  }
}

}  // namespace
}  // namespace tune
