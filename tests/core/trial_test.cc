#include "core/trial.h"

#include <doctest/doctest.h>

#include <string>

namespace tune {
namespace {

TEST_CASE("trials go from status to status as the table says") {
  using enum TrialStatus;
  // Rows from, columns to: PENDING, RUNNING, PAUSED, TERMINATED, ERROR.
  const bool table[5][5] = {
      {false, true, true, true, false},    // PENDING
      {true, false, true, true, true},     // RUNNING
      {true, true, false, true, false},    // PAUSED
      {true, false, false, false, false},  // TERMINATED
      {true, false, false, false, false},  // ERROR
  };
  const TrialStatus all[] = {kPending, kRunning, kPaused, kTerminated, kError};
  for (const TrialStatus from : all) {
    for (const TrialStatus to : all) {
      CAPTURE(status_name(from));
      CAPTURE(status_name(to));
      CHECK(transition_is_legal(from, to) ==
            table[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
    }
  }
}

TEST_CASE("statuses have names that read back") {
  using enum TrialStatus;
  const std::pair<TrialStatus, const char*> names[] = {{kPending, "PENDING"},
                                                       {kRunning, "RUNNING"},
                                                       {kPaused, "PAUSED"},
                                                       {kTerminated, "TERMINATED"},
                                                       {kError, "ERROR"}};
  for (const auto& [status, name] : names) {
    CHECK(std::string(status_name(status)) == name);
    CHECK(status_from_name(name) == status);
  }
  for (const char* wrong : {"", "running", "RUNNING ", "ERRORED"}) {
    CHECK_FALSE(status_from_name(wrong).has_value());
  }
}

TEST_CASE("only terminated and failed trials are over") {
  using enum TrialStatus;
  for (const TrialStatus status : {kPending, kRunning, kPaused}) CHECK_FALSE(is_over(status));
  for (const TrialStatus status : {kTerminated, kError}) CHECK(is_over(status));
}

}  // namespace
}  // namespace tune
