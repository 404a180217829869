#include "core/rank_start.h"

#include <doctest/doctest.h>

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

}  // namespace
}  // namespace tune
