#include "core/link_agenda.h"

#include <doctest/doctest.h>

#include <chrono>
#include <set>
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
  agenda.sent(3);
  agenda.heard(1);
  agenda.sent(3);
  CHECK(agenda.take_due(10s, 5) == Numbers{1, 3});
  CHECK(agenda.take_due(10s, 5).empty());
}

TEST_CASE_FIXTURE(Fixture, "what was heard is due again when it may be acknowledged") {
  agenda.heard(2);
  CHECK(agenda.take_due(10s, 5) == Numbers{2});
  CHECK(agenda.take_heard() == std::set<std::size_t>{2});
  CHECK(agenda.take_due(10s, 5) == Numbers{2});
  CHECK(agenda.take_heard().empty());
  CHECK(agenda.take_due(10s, 5).empty());
}

TEST_CASE_FIXTURE(Fixture, "all are due now and then, touched or not") {
  agenda.sent(1);
  CHECK(agenda.take_due(10s + LinkAgenda::kLookEvery, 3) == Numbers{0, 1, 2});
  CHECK(agenda.take_due(10s + LinkAgenda::kLookEvery, 3).empty());
}

}  // namespace
}  // namespace tune
