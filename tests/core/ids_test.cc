#include "core/ids.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <type_traits>

#include "core/refusal.h"
#include "core/store.h"

namespace tune {
namespace {

static_assert(!std::is_convertible_v<TrialNumber, AttemptNumber>);
static_assert(!std::is_convertible_v<int, TrialNumber>);

TEST_CASE("trial ids are padded and grow when they must") {
  CHECK(trial_id("2f1e0", TrialNumber{3}) == "2f1e0_00003");
  CHECK(trial_id("2f1e0", TrialNumber{123456}) == "2f1e0_123456");
}

TEST_CASE("experiment ids are 5 hex characters of name and seed") {
  std::set<std::string> ids;
  for (const char* name : {"", "a", "b", "a\n1", "mnist"}) {
    for (const std::uint64_t seed : {0ULL, 1ULL, ~0ULL}) {
      const std::string id = experiment_id(name, seed);
      CHECK(id.size() == 5);
      CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
      CHECK(experiment_id(name, seed) == id);
      ids.insert(id);
    }
  }
  CHECK(ids.size() == 15);
}

TEST_CASE("ids print as their number and compare by it") {
  std::ostringstream out;
  out << TrialNumber{7};
  CHECK(out.str() == "7");
  CHECK(TrialNumber{2} < TrialNumber{10});
}

TEST_CASE("entry ids are written and read, and order by epoch first") {
  CHECK(to_string(EntryId{3, 14}) == "3-14");
  CHECK(parse_entry_id("3-14") == EntryId{3, 14});
  CHECK(parse_entry_id("18446744073709551615-0") == EntryId{UINT64_MAX, 0});
  CHECK(EntryId{1, 99} < EntryId{2, 0});
  for (const char* text : {"", "-", "3", "3-", "-3", "3-1x", " 3-1", "3--1", "a-1", "3_1", "+3-1",
                           "18446744073709551616-0", "1-18446744073709551616", "1-2-3"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_entry_id(text).has_value());
  }
}

}  // namespace
}  // namespace tune
