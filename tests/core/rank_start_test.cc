#include "core/rank_start.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace tune {
namespace {

TEST_CASE("what is to be done at a rank's start is done then, in the order it was asked for") {
  static std::string done;
  CHECK(at_rank_start([] { done += "a"; }));
  CHECK(at_rank_start([] { done += "b"; }));
  CHECK(done.empty());
  begin_rank();
  CHECK(done == "ab");
}

TEST_CASE("what throws at a rank's start ends it there, and says why") {
  static std::string done;
  at_rank_start([] { throw std::runtime_error("asked too early"); });
  at_rank_start([] { done += "after"; });
  CHECK_THROWS_WITH(begin_rank(), "asked too early");
  CHECK(done.empty());
}

}  // namespace
}  // namespace tune
