#include "core/link_agenda.h"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

namespace tune {
namespace {

using namespace std::chrono_literals;
using Numbers = std::vector<std::size_t>;

struct Fixture {
  LinkAgenda agenda;
  Fixture() { agenda.take_due(10s, 5); }  // its look at all of them
};

TEST_CASE_FIXTURE(Fixture, "only the links that were touched are due") {
  CHECK(agenda.take_due(10s, 5).empty());
  agenda.touch(3);
  agenda.touch(1);
  agenda.touch(3);
  CHECK(agenda.take_due(10s, 5) == Numbers{1, 3});
  CHECK(agenda.take_due(10s, 5).empty());
}

TEST_CASE_FIXTURE(Fixture, "all are due now and then, touched or not") {
  agenda.touch(1);
  CHECK(agenda.take_due(10s + LinkAgenda::kLookEvery, 3) == Numbers{0, 1, 2});
  CHECK(agenda.take_due(10s + LinkAgenda::kLookEvery, 3).empty());
}

}  // namespace
}  // namespace tune
